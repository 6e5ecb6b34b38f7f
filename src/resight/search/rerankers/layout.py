"""Late interaction with positions: tokens must agree, and so must their arrangement.

MaxSim lets every token of the query find a partner anywhere. Here the query is laid over a candidate at several scales
s and shifts t, and a partner counts less, the farther it lies from where the query's token lands:

    L(q, x) = max_{s, t}  Σ_{i inside} max_j [ max(0, ⟨q_i, x_j⟩) · exp(-|s p_i + t - p_j|² / 2σ²) ] / (n + Kq / 16)

p are the middles of the tokens' own patches, with the middle of the image as origin and its width and height as units;
n tokens of the query land inside the image, at least a fifth of them. The constant keeps a few lucky tokens at the edge
from winning. Tokens of all images have much in common: the mean token of the candidates is subtracted first. Adds the
signal `layout`, which `balance` and `temperature` may blend with the previous score (`rescore`). There is no rotation:
for views that are all upright (maps, streets, products on a shelf).
"""

import itertools
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from resight.kernels.lay_over import PlacedImages, place_images
from resight.kernels.numpy_reference import Overlay
from resight.plugins import check_range
from resight.search.gallery import Gallery
from resight.search.locate_boxes import require_boxes, require_token_branch
from resight.search.rescoring import check_blend, rescore
from resight.types import Descriptors, FloatArray, IntArray, Query, Ranking

LEAST_INSIDE = 0.2
SCALES = (0.5, 0.63, 0.8, 1.0, 1.25, 1.6, 2.0)


@dataclass(frozen=True)
class Config:
    candidates: int = 100  # first images of the ranking to score again
    branch: int | None = None  # number of the branch whose tokens are compared, from 0; None: the first with tokens
    tolerance: float = 0.15  # how far a token may lie from its partner (σ of a Gaussian), in image sides
    reach: float = 0.375  # largest shift of the query over the image, in image sides
    steps: int = 7  # number of shifts to try along each side
    scales: tuple[float, ...] = SCALES  # scales of the query to try; 1 covers the whole image
    balance: float = 0.0  # weight of the previous score in the blend, 0 to 1; 0: the new score alone
    temperature: float = 0.0  # turn the new score into 1 / (1 + exp(-score / temperature)) first; 0: leave it as it is

    def __post_init__(self) -> None:
        check_range("candidates", self.candidates, 0, 1_000_000)
        check_range("tolerance", self.tolerance, 1e-3, 10)
        check_range("reach", self.reach, 0, 1)
        check_range("steps", self.steps, 1, 101)
        check_range("the number of scales", len(self.scales), 1, 100)
        for scale in self.scales:
            check_range("scales", scale, 0.01, 100)
        check_blend(self.balance, self.temperature)


def build(config: Config) -> "Layout":
    return Layout(config)


class Layout:
    def __init__(self, config: Config) -> None:
        self.candidates = config.candidates
        self.signals: tuple[str, ...] = ("layout",)
        self._config = config
        shifts = np.linspace(-config.reach, config.reach, config.steps, dtype=np.float32)
        self.overlay = Overlay(config.scales, tuple(shifts.tolist()), config.tolerance, LEAST_INSIDE)

    def rerank(self, query: Query, ranking: Ranking, gallery: Gallery) -> Ranking:
        branch = require_token_branch(query, self._config.branch)
        looked_at = ranking.ids[: self.candidates]
        if not looked_at:
            return ranking
        candidates = place_candidates(gallery.descriptors(branch, looked_at))
        scores = score_layout(query.descriptors[branch], candidates, self.overlay)
        found = dict(zip(candidates.ids, scores.tolist(), strict=True))
        return rescore(ranking, found, "layout", self._config.balance, self._config.temperature)


@dataclass(frozen=True)
class Candidates:
    """Images that one query, or several copies of it, are compared with."""

    ids: tuple[str, ...]
    images: PlacedImages | None  # None: none of them has tokens


def place_candidates(chunks: Iterable[Descriptors]) -> Candidates:
    """Rows of images → their tokens and centres, and the mean that all have in common."""
    found = list(chunks)
    ids = tuple(name for chunk in found for name in chunk.ids)
    filled = [chunk for chunk in found if len(chunk)]
    if not filled:
        return Candidates(ids, None)
    counts = np.concatenate([np.bincount(chunk.owners, minlength=len(chunk.ids)) for chunk in found])
    tokens = np.concatenate([np.asarray(chunk.vectors, np.float32) for chunk in filled])
    boxes = np.concatenate([require_boxes(chunk) for chunk in filled])
    patches = np.concatenate([require_boxes(chunk) if chunk.seeds is None else chunk.seeds for chunk in filled])
    offsets = np.concatenate([[0], np.cumsum(counts)])
    mean = np.zeros(tokens.shape[1], np.float32)
    spans = [(start, stop) for start, stop in itertools.pairwise(offsets.tolist()) if start < stop]
    if len(spans) > 1:  # one image does not show what all have in common
        mean = np.mean([tokens[start:stop].mean(axis=0) for start, stop in spans], axis=0, dtype=np.float32)
    return Candidates(ids, place_images(tokens, find_centres(boxes, patches, counts[counts > 0]), offsets, mean))


def score_layout(query: Descriptors, candidates: Candidates, overlay: Overlay) -> FloatArray:
    """The score of every candidate; 0 if it or the query has no tokens."""
    if candidates.images is None or not len(query):
        return np.zeros(len(candidates.ids), np.float32)
    boxes = require_boxes(query)
    centres = find_centres(boxes, boxes if query.seeds is None else query.seeds, np.array([len(query)]))
    return candidates.images.scores(query.vectors, centres, overlay)


def find_centres(boxes: FloatArray, patches: FloatArray, counts: IntArray) -> FloatArray:
    """[n, 2]: the centres of the tokens' own patches, from -0.5 to 0.5 over the area that all tokens of an image cover.

    `counts`: tokens of each image that has some.
    """
    starts: IntArray = np.cumsum(counts) - counts
    low = np.repeat(np.minimum.reduceat(boxes[:, :2], starts), counts, axis=0)
    high = np.repeat(np.maximum.reduceat(boxes[:, 2:], starts), counts, axis=0)
    return np.asarray(((patches[:, :2] + patches[:, 2:]) / 2 - low) / np.maximum(high - low, 1e-6) - 0.5, np.float32)
