"""The form of a search → a Question: what to look for, checked as far as that goes without the image."""

import hashlib
from dataclasses import dataclass
from typing import Annotated

from fastapi import UploadFile
from pydantic import BaseModel, ConfigDict, Field

from resight.apps.commands.searching import parse_numbers
from resight.apps.service.refusals import Refusal
from resight.errors import BoxError, InputError
from resight.search import filters
from resight.types import Box

MOST_ANSWERS = 1000
LONGEST_ID = 2000
Id = Annotated[str, Field(max_length=LONGEST_ID)]
Text = Annotated[str, Field(max_length=500)]
Numbers = Annotated[str, Field(max_length=200)]


class SearchFields(BaseModel):
    model_config = ConfigDict(extra="forbid")

    image: Annotated[UploadFile | None, Field(description="An image file; or give `id`.")] = None
    id: Annotated[Id | None, Field(description="An image of the collection, to find more of what it shows.")] = None
    box: Annotated[
        Numbers | None,
        Field(
            description="x0,y0,x1,y1 in pixels of the upright original: look for this part only.",
            examples=["10,20,200,300"],
        ),
    ] = None
    where: Annotated[
        list[Text],
        Field(max_length=20, description="Only images that meet these conditions.", examples=[["year>=1900"]]),
    ] = []
    near: Annotated[
        Numbers | None,
        Field(description="latitude,longitude,metres: only images taken there.", examples=["48.8584,2.2945,500"]),
    ] = None
    k: Annotated[int, Field(ge=1, le=MOST_ANSWERS, description="How many answers.")] = 10
    explain: Annotated[bool, Field(description="Say why, for the first ten answers.")] = False
    thumbnail: Annotated[bool, Field(description="Send back a small picture of the query, as a data URI.")] = False
    collection: Annotated[Text | None, Field(description="By name; without, the first.")] = None


class WhyFields(SearchFields):
    hit: Annotated[Id, Field(description="The id of the answer to explain.")]


@dataclass(frozen=True)
class Question:
    """`data` are the bytes of an upload, `id` is a stored image: one of the two."""

    collection: str
    name: str
    data: bytes | None
    id: str | None
    box: Box | None
    where: tuple[str, ...]
    near: tuple[float, float, float] | None
    k: int

    @property
    def key(self) -> tuple[object, ...]:
        """Equal for questions with the same answer."""
        digest = None if self.data is None else hashlib.sha256(self.data).digest()
        return self.collection, digest, self.id, self.box, self.where, self.near, self.k


async def read_question(fields: SearchFields, collection: str) -> Question:
    if (fields.image is None) == (fields.id is None):
        raise Refusal(
            422,
            "what to look for is not clear",
            expected="image (a file) or id (of a stored image), one of the two",
            actual="both" if fields.image else "neither",
            fix="send the field image",
        )
    box = parse_numbers(fields.box, 4, "box", BoxError)
    near = read_near(fields.near)
    filters.parse(fields.where, near)
    data = await fields.image.read() if fields.image else None
    name = clean_name(fields.image.filename) if fields.image else fields.id or ""
    return Question(collection, name, data, fields.id, box, tuple(fields.where), near, fields.k)


def read_near(text: str | None) -> tuple[float, float, float] | None:
    return parse_numbers(text, 3, "near", InputError)  # type: ignore[return-value]


def clean_name(name: str | None) -> str:
    """A client's name of a file, fit to be shown."""
    last = (name or "").replace("\\", "/").rpartition("/")[2]
    return "".join(letter for letter in last if letter.isprintable())[:80].strip() or "upload"
