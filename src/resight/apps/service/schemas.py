"""Request bodies and responses of the routes, as the OpenAPI description shows them. `serializers` makes the values."""

from typing import Annotated, Any, Literal

from fastapi import UploadFile
from pydantic import BaseModel, ConfigDict, Field, model_validator

from resight.audit.review.votes import Verdict

Text = Annotated[str, Field(max_length=500)]
JsonText = Annotated[str, Field(max_length=2**20)]
Box = tuple[float, float, float, float]
Size = tuple[int, int]
Value = str | int | float | bool
Kind = Literal["copy", "near_copy", "same"]
Reviewer = Annotated[str, Field(max_length=200, description="The name that the votes are stored under.")]
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


class ErrorDetails(BaseModel):
    problem: str
    expected: str
    actual: str
    fix: str


class Error(BaseModel):
    error: ErrorDetails
    request_id: str


class Cluster(BaseModel):
    """The state of a service that searches on Ray."""

    nodes: int  # that hold shards
    shards: int
    replicas: int  # that answer
    wanted: int  # replicas with enough nodes and memory for all


class Health(BaseModel):
    status: Literal["ok", "degraded", "stopping"]
    version: str
    ready: Annotated[bool, Field(description="At least one collection can be searched.")]
    faults: Annotated[dict[str, list[str]], Field(description="What is wrong, by the name of the collection.")]
    images: int | None
    collections: list[str]
    quarantined: Annotated[int | None, Field(description="Uploads in quarantine: see /api/quarantine.")]
    cluster: Cluster | None = None


class CollectionInfo(BaseModel):
    name: str
    images: int
    recipe: str
    encoders: list[str]
    positions: bool
    reads: list[str]
    writable: bool


class CommonValue(BaseModel):
    value: Value
    count: int


class AttributeInfo(BaseModel):
    name: str
    kind: Literal["number", "text", "boolean"]
    count: int
    min: float | None = None
    max: float | None = None
    values: list[CommonValue] = []


class Attributes(BaseModel):
    attributes: list[AttributeInfo]


class PositionList(BaseModel):
    ids: list[str]
    lats: list[float]
    lons: list[float]
    headings: list[float | None]
    total: int
    cut: bool


class Record(BaseModel):
    id: str
    path: str | None
    size: Size
    bytes: int
    sha256: str
    attributes: dict[str, Value]


class ImagePage(BaseModel):
    images: list[Record]
    next: str | None
    total: int


class Hit(BaseModel):
    id: str
    path: str | None
    score: float
    probability: float | None
    box: Box | None
    attributes: dict[str, Value]
    stages: dict[str, float]
    located_by: str
    size: Size


class QueryInfo(BaseModel):
    id: str
    size: Size
    box: Box | None
    thumbnail: str | None
    attributes: dict[str, Value]


class Position(BaseModel):
    lat: float
    lon: float
    metres: float
    coverage: float
    probability: float
    known: bool
    support: list[str]


class PointMatch(BaseModel):
    model: str
    inliers: int
    tentative: int
    points: list[tuple[float, float, float, float]]


class Heat(BaseModel):
    rows: int
    columns: int
    values: str


class PartPair(BaseModel):
    query: Box
    image: Box
    similarity: float
    support: float


class Sizes(BaseModel):
    query: Size
    image: Size


class Why(BaseModel):
    id: str
    probability: float | None
    box: Box | None
    region: Box | None
    located_by: str
    stages: dict[str, float]
    seconds: dict[str, float]
    match: PointMatch | None
    heat: Heat | None
    query_heat: Heat | None
    pairs: list[PartPair]
    sizes: Sizes


class SearchAnswer(BaseModel):
    collection: str
    version: int
    images: int
    query: QueryInfo
    hits: list[Hit]
    seconds: dict[str, float]
    proof: str
    position: Position | None
    stage: Literal["shortlist", "verified"]
    why: dict[str, Why] | None


class SessionState(BaseModel):
    needs_key: bool
    signed_in: bool
    may_write: bool


class Report(BaseModel):
    name: str
    title: str
    modified: float


class Training(BaseModel):
    name: str  # its folder, relative to the one that is served
    modified: float


class TrainingCurves(BaseModel):
    name: str
    steps: list[int]
    losses: list[float | None]  # None: not a number
    rates: list[float]
    validated: list[int]  # steps after which a validation ran
    validations: list[float | None]
    epoch: int  # from 1
    seconds: float


class SkippedFile(BaseModel):
    path: str
    reason: str


class JobInfo(BaseModel):
    id: str
    kind: Literal["add", "update"]
    collection: str
    state: Literal["waiting", "running", "done", "failed", "cancelled"]
    done: int
    total: int
    added: int
    updated: int
    quarantined: Annotated[int, Field(description="Files that could not be added and are kept: see /api/quarantine.")]
    skipped: list[SkippedFile]
    error: Annotated[str | None, Field(description="Why the job waits or has failed.")]
    created: Annotated[float, Field(description="Seconds since 1970.")]
    finished: float | None


class JobAnswer(BaseModel):
    job: JobInfo


class QuarantinedFile(BaseModel):
    """An accepted upload that could not be added."""

    key: str
    job: str
    collection: str
    id: str
    name: str
    bytes: int
    reason: str
    since: Annotated[float, Field(description="When it was accepted, in seconds since 1970.")]


class QuarantineBody(Body):
    keys: Annotated[list[Annotated[str, Field(max_length=80)]], Field(min_length=1, max_length=1000)]
    collection: Text | None = None


class QuarantineResult(BaseModel):
    changed: int
    missing: Annotated[list[str], Field(description="Keys that are not in the quarantine.")]


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


class RemovedOne(BaseModel):
    removed: Literal[1]


class Removed(BaseModel):
    removed: int
    missing: Annotated[list[str], Field(description="Ids that do not exist.")]


class VoteFields(Body):
    reviewer: Reviewer
    pair: Annotated[int, Field(description="The number of a pair, from 1.")]
    verdict: Verdict


class UndoFields(Body):
    reviewer: Reviewer
    pair: Annotated[
        int | None, Field(description="The pair whose vote is removed, if it still exists; by default the last.")
    ] = None


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
    last: Annotated[int | None, Field(description="The pair of the last vote: the one that an undo removes.")]
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
