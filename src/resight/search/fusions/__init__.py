"""Fusions: the scores of several branches → one score per candidate, which orders the shortlist.

Probabilities come later: a calibration weighs the signals of each branch by itself.
"""

from typing import Any, Protocol

from resight import plugins
from resight.types import FloatArray


class Fusion(Protocol):
    def fuse(self, scores: FloatArray, weights: FloatArray) -> FloatArray:
        """scores [branches, candidates], weights [branches] → [candidates]. Higher is better, in and out."""
        ...


def build(name: str, **settings: Any) -> Fusion:
    fusion: Fusion = plugins.load(__name__, name, settings)
    return fusion
