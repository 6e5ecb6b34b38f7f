"""Request bodies of the routes, as the OpenAPI description shows them. `schemas` holds the responses."""

from typing import Annotated, Any

from fastapi import UploadFile
from pydantic import BaseModel, ConfigDict, Field, model_validator

from resight.apps.service.schemas import Reviewer, Text
from resight.audit.review.votes import Verdict

JsonText = Annotated[str, Field(max_length=2**20)]
MAX_IDS = 10_000


class Body(BaseModel):
    """The base of all request bodies: unknown fields are errors, and so is text that cannot be stored or sent back."""

    model_config = ConfigDict(extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _reject_surrogates(cls, values: Any) -> Any:
        if _has_surrogate(values):
            raise ValueError("invalid text: a surrogate without its pair")
        return values


def _has_surrogate(value: Any) -> bool:
    if isinstance(value, str):
        return any("\ud800" <= letter <= "\udfff" for letter in value)
    if isinstance(value, dict):
        return any(_has_surrogate(key) or _has_surrogate(one) for key, one in value.items())
    return isinstance(value, list) and any(map(_has_surrogate, value))


class AddFields(Body):
    images: Annotated[list[UploadFile], Field(min_length=1, description="Image files.")]
    ids: Annotated[
        list[Text],
        Field(description="One per file, in order; by default the file names. An image with the same id is replaced."),
    ] = []
    attributes: Annotated[
        JsonText,
        Field(
            description="JSON: one object for all files, or one object per file, by the file's name.",
            examples=['{"label": "crater"}'],
        ),
    ] = ""
    collection: Annotated[Text | None, Field(description="A collection by name; by default the first.")] = None


class UpdateFields(Body):
    image: Annotated[UploadFile | None, Field(description="A new file for the image; by default it keeps its own.")] = (
        None
    )
    attributes: Annotated[
        JsonText | None,
        Field(
            description="JSON: replaces all attributes; null removes one. By default they stay.",
            examples=['{"label": "crater"}'],
        ),
    ] = None


class DeleteBody(Body):
    ids: Annotated[list[Annotated[str, Field(max_length=2000)]], Field(min_length=1, max_length=MAX_IDS)]
    collection: Text | None = None


class QuarantineBody(Body):
    keys: Annotated[list[Annotated[str, Field(max_length=80)]], Field(min_length=1, max_length=1000)]
    collection: Text | None = None


class VoteFields(Body):
    reviewer: Reviewer
    pair: Annotated[int, Field(description="The number of a pair, from 1.")]
    verdict: Verdict


class UndoFields(Body):
    reviewer: Reviewer
    pair: Annotated[
        int | None, Field(description="The pair whose vote is removed, if it still exists; by default the last.")
    ] = None
