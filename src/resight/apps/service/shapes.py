"""What the service answers, as the OpenAPI description shows it. `telling` makes the values."""

from typing import Literal

from pydantic import BaseModel

Box = tuple[float, float, float, float]
Size = tuple[int, int]
Value = str | int | float | bool


class ErrorDetails(BaseModel):
    problem: str
    expected: str
    actual: str
    fix: str


class Error(BaseModel):
    error: ErrorDetails
    request_id: str


class Cluster(BaseModel):
    """Of a service that searches on Ray."""

    nodes: int  # that hold shards
    shards: int
    replicas: int  # that can be asked
    wanted: int  # replicas that there would be, if there were room and nodes for all


class Health(BaseModel):
    status: Literal["ok", "stopping"]
    version: str
    images: int | None
    collections: list[str]
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


class AskedQuery(BaseModel):
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
    query: AskedQuery
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
    name: str  # its folder, below the one that is served
    modified: float


class TrainingCurves(BaseModel):
    name: str
    steps: list[int]
    losses: list[float | None]  # None: not a number
    rates: list[float]
    validated: list[int]  # steps after which a validation was made
    validations: list[float | None]
    epoch: int  # from 1
    seconds: float
