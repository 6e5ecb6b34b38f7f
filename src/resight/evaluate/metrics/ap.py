"""Average precision, taken at the hits.

    ap   = (1 / P)         Σ_{r: rank r is a hit} Prec@r
    ap@k = (1 / min(k, P)) Σ_{r ≤ k: rank r is a hit} Prec@r

Prec@r is the share of hits among the first r ranks and P the number of positives. A positive that is not in
the ranking adds nothing. This is the AP of ILIAS and MSLS; the revisited benchmark's is `ap_trapezoid`.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from resight.evaluate.metrics import Overlaps, count_within, require_rank
from resight.types import IntArray


@dataclass(frozen=True)
class Config:
    at: float | None = None  # k, the number of ranks to count; None: the whole ranking


def build(config: Config) -> "AveragePrecision":
    return AveragePrecision(None if config.at is None else require_rank("ap", config.at))


@dataclass(frozen=True)
class AveragePrecision:
    k: int | None
    localises: ClassVar[bool] = False

    @property
    def convention(self) -> str:
        if self.k is None:
            return "Mean of the precision at each positive's rank; a positive that is not found counts 0."
        return (
            f"Sum of the precision at each positive's rank within the first {self.k}, divided by the number of "
            f"positives or by {self.k} where that is smaller."
        )

    def score(self, ranks: IntArray, positives: int, _overlaps: Overlaps | None = None) -> float:
        reachable = positives if self.k is None else min(self.k, positives)
        return float(precision_at_hits(ranks[: count_within(ranks, self.k)]).sum() / reachable)


def precision_at_hits(ranks: IntArray) -> NDArray[np.float64]:
    """Prec@r at the rank r of each hit, in their order."""
    return np.arange(1, len(ranks) + 1) / ranks
