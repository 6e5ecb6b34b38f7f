"""One search, from the encoded query to located answers:

shortlist (fused) → rerank (verify …) → calibrate → locate
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from resight.search import calibration as calibrations
from resight.search.calibration import Calibration
from resight.search.fusions import Fusion
from resight.search.fusions.robust_zscore import USUAL
from resight.search.fusions.score import Score
from resight.search.gallery import Gallery, restrict
from resight.search.locate_boxes import BY_TOKENS, Sizes, locate
from resight.search.rerankers import Reranker
from resight.search.shortlist import Shortlister, shortlist
from resight.types import Query, Ranking


@dataclass(frozen=True)
class Pipeline:
    shortlisters: tuple[Shortlister, ...]
    rerankers: tuple[Reranker, ...]
    calibration: Calibration | None
    gallery: Gallery
    sizes: Sizes
    fusion: Fusion = field(default_factory=Score)


def search(
    query: Query, pipeline: Pipeline, k: int, allowed: frozenset[str] | None = None, by_tokens: int = BY_TOKENS
) -> Ranking:
    """The k best images for a query, with probabilities and boxes; `by_tokens`: see `locate`."""
    *_, ranking = search_in_stages(query, pipeline, k, allowed, by_tokens)
    return ranking


def search_in_stages(
    query: Query, pipeline: Pipeline, k: int, allowed: frozenset[str] | None = None, by_tokens: int = BY_TOKENS
) -> Iterator[Ranking]:
    """First the k best of the shortlist as it is, then the answer."""
    clock = _Clock()
    ranking = shortlist(query, pipeline.shortlisters, pipeline.fusion, choose_depth(pipeline, k), allowed)
    clock.note("shortlist")
    yield replace(_cut(ranking, k), seconds=dict(clock.seconds))

    clock.go_on()
    gallery = restrict(pipeline.gallery, allowed)
    for reranker in pipeline.rerankers:
        ranking = reranker.rerank(query, ranking, gallery)
        clock.note(type(reranker).__name__.lower())

    ranking = calibrations.apply(ranking, pipeline.calibration)
    ranking = locate(query, _cut(ranking, k), pipeline.gallery, pipeline.sizes, by_tokens)
    clock.note("locate")
    yield replace(ranking, seconds=clock.seconds)


def choose_depth(pipeline: Pipeline, k: int) -> int:
    """How many candidates the shortlist gives: at least as many as `standout` and every reranker look at.

    So what an image scores does not depend on how many were asked for.
    """
    return max([k, USUAL, *(reranker.candidates for reranker in pipeline.rerankers)])


def _cut(ranking: Ranking, k: int) -> Ranking:
    return replace(ranking, ids=ranking.ids[:k], scores=ranking.scores[:k])


class _Clock:
    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._last = time.perf_counter()

    def note(self, stage: str) -> None:
        now = time.perf_counter()
        self.seconds[stage] = self.seconds.get(stage, 0.0) + now - self._last
        self._last = now

    def go_on(self) -> None:
        """Whoever reads the stages one by one may take a while in between."""
        self._last = time.perf_counter()
