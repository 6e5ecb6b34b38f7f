"""A query at several rotations: their rankings in, one ranking out (`merge`).

The pipeline searches the upright query first. If the best of its answers is convincing, it stands; the other rotations
would only cost time. Otherwise each of them is searched and reranked like a query of its own, and every image keeps the
rotation at which its score is highest. The signal `rotation` reports it: turned counter-clockwise by so many degrees,
the query looks like the image. Points that geometry matched at another rotation belong to the turned query, and are
left out.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from resight.types import Ranking

CONVINCING = 0.9  # the probability from which no other rotation is tried
ROTATION = "rotation"


def is_convincing(answer: Ranking) -> bool:
    """Whether the best image of an upright answer is so probable that no other rotation needs to be tried."""
    return bool(answer.ids) and answer.probabilities.get(answer.ids[0], 0.0) >= CONVINCING


def merge(rankings: Sequence[Ranking], degrees: Sequence[float]) -> Ranking:
    """The images of all rankings, as many as the first has, each with its best score; ties go to the first."""
    best: dict[str, tuple[float, int]] = {}
    for number, ranking in enumerate(rankings):
        for name, score in zip(ranking.ids, ranking.scores.tolist(), strict=True):
            if name not in best or score > best[name][0]:
                best[name] = score, number
    names = sorted(best, key=lambda name: -best[name][0])[: len(rankings[0].ids)]
    of = {name: rankings[best[name][1]] for name in names}
    return replace(
        rankings[0],
        ids=tuple(names),
        scores=np.array([best[name][0] for name in names], np.float32),
        signals={
            name: {**ranking.signals.get(name, {}), ROTATION: degrees[best[name][1]]} for name, ranking in of.items()
        },
        matches={name: match for name, match in rankings[0].matches.items() if of.get(name) is rankings[0]},
        boxes={name: ranking.boxes[name] for name, ranking in of.items() if name in ranking.boxes},
        regions={name: ranking.regions[name] for name, ranking in of.items() if name in ranking.regions},
        located_by={name: ranking.located_by[name] for name, ranking in of.items() if name in ranking.located_by},
    )
