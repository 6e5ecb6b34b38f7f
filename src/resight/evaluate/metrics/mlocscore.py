"""Mean of three thresholded locscores.

    mlocscore = (locscore@0.3 + locscore@0.4 + locscore@0.5) / 3

Patchify's text calls it an average of IoU; the rows of its tables are this mean.
"""

from dataclasses import dataclass
from typing import ClassVar

from resight.evaluate.metrics import Overlaps, refuse_number
from resight.evaluate.metrics.locscore import LocScore
from resight.types import IntArray

THRESHOLDS = (0.3, 0.4, 0.5)


@dataclass(frozen=True)
class Config:
    at: float | None = None  # takes no number: "mlocscore@0.3" is an error


def build(config: Config) -> "MeanLocScore":
    refuse_number("mlocscore", config.at)
    return MeanLocScore()


@dataclass(frozen=True)
class MeanLocScore:
    localises: ClassVar[bool] = True
    convention: ClassVar[str] = (
        "Mean of locscore at overlap (IoU) 0.3, 0.4 and 0.5; over positives whose true box is known."
    )

    def score(self, ranks: IntArray, positives: int, overlaps: Overlaps | None) -> float:
        scores = [LocScore(threshold).score(ranks, positives, overlaps) for threshold in THRESHOLDS]
        return sum(scores) / len(scores)
