"""Σ_b weight_b · standout_b: for branches whose scores differ in scale. See `search.shortlist.standout`."""

from dataclasses import dataclass

import numpy as np

from resight.search.shortlist import standout
from resight.types import FloatArray


@dataclass(frozen=True)
class Config:
    pass


def build(config: Config) -> "Standout":  # noqa: ARG001 - there is nothing to set
    return Standout()


class Standout:
    def fuse(self, scores: FloatArray, weights: FloatArray) -> FloatArray:
        return np.asarray(weights @ np.stack([standout(branch) for branch in scores]), np.float32)
