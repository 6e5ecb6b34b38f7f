"""The values that the stages pass on to each other.

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
    """An image before it is decoded: its file, part and attributes."""

    id: str
    path: Path
    box: Box | None = None
    attributes: Mapping[str, Attribute] = field(default_factory=dict)  # label, lat, lon, set, …
    listed: tuple[int, int] | None = field(default=None, compare=False)  # bytes and modified_ns, if a listing gave them
    unsaid: frozenset[str] = frozenset()  # attributes that stay unset even if the file's EXIF has them


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
    """A file that was skipped, and the reason."""

    path: str
    reason: str


@dataclass(frozen=True)
class Judgement:
    """Ground truth of one query: `grades` above 0 are positives; metrics drop `ignored` ids from the ranking."""

    grades: Mapping[str, int]
    ignored: frozenset[str] = frozenset()
    boxes: Mapping[str, Box] = field(default_factory=dict)  # of the instance in a positive, if known


@dataclass(frozen=True)
class Dataset:
    name: str
    database: tuple[ImageRef, ...]
    queries: tuple[ImageRef, ...]
    judgements: Mapping[str, Judgement]  # by query id; a query without positives has no grades
    skipped: tuple[Skipped, ...] = ()  # files that the listing of the images skipped


@dataclass(frozen=True)
class Features:
    """The output of a backbone for a batch of images of one shape.

    A dense backbone fills `grid`; one that detects key points fills `points`, in batches of one image.
    """

    ids: tuple[str, ...]
    patches: NDArray[Any]  # [B, N, D] float32 (uint8 for SIFT)
    sizes: NDArray[np.int32]  # [B, 2] width, height of the original
    grid: tuple[int, int] | None = None  # rows, columns; N = rows × columns
    points: FloatArray | None = None  # [B, N, 4] x, y, size, angle in pixels of the original
    cls: FloatArray | None = None  # [B, D]
    attention: FloatArray | None = None  # [B, N]
    covers: FloatArray | None = None  # [B, 4] the box of the original under the grid; None: the whole image
    head: FloatArray | None = None  # [B, P] the network's own image embedding


@dataclass(frozen=True)
class Descriptors:
    """Rows that describe images: one or many per image; row `i` belongs to `ids[owners[i]]`."""

    ids: tuple[str, ...]
    vectors: NDArray[Any]  # [n, D]
    owners: NDArray[np.int32]  # [n], not decreasing
    boxes: FloatArray | None = None  # [n, 4]
    weights: FloatArray | None = None  # [n]
    points: FloatArray | None = None  # [n, 4] x, y, size, angle of a local feature
    words: NDArray[np.int32] | None = None  # [n] visual word
    seeds: FloatArray | None = None  # [n, 4] the first patch of a token that merges several; `boxes` spans them all
    space: str = ""  # fingerprint of the encoding; rows of two spaces are never compared

    def __len__(self) -> int:
        return len(self.vectors)


@dataclass(frozen=True)
class Query:
    """An encoded query: one Descriptors per branch, all of the same image."""

    id: str
    size: tuple[int, int]  # width and height of the original
    outline: Box  # the part that is searched for: the given box, or the whole image
    descriptors: tuple[Descriptors, ...]
    attributes: Mapping[str, Attribute] = field(default_factory=dict)  # lat, lon, heading, …
    patches: Descriptors | None = None  # every patch as a token, if an encoder has patches


@dataclass(frozen=True)
class Match:
    """Local features of a query and an image that one geometric model explains."""

    query_id: str
    image_id: str
    inliers: int
    transform: NDArray[np.float64]  # [3, 3] query → image, or the fundamental matrix, see `model`
    points: FloatArray  # [inliers, 4] x, y in the query, x, y in the image
    model: str = "homography"  # homography | fundamental
    tentative: int = 0  # matches before the model


@dataclass(frozen=True)
class Ranking:
    """Images in order of score, and what the stages have found out about them."""

    query_id: str
    ids: tuple[str, ...]
    scores: FloatArray  # [n], not increasing
    boxes: Mapping[str, Box] = field(default_factory=dict)
    seconds: Mapping[str, float] = field(default_factory=dict)  # stage → time
    signals: Mapping[str, Mapping[str, float]] = field(default_factory=dict)  # id → named scores of the stages
    matches: Mapping[str, Match] = field(default_factory=dict)
    probabilities: Mapping[str, float] = field(default_factory=dict)
    proof: str = ""  # why the shortlist is exact, or that this is not proven; empty if the index does not report it
    regions: Mapping[str, Box] = field(default_factory=dict)  # id → its best region, if images are split
    located_by: Mapping[str, str] = field(default_factory=dict)  # id → source of its box (search/locate_boxes.py)


@dataclass(frozen=True)
class Positions:
    """Where images were taken; images without a position are left out."""

    ids: tuple[str, ...]
    lats: NDArray[np.float64]  # [n] degrees
    lons: NDArray[np.float64]  # [n] degrees
    headings: NDArray[np.float64]  # [n] view direction, degrees clockwise from north; NaN: unknown

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True)
class PositionEstimate:
    """Where a query was taken, estimated from the positions of the images that match it."""

    lat: float
    lon: float
    metres: float  # radius that contains the true position with a probability of `coverage`
    coverage: float = 0.9
    probability: float = 0.0  # that the collection contains the place, and that it is this one
    known: bool = False  # False: "don't know"; lat and lon are a best guess
    support: tuple[str, ...] = ()  # ids of the images used, best first


@dataclass(frozen=True)
class TokenMatches:
    """For each token of a query, the most similar token of an image.

    `boxes` span all patches of a token, `seeds` are its first patches.
    """

    query_id: str
    image_id: str
    pairs: IntArray  # [Kq, 2] query token, image token
    similarities: FloatArray  # [Kq] their dot product
    support: FloatArray  # [Kq] how far the similarity exceeds that of the query token with most image tokens
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
    region: Box | None = None  # the best matching region, if images are split into regions
    located_by: str = ""  # source of the box: homography, points, tokens or region


@dataclass(frozen=True)
class Hit:
    """One result of a search."""

    id: str
    path: Path
    score: float
    probability: float | None  # that query and image show the same instance; None: not calibrated
    box: Box | None = None
    attributes: Mapping[str, Attribute] = field(default_factory=dict)
    stages: Mapping[str, float] = field(default_factory=dict)  # stage → its score
    located_by: str = ""  # source of the box: homography, points, tokens or region


@dataclass(frozen=True)
class Choice:
    """A plug-in by name, with its settings."""

    name: str
    settings: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Branch:
    """One way to describe an image. Branches with the same encoder share its forward pass.

    `weight` is the branch's weight in the shortlist; rows of a branch with weight 0 serve reranking only. `index`
    replaces the recipe's index for this branch. `regions` splits database images into regions, `query_regions` the
    query; without them, the branch describes the whole image.
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
