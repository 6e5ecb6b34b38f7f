"""Σ_b weight_b · score_b: for branches whose scores have the same scale."""

from dataclasses import dataclass

import numpy as np

from resight.types import FloatArray


@dataclass(frozen=True)
class Config:
    pass


def build(config: Config) -> "Score":  # noqa: ARG001 - there is nothing to set
    return Score()


class Score:
    def fuse(self, scores: FloatArray, weights: FloatArray) -> FloatArray:
        return np.asarray(weights @ scores, np.float32)
