"""Nearest neighbours that are clearly nearer than the second: Lowe's ratio test, IJCV 2004.

    keep (i, j) if  ‖q_i − x_j‖ < ratio · ‖q_i − x_k‖   for every other k

and, if mutual, only where i is the nearest to j, too. For SIFT 0.9, for XFeat 0.95.
"""

from dataclasses import dataclass

import numpy as np

from resight.kernels import dispatch, numpy_reference
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
        mutual = self.mutual and mutual
        if query.rows.dtype == image.rows.dtype == np.int8:
            return dispatch.pair_points(query.rows, image.rows, self.ratio, mutual)
        if len(query.rows) < 2 or len(image.rows) < 2:
            return np.zeros((0, 2), np.int64)
        return numpy_reference.pair_points(query.vectors, image.vectors, self.ratio, mutual)
