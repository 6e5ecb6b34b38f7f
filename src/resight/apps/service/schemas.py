"""Responses of the routes, as the OpenAPI description shows them. `serializers` makes the values."""

from typing import Annotated, Literal

from pydantic import BaseModel, Field

from resight.audit.review.votes import Verdict

Text = Annotated[str, Field(max_length=500)]
Box = tuple[float, float, float, float]
Size = tuple[int, int]
Value = str | int | float | bool
Kind = Literal["copy", "near_copy", "same"]
Reviewer = Annotated[str, Field(max_length=200, description="The name that the votes are stored under.")]


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
    craters: Annotated[bool, Field(description="Images show craters whose position on their globe is known.")]
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


class Mosaic(BaseModel):
    """The edges, in degrees, of the picture at /api/mosaic."""

    west: float
    south: float
    east: float
    north: float


class CraterList(BaseModel):
    """One entry per crater, the largest first."""

    images: Annotated[list[list[str]], Field(description="The ids of each crater's images.")]
    labels: list[str]
    lats: list[float]
    lons: list[float]
    diameters_km: list[float]
    radius_km: Annotated[float, Field(description="Radius of the globe.")]
    total: int
    cut: bool
    mosaic: Mosaic | None


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
    other_boxes: list[Box]
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
    significance: Annotated[float, Field(description="-log10 of the number of such models to expect by chance.")]
    transform: Annotated[list[list[float]], Field(description="3 × 3, query to image; or the fundamental matrix.")]
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
    searched: Annotated[int, Field(description="Images that meet the filters.")]
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


class QuarantineResult(BaseModel):
    changed: int
    missing: Annotated[list[str], Field(description="Keys that are not in the quarantine.")]


class RemovedOne(BaseModel):
    removed: Literal[1]


class Removed(BaseModel):
    removed: int
    missing: Annotated[list[str], Field(description="Ids that do not exist.")]


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
