"""Unchanged local features, for geometric verification.

Out: vectors [n, D] int8 and points [n, 4]. Each row is scaled so that its largest entry is 127: only
the direction counts, and geometric verification normalises the rows again.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from resight.errors import RecipeError
from resight.plugins import check_range
from resight.types import Descriptors, Features, FloatArray, Role


@dataclass(frozen=True)
class Config:
    limit: int = 1000  # most rows per image, in the encoder's order (strongest first where it sorts)

    def __post_init__(self) -> None:
        check_range("limit", self.limit, 2, 1_000_000)


def build(config: Config) -> "Local":
    return Local(config.limit)


class Local:
    def __init__(self, limit: int) -> None:
        self.fingerprint = f"local(limit={limit})"
        self._limit = limit

    def describe(self, features: Features, role: Role) -> Descriptors:  # noqa: ARG002 - both sides alike
        if features.points is None:
            raise RecipeError(
                "the descriptor 'local' needs key points, and this encoder has none",
                expected="an encoder that detects key points, such as sift",
                actual="a grid of patches",
                fix="put another encoder into this branch",
            )
        count = min(features.patches.shape[1], self._limit)
        rows = features.patches[:, :count].reshape(-1, features.patches.shape[2])
        return Descriptors(
            ids=features.ids,
            vectors=to_int8(rows),
            owners=np.repeat(np.arange(len(features.ids), dtype=np.int32), count),
            points=features.points[:, :count].reshape(-1, 4),
        )


def to_int8(vectors: FloatArray) -> NDArray[np.int8]:
    largest = np.maximum(np.abs(vectors).max(axis=1, keepdims=True, initial=0), 1e-12)
    return np.asarray(np.round(vectors * (127 / largest)), np.int8)
