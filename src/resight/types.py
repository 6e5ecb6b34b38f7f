"""The values that the stages pass on to each other.

images ─ data ─▶ Picture ─ encode ─▶ Features ─▶ Descriptors ─ store, index ─▶ Ranking ─ search ─▶ Hit
                                                                              └▶ Match, TokenMatches ─▶ Evidence

Conventions: ids are strings; a higher score is better; boxes are (x0, y0, x1, y1) in pixels of the
original image after EXIF rotation; arrays state their shape and dtype where they are declared.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from resight.drawn import Drawer, Drawn, require_drawer

if TYPE_CHECKING:
    from PIL import Image

Box = tuple[float, float, float, float]
"""A rectangle: x0, y0, x1, y1 in pixels of the upright original; x1 and y1 lie beyond the last pixel.

Examples:
    >>> import resight
    >>> tower: resight.Box = (0, 100, 415, 360)
    >>> resight.open("photos.resight").search("photos/eiffel-2.png", k=1, box=tower)[0].id
    'eiffel-2.png'
"""
Role = Literal["database", "query"]  # the two sides of a search may be encoded differently
Attribute = str | int | float | bool
FloatArray = NDArray[np.float32]
IntArray = NDArray[np.int64]


@dataclass(frozen=True)
class ImageRef:
    """An image before it is decoded: its file, part and attributes.

    Attributes:
        id: Its name in the collection.
        path: Its file.
        box: The part to encode; None: the whole image.
        attributes: Values to filter by and to keep: label, lat, lon, set, …
        listed: Bytes and time of change in nanoseconds, if a listing gave them.
        unsaid: Attributes that stay unset even if the file's EXIF has them.

    Examples:
        >>> from pathlib import Path
        >>> import resight
        >>> tower = resight.ImageRef("tower", Path("photos/eiffel-2.png"), attributes={"city": "Paris"})
        >>> photos = resight.open("photos.resight")
        >>> photos.add([tower]).added
        1
        >>> [hit.id for hit in photos.search("query.jpg", where=["city=Paris"])]
        ['tower']
    """

    id: str
    path: Path
    box: Box | None = None
    attributes: Mapping[str, Attribute] = field(default_factory=dict)
    listed: tuple[int, int] | None = field(default=None, compare=False)
    unsaid: frozenset[str] = frozenset()


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
    """A file that was skipped.

    Attributes:
        path: The file.
        reason: Why resight skipped it.
    """

    path: str
    reason: str


@dataclass(frozen=True)
class Judgement:
    """Ground truth of one query.

    Attributes:
        grades: Id → grade; images with a grade above 0 are positives.
        ignored: Ids that metrics drop from the ranking.
        boxes: Id of a positive → where the instance is in it, if known.
    """

    grades: Mapping[str, int]
    ignored: frozenset[str] = frozenset()
    boxes: Mapping[str, Box] = field(default_factory=dict)


@dataclass(frozen=True)
class Dataset:
    name: str
    database: tuple[ImageRef, ...]
    queries: tuple[ImageRef, ...]
    judgements: Mapping[str, Judgement]  # by query id; a query without positives has no grades
    skipped: tuple[Skipped, ...] = ()  # files that the listing of the images skipped


@dataclass(frozen=True)
class Features:
    """A backbone's output for images of one shape: with a `grid` if dense, else with the key points of one image."""

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
    rotation: float = 0.0  # degrees counter-clockwise by which the picture was turned before it was encoded
    turned: Callable[[], tuple["Query", ...]] | None = field(default=None, repr=False, compare=False)  # further ones
    source: Any = field(default=None, repr=False, compare=False)  # the image as it was given, to draw it


@dataclass(frozen=True)
class Match:
    """Local features of a query and an image that one geometric model explains.

    Attributes:
        query_id: The query.
        image_id: The image.
        inliers: Number of distinct points that the model explains; several matches may share one.
        transform: [3, 3] query → image, or the fundamental matrix: see `model`.
        points: [n, 4] x, y in the query, x, y in the image; n is at least `inliers`.
        model: "homography", "similarity" (with its affinity) or "fundamental".
        tentative: Number of matches before the model.
        significance: −log10 of the number of such models to expect by chance; 0 if it shows nothing.
        others: Further instances of the query in the same image, if the recipe looks for them.

    Examples:
        >>> import resight
        >>> answer = resight.open("photos.resight").ask("query.jpg", k=1)
        >>> answer.ranking.matches["eiffel-2.png"].model
        'homography'
    """

    query_id: str
    image_id: str
    inliers: int
    transform: NDArray[np.float64]
    points: FloatArray
    model: str = "homography"
    tentative: int = 0
    significance: float = 0.0
    others: tuple["Match", ...] = ()


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
    other_boxes: Mapping[str, tuple[Box, ...]] = field(default_factory=dict)  # id → boxes of further instances


