"""How far a candidate's score stands out from those of the other candidates: its robust z-score (`robust_zscore`).

In: a ranking whose images carry the signal `of`. Adds the signal `OF_standout`; the order stays, unless a calibration
that weighs it changes it. An image without the signal gets 0. On some ground every crater resembles every other, and a
high score proves little there. Of a query at several rotations it compares the candidates of all of them.
"""

from dataclasses import dataclass, replace

import numpy as np

from resight.search.fusions.robust_zscore import USUAL, robust_zscore
from resight.search.gallery import Gallery
from resight.types import Query, Ranking


@dataclass(frozen=True)
class Config:
    of: str = "layout"  # signal to compare; the result is OF_standout


def build(config: Config) -> "Standout":
    return Standout(config)


class Standout:
    candidates = USUAL
    compares_candidates = True  # so that it comes after the rotations of a query have been joined

    def __init__(self, config: Config) -> None:
        self.signals: tuple[str, ...] = (f"{config.of}_standout",)
        self._of = config.of

    def rerank(self, query: Query, ranking: Ranking, gallery: Gallery) -> Ranking:  # noqa: ARG002 - signals suffice
        found = {name: own[self._of] for name in ranking.ids if self._of in (own := ranking.signals.get(name, {}))}
        values = robust_zscore(np.array(list(found.values()), np.float32)).tolist() if found else []
        added = dict(zip(found, values, strict=True))
        (signal,) = self.signals
        signals = {name: {**ranking.signals.get(name, {}), signal: added.get(name, 0.0)} for name in ranking.ids}
        return replace(ranking, signals=signals)
