"""How far a candidate's score stands out from those of the other candidates, and how far it leads the best of them.

In: a ranking whose images carry the signal `of`. Adds OF_standout, the robust z-score (`robust_zscore`), and OF_lead,
its standout minus the largest of the others: above 0 for the best candidate alone. An image without the signal gets 0.
The order stays, unless a calibration that weighs them changes it. On some ground every crater resembles every other,
and a high score proves little there; and only one of the candidates is the right one, unless a collection shows it
several times. Of a query at several rotations it compares the candidates of all of them.
"""

from dataclasses import dataclass, replace

import numpy as np

from resight.search.fusions.robust_zscore import USUAL, robust_zscore
from resight.search.gallery import Gallery
from resight.types import FloatArray, Query, Ranking


@dataclass(frozen=True)
class Config:
    of: str = "layout"  # signal to compare; the results are OF_standout and OF_lead


def build(config: Config) -> "Standout":
    return Standout(config)


class Standout:
    candidates = USUAL
    compares_candidates = True  # so that it comes after the rotations of a query have been joined

    def __init__(self, config: Config) -> None:
        self.signals: tuple[str, ...] = (f"{config.of}_standout", f"{config.of}_lead")
        self._of = config.of

    def rerank(self, query: Query, ranking: Ranking, gallery: Gallery) -> Ranking:  # noqa: ARG002 - signals suffice
        found = {name: own[self._of] for name in ranking.ids if self._of in (own := ranking.signals.get(name, {}))}
        values = robust_zscore(np.array(list(found.values()), np.float32)) if found else np.zeros(0, np.float32)
        pairs = zip(values.tolist(), measure_leads(values).tolist(), strict=True)
        added = dict(zip(found, pairs, strict=True))
        signals = {
            name: {**ranking.signals.get(name, {}), **dict(zip(self.signals, added.get(name, (0.0, 0.0)), strict=True))}
            for name in ranking.ids
        }
        return replace(ranking, signals=signals)


def measure_leads(values: FloatArray) -> FloatArray:
    """Each value [n] minus the largest of the others; 0 if there is only one."""
    if len(values) < 2:
        return np.zeros(len(values), np.float32)
    second, first = np.sort(values)[-2:]
    best = np.zeros(len(values), bool)
    best[values.argmax()] = True
    return np.asarray(np.where(best, values - second, values - first), np.float32)
