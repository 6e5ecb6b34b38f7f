"""Σ_b weight_b / (depth + rank_b): reciprocal rank fusion, for branches that cannot be compared by their scores.

The best candidates of each branch come to the top, whatever the others score them: so a reranker sees them all.
G. Cormack, C. Clarke, S. Büttcher, Reciprocal rank fusion outperforms Condorcet and individual rank learning methods,
2009; their depth of 60 is the default.
"""

from dataclasses import dataclass

import numpy as np

from resight.plugins import check_range
from resight.types import FloatArray


@dataclass(frozen=True)
class Config:
    depth: int = 60  # constant added to each rank; the larger, the less the first few ranks differ

    def __post_init__(self) -> None:
        check_range("depth", self.depth, 0, 1_000_000)


def build(config: Config) -> "Rank":
    return Rank(config.depth)


class Rank:
    def __init__(self, depth: int) -> None:
        self._depth = depth

    def fuse(self, scores: FloatArray, weights: FloatArray) -> FloatArray:
        # Equal scores share the best of their ranks, so that an image that a branch scores 0 is not its last.
        ranks = np.stack([np.searchsorted(np.sort(-branch), -branch, side="left") + 1 for branch in scores])
        return np.asarray(weights @ (1 / (self._depth + ranks)), np.float32)
