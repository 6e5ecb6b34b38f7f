"""One search, from the encoded query to located answers:

shortlist (fused) → rerank (verify …) → calibrate → locate
"""

import time
from dataclasses import dataclass, field, replace

from resight.search import calibration as calibrations
from resight.search.calibration import Calibration
from resight.search.fusions import Fusion
from resight.search.fusions.score import Score
from resight.search.locate import BY_TOKENS, Sizes, locate
from resight.search.rerankers import Gallery, Reranker
from resight.search.restricted import restrict
from resight.search.shortlist import USUAL, Shortlister, shortlist
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
    clock = _Clock()
    ranking = shortlist(query, pipeline.shortlisters, pipeline.fusion, choose_depth(pipeline, k), allowed)
    clock.note("shortlist")

    gallery = restrict(pipeline.gallery, allowed)
    for reranker in pipeline.rerankers:
        ranking = reranker.rerank(query, ranking, gallery)
        clock.note(type(reranker).__name__.lower())

    ranking = calibrations.apply(ranking, pipeline.calibration)
    ranking = replace(ranking, ids=ranking.ids[:k], scores=ranking.scores[:k])

    ranking = locate(query, ranking, pipeline.gallery, pipeline.sizes, by_tokens)
    clock.note("locate")
    return replace(ranking, seconds=clock.seconds)


def choose_depth(pipeline: Pipeline, k: int) -> int:
    """How many candidates the shortlist gives: at least as many as `standout` and every reranker look at.

    So what an image scores does not depend on how many were asked for.
    """
    return max([k, USUAL, *(reranker.candidates for reranker in pipeline.rerankers)])


class _Clock:
    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._last = time.perf_counter()

    def note(self, stage: str) -> None:
        now = time.perf_counter()
        self.seconds[stage] = self.seconds.get(stage, 0.0) + now - self._last
        self._last = now
