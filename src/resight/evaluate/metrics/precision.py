"""Share of positives among the first ranks.

    precision@k = (hits within the first k ranks) / k

The divisor is k even if the ranking is shorter or there are fewer positives than k;
`precision_revisited` is the form in which a perfect ranking always scores 1.
"""

from dataclasses import dataclass
from typing import ClassVar

from resight.evaluate.metrics import Overlaps, count_within, require_rank
from resight.types import IntArray


@dataclass(frozen=True)
class Config:
    at: float | None = None  # k, the number of ranks to count (required)


def build(config: Config) -> "Precision":
    return Precision(require_rank("precision", config.at))


@dataclass(frozen=True)
class Precision:
    k: int
    localises: ClassVar[bool] = False

    @property
    def convention(self) -> str:
        return f"Positives within the first {self.k}, divided by {self.k}."

    def score(self, ranks: IntArray, _positives: int, _overlaps: Overlaps | None = None) -> float:
        return count_within(ranks, self.k) / self.k
