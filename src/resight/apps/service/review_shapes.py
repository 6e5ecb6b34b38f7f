"""What the routes of reviews take and answer, as the OpenAPI description shows it."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from resight.apps.service.shapes import Size, Value
from resight.audit.votes import Verdict

Kind = Literal["copy", "near_copy", "same"]
Name = Annotated[str, Field(max_length=200, description="The name that the votes are kept under.")]


class VoteFields(BaseModel):
    model_config = ConfigDict(extra="forbid")
    reviewer: Name
    pair: Annotated[int, Field(description="The number of a pair, from 1.")]
    verdict: Verdict


class UndoFields(BaseModel):
    model_config = ConfigDict(extra="forbid")
    reviewer: Name
    pair: Annotated[int | None, Field(description="The pair whose vote goes, if it is still there; else the last.")] = (
        None
    )


class ReviewInfo(BaseModel):
    name: str
    title: str
    pairs: int


class Progress(BaseModel):
    total: int
    voted: int
    skipped: int
    left: int
    counts: dict[Verdict, int]


class ReviewDetails(ReviewInfo):
    blind: bool
    order: Literal["uncertain", "given"]
    progress: Progress | None


class Side(BaseModel):
    id: str
    size: Size | None
    attributes: dict[str, Value]


class ListedPair(BaseModel):
    number: int
    a: Side
    b: Side
    probability: float | None
    kind: Kind | None


class NextPair(BaseModel):
    pair: ListedPair | None
    last: Annotated[int | None, Field(description="The pair that was voted on last: what an undo takes back.")]
    progress: Progress


class CastVote(BaseModel):
    pair: int
    verdict: Verdict


class Machine(BaseModel):
    probability: float
    kind: Kind


class Voted(BaseModel):
    vote: CastVote
    machine: Machine
    progress: Progress


class TwoReviewers(BaseModel):
    first: str
    second: str
    pairs: int
    agreed: int
    kappa: float | None


class Agreement(BaseModel):
    reviewers: dict[str, int]
    two: list[TwoReviewers]
    pairs: int
    fleiss: float | None
