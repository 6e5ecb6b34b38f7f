"""Σ_b weight_b · standout_b: for branches whose scores differ in scale. See `search.shortlist.standout`."""

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
    """How far each score [n] lies above the usual one: (s - median) / spread over the best 30.

    The right image stands out from the other candidates even where its score is low. Images that have nothing in
    common with the query (score 0, such as blank ones) do not take part; 0 where too few do. Bounded, because a
    similarity alone never proves anything.
    """
    usual = np.sort(scores)[::-1][:USUAL]
    usual = usual[usual != 0]
    if len(usual) < FEWEST:
        return np.zeros(len(scores), np.float32)
    middle = float(np.median(usual))
    spread = 1.4826 * float(np.median(np.abs(usual - middle))) + 1e-6
    return np.asarray(np.clip((scores - middle) / spread, 0, FARTHEST), np.float32)
