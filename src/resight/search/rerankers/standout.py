"""How far a candidate's score stands out from those of the other candidates, and how far it leads the best of them.

In: a ranking whose images carry the signal `of`. Adds OF_standout, the robust z-score (`robust_zscore`), and OF_lead,
its standout minus the largest of the others: above 0 for the best candidate alone; or OF_excess, how far the signal
itself lies above the median candidate's. An image without the signal gets 0.
The order stays, unless a calibration that weighs them changes it. On some ground every crater resembles every other,
and a high score proves little there; and only one of the candidates is the right one, unless a collection shows it
several times. Of a query at several rotations it compares the candidates of all of them.
"""

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from resight.search.fusions.robust_zscore import USUAL, robust_zscore
from resight.search.gallery import Gallery
from resight.types import FloatArray, Query, Ranking


@dataclass(frozen=True)
class Config:
    of: str = "layout"  # signal to compare
    measures: tuple[Literal["standout", "lead", "excess"], ...] = (
        "standout",
        "lead",
    )  # results: OF_standout, OF_lead, …


def build(config: Config) -> "Standout":
    return Standout(config)


class Standout:
    candidates = USUAL
    compares_candidates = True  # so that it comes after the rotations of a query have been joined

    def __init__(self, config: Config) -> None:
        self.signals: tuple[str, ...] = tuple(f"{config.of}_{measure}" for measure in config.measures)
        self._of, self._measures = config.of, config.measures

    def rerank(self, query: Query, ranking: Ranking, gallery: Gallery) -> Ranking:  # noqa: ARG002 - signals suffice
        found = {name: own[self._of] for name in ranking.ids if self._of in (own := ranking.signals.get(name, {}))}
        values = np.array(list(found.values()), np.float32)
        added = {
            signal: dict(zip(found, measure(values, kind).tolist(), strict=True))
            for signal, kind in zip(self.signals, self._measures, strict=True)
        }
        signals = {
            name: {
                **ranking.signals.get(name, {}),
                **{signal: of_images.get(name, 0.0) for signal, of_images in added.items()},
            }
            for name in ranking.ids
        }
        return replace(ranking, signals=signals)


def measure(values: FloatArray, kind: str) -> FloatArray:
    """One of the measures for values [n] of the candidates."""
    if not len(values):
        return np.zeros(0, np.float32)
    if kind == "excess":
        return np.asarray(values - np.median(values), np.float32)
    standouts = robust_zscore(values)
    return standouts if kind == "standout" else measure_leads(standouts)


def measure_leads(values: FloatArray) -> FloatArray:
    """Each value [n] minus the largest of the others; 0 if there is only one."""
    if len(values) < 2:
        return np.zeros(len(values), np.float32)
    second, first = np.sort(values)[-2:]
    best = np.zeros(len(values), bool)
    best[values.argmax()] = True
    return np.asarray(np.where(best, values - second, values - first), np.float32)
