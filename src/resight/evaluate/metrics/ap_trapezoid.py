"""Average precision as the revisited Oxford and Paris benchmark integrates it.

    ap_trapezoid = (1 / P) Σ_j (before_j + after_j) / 2

For the j-th hit, at rank r: after = j / r is the precision with it, before = (j - 1) / (r - 1) the precision
just above it, and 1 where r = 1. P is the number of positives; one that is not in the ranking adds nothing.
Radenović et al., Revisiting Oxford and Paris, CVPR 2018.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from resight.evaluate.metrics import Overlaps, refuse_number
from resight.types import IntArray


@dataclass(frozen=True)
class Config:
    at: float | None = None  # takes no number: "ap_trapezoid@5" is an error


def build(config: Config) -> "TrapezoidalAveragePrecision":
    refuse_number("ap_trapezoid", config.at)
    return TrapezoidalAveragePrecision()


@dataclass(frozen=True)
class TrapezoidalAveragePrecision:
    localises: ClassVar[bool] = False
    convention: ClassVar[str] = (
        "Area under the precision-recall curve by trapezoids, as in the revisited Oxford and Paris benchmark; "
        "a positive that is not found counts 0."
    )

    def score(self, ranks: IntArray, positives: int, _overlaps: Overlaps | None = None) -> float:
        above = ranks - 1  # how many ranks lie above each hit
        earlier = np.arange(len(above))  # how many hits do
        before = np.where(above == 0, 1.0, earlier / np.maximum(above, 1))
        after = (earlier + 1) / (above + 1)
        return float(((before + after) / 2).sum() / positives)
