"""One search, from the encoded query to located answers:

shortlist → rerank (verify …) → calibrate → locate
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from resight import ranks
from resight.index import Searcher
from resight.search import calibration as calibrations
from resight.search.calibration import Calibration
from resight.search.locate import locate
from resight.search.rerankers import Gallery, Reranker
from resight.types import FloatArray, Query, Ranking

USUAL, FEWEST, FARTHEST = 30, 8, 50.0

Sizes = Callable[[Sequence[str]], Mapping[str, tuple[int, int]]]  # ids → width, height of the originals


@dataclass(frozen=True)
class Shortlister:
    """The index of one branch: `name` is what its score is called among the signals."""

    name: str
    branch: int
    weight: float
    searcher: Searcher


@dataclass(frozen=True)
class Pipeline:
    shortlisters: tuple[Shortlister, ...]
    rerankers: tuple[Reranker, ...]
    calibration: Calibration | None
    gallery: Gallery
    sizes: Sizes


def search(query: Query, pipeline: Pipeline, k: int, allowed: frozenset[str] | None = None) -> Ranking:
    """The k best images for a query, with probabilities and boxes."""
    clock = _Clock()
    # At least as deep as `standout` looks, so that what an image scores does not depend on how many were asked for.
    depth = max([k, USUAL, *(reranker.candidates for reranker in pipeline.rerankers)])

    ranking = shortlist(query, pipeline.shortlisters, depth, allowed)
    clock.note("shortlist")

    for reranker in pipeline.rerankers:
        ranking = reranker.rerank(query, ranking, pipeline.gallery)
        clock.note(type(reranker).__name__.lower())

    ranking = calibrations.apply(ranking, pipeline.calibration)
    ranking = replace(ranking, ids=ranking.ids[:k], scores=ranking.scores[:k])

    ranking = locate(query, ranking, pipeline.sizes([name for name in ranking.ids if name in ranking.matches]))
    clock.note("locate")
    return replace(ranking, seconds=clock.seconds)


def shortlist(query: Query, shortlisters: Sequence[Shortlister], depth: int, allowed: frozenset[str] | None) -> Ranking:
    """The first candidates: weighted sum of the branches' scores; a branch that did not find an image adds nothing."""
    totals: dict[str, float] = {}
    signals: dict[str, dict[str, float]] = {}
    for part in shortlisters:
        found = part.searcher.search(query.descriptors[part.branch], depth, allowed)
        for name, score in zip(found.ids, found.scores.tolist(), strict=True):
            totals[name] = totals.get(name, 0.0) + part.weight * score
            signals.setdefault(name, {})[part.name] = score
    ranking = ranks.best(query.id, list(totals), np.array(list(totals.values()), dtype=np.float32), depth)
    for name, value in zip(ranking.ids, standout(ranking.scores), strict=True):
        signals[name]["standout"] = value
    return replace(ranking, signals={name: signals[name] for name in ranking.ids})


def standout(scores: FloatArray) -> list[float]:
    """How far each score [n], best first, lies above the usual one: (s - median) / spread over the first 30.

    The right image stands out from the other candidates even where its score is low. Images that have nothing in
    common with the query (score 0, such as blank ones) do not take part; 0 where too few do. Bounded, because a
    similarity alone never proves anything.
    """
    usual = scores[:USUAL]
    usual = usual[usual != 0]
    if len(usual) < FEWEST:
        return [0.0] * len(scores)
    middle = float(np.median(usual))
    spread = 1.4826 * float(np.median(np.abs(usual - middle))) + 1e-6
    return np.clip((scores - middle) / spread, 0, FARTHEST).tolist()  # type: ignore[no-any-return]


class _Clock:
    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._last = time.perf_counter()

    def note(self, stage: str) -> None:
        now = time.perf_counter()
        self.seconds[stage] = self.seconds.get(stage, 0.0) + now - self._last
        self._last = now
