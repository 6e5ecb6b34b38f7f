"""Average precision in which a hit counts only as far as its shown box overlaps the object.

    locscore   = (1 / P) Σ_{r: rank r is a hit} Prec@r · IoU_r
    locscore@δ = (1 / P) Σ_{r: rank r is a hit} Prec@r · 1[IoU_r ≥ δ]

IoU_r is the overlap of the box shown at rank r with the true box. Prec@r is counted as in `ap`: a badly
located hit still counts as a hit for the ranks below it. Defined with Patchify.
"""

from dataclasses import dataclass
from typing import ClassVar

from resight.errors import RecipeError
from resight.evaluate.metrics import Overlaps
from resight.evaluate.metrics.ap import precision_at_hits
from resight.types import IntArray


@dataclass(frozen=True)
class Config:
    at: float | None = None  # δ, the IoU that a hit needs; None: weigh each hit by its IoU


def build(config: Config) -> "LocScore":
    if config.at is not None and not 0 < config.at <= 1:
        raise RecipeError(
            "the number of locscore is a threshold on the overlap",
            expected="locscore, or locscore@δ with δ above 0 and up to 1",
            actual=f"locscore@{config.at:g}",
            fix="write for example locscore@0.3",
        )
    return LocScore(config.at)


@dataclass(frozen=True)
class LocScore:
    threshold: float | None
    localises: ClassVar[bool] = True

    @property
    def convention(self) -> str:
        weight = (
            "its overlap (IoU)"
            if self.threshold is None
            else f"1 if its overlap (IoU) is at least {self.threshold:g}, else 0"
        )
        return f"Average precision with each hit weighted by {weight}; over positives whose true box is known."

    def score(self, ranks: IntArray, positives: int, overlaps: Overlaps | None) -> float:
        assert overlaps is not None, "judge gives overlaps to every metric that localises"
        weights = overlaps if self.threshold is None else overlaps >= self.threshold
        return float((precision_at_hits(ranks) * weights).sum() / positives)
