"""What the routes about jobs take and answer, as the OpenAPI description shows it."""

from typing import Annotated, Literal

from fastapi import UploadFile
from pydantic import BaseModel, ConfigDict, Field

Text = Annotated[str, Field(max_length=500)]
Json = Annotated[str, Field(max_length=2**20)]
MOST_IDS = 10_000


class SkippedFile(BaseModel):
    path: str
    reason: str


class JobShape(BaseModel):
    id: str
    kind: Literal["add", "update"]
    collection: str
    state: Literal["waiting", "running", "done", "failed", "cancelled"]
    done: int
    total: int
    added: int
    updated: int
    skipped: list[SkippedFile]
    error: Annotated[str | None, Field(description="Why it waits or has failed.")]
    created: Annotated[float, Field(description="Seconds since 1970.")]
    finished: float | None


class JobAnswer(BaseModel):
    job: JobShape


class AddFields(BaseModel):
    model_config = ConfigDict(extra="forbid")

    images: Annotated[list[UploadFile], Field(min_length=1, description="Image files.")]
    ids: Annotated[
        list[Text],
        Field(description="One a file, in their order. Without, the file names. An image that has the id is replaced."),
    ] = []
    attributes: Annotated[
        Json,
        Field(
            description="JSON: one object for all files, or an object a file, by the file's name.",
            examples=['{"label": "crater"}'],
        ),
    ] = ""
    collection: Annotated[Text | None, Field(description="By name; without, the first.")] = None


class UpdateFields(BaseModel):
    model_config = ConfigDict(extra="forbid")

    image: Annotated[UploadFile | None, Field(description="Another file for the image; without, it keeps its own.")] = (
        None
    )
    attributes: Annotated[
        Json | None,
        Field(
            description="JSON: takes the place of all attributes; a null leaves one out. Without, they stay.",
            examples=['{"label": "crater"}'],
        ),
    ] = None


class DeleteBody(BaseModel):
    model_config = ConfigDict(extra="forbid")

    ids: Annotated[list[str], Field(min_length=1, max_length=MOST_IDS)]
    collection: Text | None = None


class RemovedOne(BaseModel):
    removed: Literal[1]


class Removed(BaseModel):
    removed: int
    missing: Annotated[list[str], Field(description="Ids that were not there.")]
