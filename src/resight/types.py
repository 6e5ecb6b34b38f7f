"""Every value that flows between the stages.

images ─ data ─▶ Picture ─ encode ─▶ Features ─▶ Descriptors ─ store, index ─▶ Ranking ─ search ─▶ Hit
                                                                              └▶ Match, TokenMatches ─▶ Evidence

Conventions: ids are strings; a higher score is better; boxes are (x0, y0, x1, y1) in pixels of the
original image after EXIF rotation; arrays state their shape and dtype where they are declared.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Box = tuple[float, float, float, float]
Role = Literal["database", "query"]  # the two sides of a search may be encoded differently
Attribute = str | int | float | bool
FloatArray = NDArray[np.float32]
IntArray = NDArray[np.int64]


@dataclass(frozen=True)
class ImageRef:
    """Where an image is and what is known about it before it is decoded."""

    id: str
    path: Path
    box: Box | None = None
    attributes: Mapping[str, Attribute] = field(default_factory=dict)  # label, lat, lon, set, …
    listed: tuple[int, int] | None = field(default=None, compare=False)  # bytes and modified_ns, where a listing tells
    unsaid: frozenset[str] = frozenset()  # attributes that it is to have none of, whatever the file's own EXIF says


@dataclass(frozen=True)
class Picture:
    """A decoded image. `pixels` may be smaller than `size` when a large file was decoded reduced."""

    ref: ImageRef
    pixels: NDArray[np.uint8]  # [H, W, 3] RGB
    size: tuple[int, int]  # width and height of the original, after EXIF rotation
    sha256: str = ""  # of the file's bytes
    bytes: int = 0
    modified_ns: int = 0


@dataclass(frozen=True)
class Skipped:
    """A file that was passed over, and why."""

    path: str
    reason: str


@dataclass(frozen=True)
class Judgement:
    """What is true of one query: `grades` above 0 are positives; `ignored` ids leave the ranking."""

    grades: Mapping[str, int]
    ignored: frozenset[str] = frozenset()
    boxes: Mapping[str, Box] = field(default_factory=dict)  # where the thing is in a positive, if known


@dataclass(frozen=True)
class Dataset:
    name: str
    database: tuple[ImageRef, ...]
    queries: tuple[ImageRef, ...]
    judgements: Mapping[str, Judgement]  # by query id; a query without positives has no grades
    skipped: tuple[Skipped, ...] = ()  # files that were passed over while the images were listed


@dataclass(frozen=True)
class Features:
    """What a backbone gives for a batch of images of one shape.

    A dense backbone fills `grid`; one that detects key points fills `points` and gives batches of one.
    """

    ids: tuple[str, ...]
    patches: NDArray[Any]  # [B, N, D] float32 (uint8 for SIFT)
    sizes: NDArray[np.int32]  # [B, 2] width, height of the original
    grid: tuple[int, int] | None = None  # rows, columns; N = rows × columns
    points: FloatArray | None = None  # [B, N, 4] x, y, size, angle in pixels of the original
    cls: FloatArray | None = None  # [B, D]
    attention: FloatArray | None = None  # [B, N]
    covers: FloatArray | None = None  # [B, 4] the box of the original that the grid lies on; None: all of it
    head: FloatArray | None = None  # [B, P] the one vector that the network itself makes of an image


@dataclass(frozen=True)
class Descriptors:
    """Rows that describe images: one row an image or many, row `i` belonging to `ids[owners[i]]`."""

    ids: tuple[str, ...]
    vectors: NDArray[Any]  # [n, D]
    owners: NDArray[np.int32]  # [n], not decreasing
    boxes: FloatArray | None = None  # [n, 4]
    weights: FloatArray | None = None  # [n]
    points: FloatArray | None = None  # [n, 4] x, y, size, angle of a local feature
    words: NDArray[np.int32] | None = None  # [n] visual word
    seeds: FloatArray | None = (
        None  # [n, 4] the patch that a token of several patches grew from; `boxes` holds them all
    )
    space: str = ""  # fingerprint of the encoding; rows of two spaces are never compared

    def __len__(self) -> int:
        return len(self.vectors)


@dataclass(frozen=True)
class Query:
    """An encoded query: one Descriptors a branch, all of the same single image."""

    id: str
    size: tuple[int, int]  # width and height of the original
    outline: Box  # what is looked for: the box that was given, or the whole image
    descriptors: tuple[Descriptors, ...]
    attributes: Mapping[str, Attribute] = field(default_factory=dict)  # what is known of it: lat, lon, heading, …
    patches: Descriptors | None = None  # every patch of it as a token, where an encoder has patches


@dataclass(frozen=True)
class Match:
    """Local features of a query and an image that one geometric model explains."""

    query_id: str
    image_id: str
    inliers: int
    transform: NDArray[np.float64]  # [3, 3] query → image; the fundamental matrix when model says so
    points: FloatArray  # [inliers, 4] x, y in the query, x, y in the image
    model: str = "homography"  # homography | fundamental
    tentative: int = 0  # matches before the model


@dataclass(frozen=True)
class Ranking:
    """Images in order, and what each stage has found out about them on the way."""

    query_id: str
    ids: tuple[str, ...]
    scores: FloatArray  # [n], not increasing
    boxes: Mapping[str, Box] = field(default_factory=dict)
    seconds: Mapping[str, float] = field(default_factory=dict)  # stage → time
    signals: Mapping[str, Mapping[str, float]] = field(default_factory=dict)  # id → what speaks for it, by name
    matches: Mapping[str, Match] = field(default_factory=dict)
    probabilities: Mapping[str, float] = field(default_factory=dict)
    proof: str = ""  # why the shortlist is exact, or that it is not proven; empty where an index does not say
    regions: Mapping[str, Box] = field(default_factory=dict)  # id → the region that won, where images are cut
    located_by: Mapping[str, str] = field(default_factory=dict)  # id → what its box comes from, see search/locate.py


@dataclass(frozen=True)
class Positions:
    """Where images were taken; those that nothing is known of are not listed."""

    ids: tuple[str, ...]
    lats: NDArray[np.float64]  # [n] degrees
    lons: NDArray[np.float64]  # [n] degrees
    headings: NDArray[np.float64]  # [n] degrees clockwise from north that the camera looked at; NaN: not known

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True)
class PositionEstimate:
    """Where a query was taken, from where the images were that it was found in."""

    lat: float
    lon: float
    metres: float  # radius that holds the truth with a probability of `coverage`
    coverage: float = 0.9
    probability: float = 0.0  # that the place is in the collection, and is this one
    known: bool = False  # False: "don't know"; lat and lon are then the best guess
    support: tuple[str, ...] = ()  # ids of the images that it rests on, best first


@dataclass(frozen=True)
class TokenMatches:
    """For each token of a query the token of an image that is most like it.

    `boxes` hold all patches that a token stands for, `seeds` the one patch that it grew from.
    """

    query_id: str
    image_id: str
    pairs: IntArray  # [Kq, 2] query token, image token
    similarities: FloatArray  # [Kq] their dot product
    support: FloatArray  # [Kq] how far that lies above what the query token has in common with most image tokens
    query_boxes: FloatArray  # [Kq, 4]
    query_seeds: FloatArray  # [Kq, 4]
    image_boxes: FloatArray  # [K, 4]
    image_seeds: FloatArray  # [K, 4]


@dataclass(frozen=True)
class Evidence:
    query_id: str
    image_id: str
    box: Box | None = None
    heat: FloatArray | None = None  # [h, w] in 0..1 over the image
    match: Match | None = None
    probability: float | None = None
    query_heat: FloatArray | None = None  # [h, w] in 0..1 over the query
    tokens: TokenMatches | None = None
    region: Box | None = None  # that won, where images are cut
    located_by: str = ""  # what the box comes from: homography, points, tokens or region


@dataclass(frozen=True)
class Hit:
    """One answer of a search."""

    id: str
    path: Path
    score: float
    probability: float | None  # that query and image show the very same thing; None: not calibrated
    box: Box | None = None
    attributes: Mapping[str, Attribute] = field(default_factory=dict)
    stages: Mapping[str, float] = field(default_factory=dict)  # stage → its score
    located_by: str = ""  # what the box comes from: homography, points, tokens or region


@dataclass(frozen=True)
class Choice:
    """A plug-in by name, with its settings."""

    name: str
    settings: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Branch:
    """One way to describe an image. Branches with the same encoder share its forward pass.

    `weight` is the branch's say in the shortlist; 0 keeps its rows for reranking alone. `index` is how its rows are
    found, where that differs from the recipe's. `regions` cuts images of the database, `query_regions` the query; what
    is not cut is described whole.
    """

    encoder: Choice
    descriptor: Choice
    transforms: tuple[Choice, ...] = ()
    weight: float = 1.0
    index: Choice | None = None
    regions: Choice | None = None
    query_regions: Choice | None = None


@dataclass(frozen=True)
class Recipe:
    name: str
    branches: tuple[Branch, ...]
    data: Choice | None = None
    fusion: Choice | None = None
    store: Choice = Choice("lance")
    index: Choice = Choice("exact")
    rerankers: tuple[Choice, ...] = ()
    metrics: tuple[str, ...] = ()
    train: Choice | None = None
