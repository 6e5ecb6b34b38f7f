"""Share of the positives found within the first ranks.

    recall_fraction@k = (hits within the first k ranks) / P

P is the number of positives, so with P > k even a perfect ranking stays below 1.
"""

from dataclasses import dataclass
from typing import ClassVar

from resight.evaluate.metrics import Overlaps, count_within, require_rank
from resight.types import IntArray


@dataclass(frozen=True)
class Config:
    at: float | None = None  # k, the number of ranks to count (required)


def build(config: Config) -> "RecallFraction":
    return RecallFraction(require_rank("recall_fraction", config.at))


@dataclass(frozen=True)
class RecallFraction:
    k: int
    localises: ClassVar[bool] = False

    @property
    def convention(self) -> str:
        return f"Share of all positives that are within the first {self.k}."

    def score(self, ranks: IntArray, positives: int, _overlaps: Overlaps | None = None) -> float:
        return count_within(ranks, self.k) / positives
