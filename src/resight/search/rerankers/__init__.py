"""Rerankers: a Ranking in, a better Ranking out, with what they found in `signals` and `matches`."""

from typing import Any, Protocol, runtime_checkable

from resight import plugins
from resight.search.gallery import Gallery
from resight.types import Choice, Query, Ranking


class Reranker(Protocol):
    candidates: int  # how deep it looks
    signals: tuple[str, ...]  # what it adds to the signals of an image

    def rerank(self, query: Query, ranking: Ranking, gallery: Gallery) -> Ranking: ...


@runtime_checkable
class Indexed(Protocol):
    """A reranker that may have an index of the token branch for itself."""

    own_index: Choice | None


def build(name: str, **settings: Any) -> Reranker:
    reranker: Reranker = plugins.load(__name__, name, settings)
    return reranker
