"""Precision at k as the revisited Oxford and Paris benchmark counts it.

    precision_revisited@k = (hits within the first κ ranks) / κ,   κ = min(k, rank of the last positive)

The benchmark ranks the whole database, so that every positive has a rank. In a ranking that was cut short, a
positive that is missing would come after its end; κ is then k. Cutting a ranking below its k-th rank thus
never changes the figure. Radenović et al., Revisiting Oxford and Paris, CVPR 2018.
"""

from dataclasses import dataclass
from typing import ClassVar

from resight.evaluate.metrics import Overlaps, count_within, require_rank
from resight.types import IntArray


@dataclass(frozen=True)
class Config:
    at: float | None = None  # k, the number of ranks to count (required)


def build(config: Config) -> "RevisitedPrecision":
    return RevisitedPrecision(require_rank("precision_revisited", config.at))


@dataclass(frozen=True)
class RevisitedPrecision:
    k: int
    localises: ClassVar[bool] = False

    @property
    def convention(self) -> str:
        return (
            f"Positives within the first {self.k}, divided by {self.k} or by the rank of the last positive where that "
            "is smaller, as in the revisited Oxford and Paris benchmark."
        )

    def score(self, ranks: IntArray, positives: int, _overlaps: Overlaps | None = None) -> float:
        cutoff = min(self.k, int(ranks[-1])) if len(ranks) == positives else self.k
        return count_within(ranks, cutoff) / cutoff
