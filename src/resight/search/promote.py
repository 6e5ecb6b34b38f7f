"""New scores for the candidates of a ranking: they come first, by these; the rest keeps its order below them."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from resight.types import Ranking


def promote(ranking: Ranking, found: Mapping[str, float], signal: str) -> Ranking:
    """`found` holds the new score of every image that was looked at; it also becomes the signal of that name."""
    scores = np.array([found.get(name, 0.0) for name in ranking.ids], np.float32)
    rest = np.array([name not in found for name in ranking.ids], bool)
    if found and rest.any():
        # Scores of two kinds cannot be compared: those of the rest are moved under the lowest of the others.
        scores[rest] = ranking.scores[rest] - ranking.scores[rest].max() + min(found.values()) - 1e-3
    order = np.argsort(-scores, kind="stable")
    signals = {
        name: {**ranking.signals.get(name, {}), **({signal: found[name]} if name in found else {})}
        for name in ranking.ids
    }
    return replace(ranking, ids=tuple(ranking.ids[row] for row in order), scores=scores[order], signals=signals)
