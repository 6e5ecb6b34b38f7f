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

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from resight.plugins import check_range
from resight.search.gallery import Gallery
from resight.search.locate_boxes import require_boxes, require_token_branch, split
from resight.search.rescoring import check_blend, rescore
from resight.types import Descriptors, FloatArray, Query, Ranking
from resight.vectors import l2_normalise

LEAST_INSIDE = 0.2
SCALES = (0.5, 0.63, 0.8, 1.0, 1.25, 1.6, 2.0)


@dataclass(frozen=True)
class Config:
    candidates: int = 100  # first images of the ranking to score again
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

    def rerank(self, query: Query, ranking: Ranking, gallery: Gallery) -> Ranking:
        branch = require_token_branch(query)
        looked_at = ranking.ids[: self.candidates]
        if not looked_at:
            return ranking
        images = list(split(gallery.descriptors(branch, looked_at)))
        found = dict(self._score(query.descriptors[branch], images))
        return rescore(ranking, found, "layout", self._config.balance, self._config.temperature)

    def _score(self, query: Descriptors, images: list[Descriptors]) -> Iterator[tuple[str, float]]:
        described = [image for image in images if len(image)]
        if not len(query) or not described:
            yield from ((image.ids[0], 0.0) for image in images)
            return
        mean = np.zeros(query.vectors.shape[1], np.float32)
        if len(described) > 1:  # one image does not show what all have in common
            mean = np.stack([image.vectors.mean(axis=0) for image in described]).mean(axis=0, dtype=np.float32)
        tokens, centres = subtract_mean(query.vectors, mean), find_centres(query)
        for image in images:
            if not len(image):
                yield image.ids[0], 0.0
                continue
            likeness = np.maximum(tokens @ subtract_mean(image.vectors, mean).T, 0)
            yield image.ids[0], lay_over(likeness, centres, find_centres(image), self._config)


def lay_over(likeness: FloatArray, query: FloatArray, image: FloatArray, config: Config) -> float:
    """The best of all scales and shifts: likeness [Kq, K], centres of the query's and the image's tokens [·, 2]."""
    shifts = np.linspace(-config.reach, config.reach, config.steps, dtype=np.float32)
    by_image = np.ascontiguousarray(likeness.T)[:, None]
    best = 0.0
    for scale in config.scales:
        x, y = (np.float32(scale) * query[:, axis] + shifts[:, None] for axis in (0, 1))  # [shifts, Kq]
        # A Gaussian of the distance is the product of one along x and one along y: [K, shifts, Kq] each. The image's
        # tokens come first, because numpy finds a maximum over the first axis much faster than over the last.
        near_x, near_y = fade(x, image[:, 0], config.tolerance) * by_image, fade(y, image[:, 1], config.tolerance)
        partners = (near_x[:, :, None] * near_y[:, None]).max(axis=0)  # [x shifts, y shifts, Kq]
        inside = (np.abs(x) <= 0.5)[:, None] & (np.abs(y) <= 0.5)[None]
        count = inside.sum(axis=2)
        scores = (partners * inside).sum(axis=2) / (count + len(query) / 16)
        best = max(best, float(np.where(count >= LEAST_INSIDE * len(query), scores, 0).max()))
    return best


def fade(landing: FloatArray, image: FloatArray, tolerance: float) -> FloatArray:
    """landing [shifts, Kq] and image [K] along one side → [K, shifts, Kq]: 1 where they meet, less with distance."""
    return np.asarray(np.exp((landing - image[:, None, None]) ** 2 * np.float32(-0.5 / tolerance**2)), np.float32)


def find_centres(rows: Descriptors) -> FloatArray:
    """[K, 2]: the centres of the tokens' own patches, from -0.5 to 0.5 over the area that all tokens cover."""
    boxes = require_boxes(rows)
    low, high = boxes[:, :2].min(axis=0), boxes[:, 2:].max(axis=0)
    patches = boxes if rows.seeds is None else rows.seeds
    return np.asarray(((patches[:, :2] + patches[:, 2:]) / 2 - low) / np.maximum(high - low, 1e-6) - 0.5, np.float32)


def subtract_mean(vectors: NDArray[np.floating], mean: FloatArray) -> FloatArray:
    """Rows without the mean, of unit length."""
    return l2_normalise(vectors - mean, floor=1e-9)
