"""1 / rank of the first positive; 0 if none was found. Its mean over queries is the mean reciprocal rank."""

from dataclasses import dataclass
from typing import ClassVar

from resight.evaluate.metrics import Overlaps, refuse_number
from resight.types import IntArray


@dataclass(frozen=True)
class Config:
    at: float | None = None  # the number after "@" in the metric's name: this metric takes none


def build(config: Config) -> "ReciprocalRank":
    refuse_number("reciprocal_rank", config.at)
    return ReciprocalRank()


@dataclass(frozen=True)
class ReciprocalRank:
    localises: ClassVar[bool] = False  # it needs no boxes
    convention: ClassVar[str] = "1 / rank of the first positive."

    def score(self, ranks: IntArray, _positives: int, _overlaps: Overlaps | None = None, /) -> float:
        return 1 / int(ranks[0]) if len(ranks) else 0.0
