"""Hit rate, which place recognition calls recall.

    recall@k = 1 if any of the first k ranks is a hit, else 0

The share of the positives that are found is `recall_fraction`.
"""

from dataclasses import dataclass
from typing import ClassVar

from resight.evaluate.metrics import Overlaps, count_within, require_rank
from resight.types import IntArray


@dataclass(frozen=True)
class Config:
    at: float | None = None  # k, the number of ranks to count (required)


def build(config: Config) -> "Recall":
    return Recall(require_rank("recall", config.at))


@dataclass(frozen=True)
class Recall:
    k: int
    localises: ClassVar[bool] = False

    @property
    def convention(self) -> str:
        return f"1 when any positive is within the first {self.k}, else 0."

    def score(self, ranks: IntArray, _positives: int, _overlaps: Overlaps | None = None) -> float:
        return float(count_within(ranks, self.k) > 0)
