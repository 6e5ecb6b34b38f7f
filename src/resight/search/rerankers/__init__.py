"""Rerankers: a Ranking in, a better Ranking out, with their findings in `signals` and `matches`."""

from typing import Any, Protocol, runtime_checkable

from resight import plugins
from resight.search.gallery import Gallery
from resight.types import Choice, Query, Ranking


class Reranker(Protocol):
    candidates: int  # images that it looks at
    signals: tuple[str, ...]  # names that it adds to the signals of an image

    def rerank(self, query: Query, ranking: Ranking, gallery: Gallery) -> Ranking: ...


@runtime_checkable
class Indexed(Protocol):
    """A reranker that may have its own index of the token branch."""

    own_index: Choice | None


def build(name: str, **settings: Any) -> Reranker:
    reranker: Reranker = plugins.load(__name__, name, settings)
    return reranker