@dataclass(frozen=True)
class TokenMatches:
    """For each token of a query, the most similar token of an image; `seeds` are the first patches of tokens."""

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
class Evidence(Drawn):
    """Why an image was found; `Answer.explain` returns it.

    Attributes:
        query_id: The query.
        image_id: The image.
        box: Where the object is in the image.
        heat: [h, w] in 0..1 over the image: how well each part matches.
        match: The verified match; None if geometry confirmed none.
        probability: That both show the same object; None: not calibrated.
        query_heat: [h, w] in 0..1 over the query.
        tokens: The pairs of tokens; None if no branch compares tokens.
        region: The best matching region, if images are split into regions.
        located_by: Source of the box: homography, similarity, points, tokens or region.
        drawer: Shows it in a notebook; None: nothing to draw it on.

    Examples:
        >>> import resight
        >>> answer = resight.open("photos.resight").ask("query.jpg", k=1)
        >>> evidence = answer.explain(answer.hits[0])
        >>> evidence.image_id, evidence.located_by, evidence.heat.ndim
        ('eiffel-2.png', 'homography', 2)
    """

    query_id: str
    image_id: str
    box: Box | None = None
    heat: FloatArray | None = None
    match: Match | None = None
    probability: float | None = None
    query_heat: FloatArray | None = None
    tokens: TokenMatches | None = None
    region: Box | None = None
    located_by: str = ""
    drawer: Drawer | None = field(default=None, repr=False, compare=False)


@dataclass(frozen=True)
class Hit(Drawn):
    """One result of a search; a notebook shows its picture.

    Attributes:
        id: The image's name in the collection.
        path: Its file.
        score: Higher is better; comparable within one answer.
        probability: That query and image show the same object; None: not calibrated.
        box: Where the object is in the image; None: not located.
        attributes: The image's label, position and other values.
        stages: Stage → its score.
        located_by: Source of the box: homography, similarity, points, tokens or region.
        other_boxes: Further instances of the object in the image, if the recipe looks for them (`instances`).
        drawer: Used by `explain`; None if nothing refers to the query any more.

    Examples:
        >>> import resight
        >>> hit = resight.open("photos.resight").search("query.jpg", k=1)[0]
        >>> hit.id, hit.probability > 0.98, hit.located_by
        ('eiffel-2.png', True, 'homography')
    """

    id: str
    path: Path
    score: float
    probability: float | None
    box: Box | None = None
    attributes: Mapping[str, Attribute] = field(default_factory=dict)
    stages: Mapping[str, float] = field(default_factory=dict)
    located_by: str = ""
    other_boxes: tuple[Box, ...] = ()
    drawer: Drawer | None = field(default=None, repr=False, compare=False)

    def explain(self) -> "Image.Image":
        """Draw the query beside the image: the box, and the points or parts that match.

        Returns:
            A picture. A notebook shows it; `save` writes a file.

        Raises:
            InputError: The hit does not know its query, as those of a batch of `search`.
            ImageError: The file of the query or of the image is gone.

        Examples:
            >>> import resight
            >>> hit = resight.open("photos.resight").search("query.jpg", k=1)[0]
            >>> hit.explain().save("why.jpg")
        """
        return require_drawer(self.drawer, self.id).draw(self)


@dataclass(frozen=True)
class Choice:
    """A plug-in by name, with its settings.

    Attributes:
        name: The plug-in's name, e.g. "sift".
        settings: Setting → value.
    """

    name: str
    settings: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Branch:
    """One way to describe an image. Branches with the same encoder and photometric step share its forward pass.

    Attributes:
        encoder: The network or the detector of local features.
        descriptor: How its features become descriptors.
        transforms: Steps after it, such as whitening.
        weight: Weight in the shortlist; rows of a branch with weight 0 serve reranking only.
        index: Replaces the recipe's index for this branch.
        regions: Splits database images into regions; None: the branch describes the whole image.
        query_regions: Splits the query likewise.
        photometric: Changes the brightness of what the encoder sees; None: it sees pictures as they are.
    """

    encoder: Choice
    descriptor: Choice
    transforms: tuple[Choice, ...] = ()
    weight: float = 1.0
    index: Choice | None = None
    regions: Choice | None = None
    query_regions: Choice | None = None
    photometric: Choice | None = None


@dataclass(frozen=True)
class Recipe:
    """How to encode and search, and what to evaluate on; `load_recipe` reads it from TOML.

    Attributes:
        name: Its name in tables and messages.
        branches: The ways to describe an image.
        data: The data set to evaluate on.
        fusion: How the rankings of several branches are merged.
        store: Where descriptors are stored.
        index: The index of branches that name none of their own.
        rerankers: Stages after the shortlist, in order.
        metrics: What `resight.evaluate` measures.
        train: How to train a network.
        rotations: At how many rotations a query is searched; 1: upright alone.

    Examples:
        >>> import resight
        >>> [branch.descriptor.name for branch in resight.load_recipe("sift_tokens").branches]
        ['asmk', 'aggregated', 'local', 'tokens', 'local']
    """

    name: str
    branches: tuple[Branch, ...]
    data: Choice | None = None
    fusion: Choice | None = None
    store: Choice = Choice("lance")
    index: Choice = Choice("exact")
    rerankers: tuple[Choice, ...] = ()
    metrics: tuple[str, ...] = ()
    train: Choice | None = None
    rotations: int = 1
