"""Pairs of key points that are each other's nearest neighbours, and similar enough."""

from dataclasses import dataclass

import numpy as np

from resight.plugins import check_range
from resight.search.matchers import LocalFeatures, Pairs


@dataclass(frozen=True)
class Config:
    least: float = 0.0  # cosine that a match needs; XFeat's authors take 0.82 for sparse key points

    def __post_init__(self) -> None:
        check_range("least", self.least, -1, 1)


def build(config: Config) -> "Mutual":
    return Mutual(config.least)


@dataclass(frozen=True)
class Mutual:
    least: float = 0.0

    def match(self, query: LocalFeatures, image: LocalFeatures, mutual: bool = True) -> Pairs:
        if len(query.vectors) == 0 or len(image.vectors) == 0:
            return np.zeros((0, 2), np.int64)
        similarity = query.vectors @ image.vectors.T
        nearest = similarity.argmax(axis=1)
        rows = np.arange(len(similarity))
        best = similarity[rows, nearest]
        kept = np.flatnonzero(best >= self.least)
        if mutual:  # for the columns that are left
            kept = kept[similarity[:, nearest[kept]].argmax(axis=0) == kept]
        kept = kept[np.argsort(-best[kept], kind="stable")]
        return np.stack([kept, nearest[kept]], axis=1)
