"""Nearest neighbours that are clearly nearer than the second: Lowe's ratio test, IJCV 2004.

    keep (i, j) if  ‖q_i − x_j‖ < ratio · ‖q_i − x_k‖   for every other k

and, if mutual, only where i is the nearest to j, too. For SIFT 0.9, for XFeat 0.95.
"""

from dataclasses import dataclass

import numpy as np

from resight.plugins import check_range
from resight.search.matchers import LocalFeatures, Pairs


@dataclass(frozen=True)
class Config:
    ratio: float = 0.9  # keep a match if its distance is below this share of the second-best's
    mutual: bool = True  # keep a match only if each key point is the other's nearest

    def __post_init__(self) -> None:
        check_range("ratio", self.ratio, 0.01, 1)


def build(config: Config) -> "Ratio":
    return Ratio(config.ratio, config.mutual)


@dataclass(frozen=True)
class Ratio:
    ratio: float = 0.9
    mutual: bool = True

    def match(self, query: LocalFeatures, image: LocalFeatures, mutual: bool = True) -> Pairs:
        """One matrix product serves both tests."""
        if len(query.vectors) < 2 or len(image.vectors) < 2:
            return np.zeros((0, 2), np.int64)
        similarity = query.vectors @ image.vectors.T
        rows = np.arange(len(similarity))
        nearest = similarity.argmax(axis=1)
        best = similarity[rows, nearest]
        similarity[rows, nearest] = -np.inf
        second = similarity.max(axis=1)
        similarity[rows, nearest] = best
        # ‖a - b‖² = 2 - 2⟨a, b⟩ for unit rows, so that the ratio of distances needs no distance.
        kept = np.flatnonzero((1 - best) < self.ratio**2 * (1 - second))
        if self.mutual and mutual:  # for the columns that are left: a pass down every column would cost as much
            kept = kept[similarity[:, nearest[kept]].argmax(axis=0) == kept]
        kept = kept[np.argsort(-best[kept], kind="stable")]
        return np.stack([kept, nearest[kept]], axis=1)
