"""Σ_b weight_b · z_b, z the robust z-score of a branch's scores: for branches whose scores differ in scale."""

from dataclasses import dataclass

import numpy as np

from resight.types import FloatArray

USUAL, FEWEST, FARTHEST = 30, 8, 50.0


@dataclass(frozen=True)
class Config:
    pass


def build(config: Config) -> "RobustZscore":  # noqa: ARG001 - there is nothing to set
    return RobustZscore()


class RobustZscore:
    def fuse(self, scores: FloatArray, weights: FloatArray) -> FloatArray:
        return np.asarray(weights @ np.stack([robust_zscore(branch) for branch in scores]), np.float32)


def robust_zscore(scores: FloatArray) -> FloatArray:
    """How far each score [n] lies above the usual one: (s - median) / spread over the best 30, from 0 to FARTHEST.

    The right image stands out from the other candidates even if its score is low. Images that share nothing with the
    query (score 0, such as blank ones) do not count; all are 0 if too few are left. The bound is there because a
    similarity alone proves nothing.
    """
    usual = np.sort(scores)[::-1][:USUAL]
    usual = usual[usual != 0]
    if len(usual) < FEWEST:
        return np.zeros(len(scores), np.float32)
    middle = float(np.median(usual))
    spread = 1.4826 * float(np.median(np.abs(usual - middle))) + 1e-6
    return np.asarray(np.clip((scores - middle) / spread, 0, FARTHEST), np.float32)
