"""One search, from the encoded query to located answers:

shortlist      every branch searches its index, and their scores are fused
rerank         each reranker looks more closely at the best candidates: geometry, late interaction, …
calibrate      the signals of an image become the probability that it shows the same instance
locate         the box of the instance in each of the k answers
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from resight.search import calibration as calibrations
from resight.search.calibration import Calibration
from resight.search.fusions import Fusion
from resight.search.fusions.robust_zscore import USUAL
from resight.search.gallery import Gallery, filter_gallery
from resight.search.locate_boxes import BY_TOKENS, locate
from resight.search.rerankers import Reranker
from resight.search.shortlist import Shortlister, shortlist
from resight.types import Query, Ranking


@dataclass(frozen=True)
class Pipeline:
    """The stages of a recipe's search, and the images that they search."""

    shortlisters: tuple[Shortlister, ...]
    fusion: Fusion
    rerankers: tuple[Reranker, ...]
    calibration: Calibration | None
    gallery: Gallery


def search(
    query: Query, pipeline: Pipeline, k: int, allowed: frozenset[str] | None = None, by_tokens: int = BY_TOKENS
) -> Ranking:
    """The k best images for a query, with probabilities and boxes; `by_tokens`: see `locate`."""
    *_, ranking = search_in_stages(query, pipeline, k, allowed, by_tokens)
    return ranking


def search_in_stages(
    query: Query, pipeline: Pipeline, k: int, allowed: frozenset[str] | None = None, by_tokens: int = BY_TOKENS
) -> Iterator[Ranking]:
    """First the k best of the shortlist, then the answer."""
    clock = _Clock()
    ranking = shortlist(query, pipeline.shortlisters, pipeline.fusion, choose_depth(pipeline, k), allowed)
    clock.record("shortlist")
    yield replace(_cut(ranking, k), seconds=dict(clock.seconds))

    clock.resume()
    gallery = filter_gallery(pipeline.gallery, allowed)
    alone = _rerank(query, ranking, pipeline.rerankers, gallery, clock)
    answer = calibrations.apply(alone, pipeline.calibration)
    if query.turned is not None:
        answer = _turn(query, ranking, answer, pipeline, choose_depth(pipeline, k), allowed)
        clock.record("rotations")
    ranking = locate(query, _cut(answer, k), gallery, by_tokens)
    clock.record("locate")
    yield replace(ranking, seconds=clock.seconds)


def _rerank(
    query: Query, ranking: Ranking, rerankers: Sequence[Reranker], gallery: Gallery, clock: "_Clock | None" = None
) -> Ranking:
    for reranker in rerankers:
        ranking = reranker.rerank(query, ranking, gallery)
        if clock is not None:
            clock.record(type(reranker).__name__.lower())
    return ranking


def _turn(
    query: Query, shortlisted: Ranking, answer: Ranking, pipeline: Pipeline, depth: int, allowed: frozenset[str] | None
) -> Ranking:
    """The upright answer, or that of all rotations where it is not convincing."""
    from resight.search.turned_search import is_convincing, merge  # most recipes search upright

    if is_convincing(answer) or not (others := query.turned() if query.turned is not None else ()):
        return answer
    gallery = filter_gallery(pipeline.gallery, allowed)
    each = [one for one in pipeline.rerankers if not getattr(one, "compares_candidates", False)]
    joined = [one for one in pipeline.rerankers if one not in each]
    shortlists = [shortlist(one, pipeline.shortlisters, pipeline.fusion, depth, allowed) for one in others]
    rankings = [
        _rerank(one, ranking, each, gallery)
        for one, ranking in zip([query, *others], [shortlisted, *shortlists], strict=True)
    ]
    ranking = merge(rankings, [one.rotation for one in (query, *others)])
    return calibrations.apply(_rerank(query, ranking, joined, gallery), pipeline.calibration)


def choose_depth(pipeline: Pipeline, k: int) -> int:
    """The length of the shortlist: at least what the robust z-score and every reranker look at.

    So the score of an image does not depend on k.
    """
    return max([k, USUAL, *(reranker.candidates for reranker in pipeline.rerankers)])


def _cut(ranking: Ranking, k: int) -> Ranking:
    return replace(ranking, ids=ranking.ids[:k], scores=ranking.scores[:k])


class _Clock:
    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._last = time.perf_counter()

    def record(self, stage: str) -> None:
        now = time.perf_counter()
        self.seconds[stage] = self.seconds.get(stage, 0.0) + now - self._last
        self._last = now

    def resume(self) -> None:
        """After a pause that the caller takes between two stages, which does not count."""
        self._last = time.perf_counter()
