"""The form of a search → a Question: what to look for, checked as far as that goes without the image.

A Question → what the library answers, by a thread of the pool: decode, encode, search, explain.
"""

import hashlib
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

from fastapi import UploadFile
from pydantic import BaseModel, ConfigDict, Field

from resight.apps.service.error_responses import ApiError, not_found
from resight.apps.service.executor import Slot
from resight.apps.service.serializers import JsonObject, serialize_answer, serialize_explanation, serialize_query
from resight.apps.service.state import Found, Service
from resight.collection import Answer, Collection
from resight.collection.view import View
from resight.errors import CollectionError, ImageError
from resight.search.filters import Filter, parse
from resight.search.request import SearchRequest, StoredImage, parse_box, parse_near
from resight.types import Box, Picture, Query

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
    filters: tuple[Filter, ...]
    k: int

    @property
    def key(self) -> tuple[object, ...]:
        """Equal for questions with the same answer."""
        digest = None if self.data is None else hashlib.sha256(self.data).digest()
        return self.collection, digest, self.id, self.box, self.filters, self.k


async def read_question(fields: SearchFields, collection: str) -> Question:
    if (fields.image is None) == (fields.id is None):
        raise ApiError(
            422,
            "what to look for is not clear",
            expected="image (a file) or id (of a stored image), one of the two",
            actual="both" if fields.image else "neither",
            fix="send the field image",
        )
    box = parse_box(fields.box, "box")
    filters = parse(fields.where, parse_near(fields.near, "near"))
    data = await fields.image.read() if fields.image else None
    name = clean_name(fields.image.filename) if fields.image else fields.id or ""
    return Question(collection, name, data, fields.id, box, filters, fields.k)


def clean_name(name: str | None) -> str:
    """A client's name of a file, fit to be shown."""
    last = (name or "").replace("\\", "/").rpartition("/")[2]
    return "".join(letter for letter in last if letter.isprintable())[:80].strip() or "upload"


THUMBNAIL = 640
EXPLAINED = 10  # answers


@dataclass(frozen=True)
class Asked:
    """A question whose image is decoded."""

    question: Question
    collection: Collection
    picture: Picture | None
    thumbnail: bytes | None
    read_seconds: float


async def decode(service: Service, place: Slot, question: Question, thumbnail: bool = False) -> Asked:
    collection = service.collections[question.collection]
    begin = time.monotonic()
    if question.data is None:
        return Asked(question, collection, None, None, 0.0)
    side = None if question.box else collection.query_side
    small = THUMBNAIL if thumbnail else 0
    upload = await place.wait(service.decoders.decode(question.data, question.name, max_side=side, small_side=small))
    return Asked(question, collection, upload.picture, upload.small, time.monotonic() - begin)


def search(asked: Asked, service: Service, explain: bool) -> JsonObject:
    """In a thread of the pool, as all that follows."""
    return tell(asked, service, *ask(asked, service), explain)


def search_in_stages(asked: Asked, service: Service, explain: bool) -> Iterator[JsonObject]:
    """The lines of a stream: the query, the shortlist and the whole answer."""
    view = asked.collection.prepared()
    request, question = make_request(asked, view), asked.question
    query = encode_query(request, view)
    yield {"event": "query", **serialize_query(query, asked.thumbnail)}
    for answer in view.ask_in_stages(request.with_query(query)):
        last = answer.stage == "verified"
        if last:
            service.answers.put(question.key, (view, answer))
        yield {"event": "answer" if last else "shortlist", **tell(asked, service, view, answer, explain and last)}


def ask(asked: Asked, service: Service) -> Found:
    view = asked.collection.prepared()
    request = make_request(asked, view)
    answer = view.ask(request.with_query(encode_query(request, view)))
    service.answers.put(asked.question.key, (view, answer))
    return view, answer


def make_request(asked: Asked, view: View) -> SearchRequest:
    question = asked.question
    if question.id is not None and view.find(question.id) is None:
        raise not_found("image", question.id[:80])
    image = asked.picture or StoredImage(question.id or "")
    return SearchRequest(image, question.k, question.box, question.filters)


def encode_query(request: SearchRequest, view: View) -> Query:
    try:
        return view.encode_query(request)
    except (ImageError, CollectionError) as error:
        if not isinstance(request.image, StoredImage):
            raise
        raise ApiError(
            404,
            "the file of this image is gone or has changed",
            expected="the file that was added to the collection",
            actual=request.image.id[:80],
            fix="add the image again",
        ) from error


def tell(asked: Asked, service: Service, view: View, answer: Answer, explain: bool = False) -> JsonObject:
    """The whole answer of a search."""
    told = serialize_answer(answer, service.settings.show_paths)
    explained = answer.hits[:EXPLAINED] if explain else ()
    why = {hit.id: serialize_explanation(answer, hit) for hit in explained}
    return {
        "collection": asked.question.collection,
        "version": view.version,
        "images": len(view),
        "query": serialize_query(answer.query, asked.thumbnail),
        **told,
        "seconds": {"read": asked.read_seconds, **told["seconds"]},
        "why": why if explain else None,
    }


async def explain(service: Service, place: Slot, question: Question, wanted: str) -> JsonObject:
    """Why one image was found; from the last answers of this process where they hold it, else searched again."""
    found = service.answers.get(question.key)
    asked = None if found else await decode(service, place, question)

    def work() -> JsonObject:
        _, answer = found or ask(asked, service)  # type: ignore[arg-type]
        hit = next((hit for hit in answer.hits if hit.id == wanted), None)
        if hit is None:
            raise not_found("answer", wanted[:80], "the id of one of the answers to the same search")
        return serialize_explanation(answer, hit)

    return await place.run(work)
