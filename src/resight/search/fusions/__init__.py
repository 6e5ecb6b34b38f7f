"""Fusions: the scores of several branches → one score a candidate, which makes the order of the shortlist.

The probability is not made here: a calibration sees what each branch says by itself.
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
