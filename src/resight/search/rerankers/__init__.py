"""Rerankers: a Ranking in, a better Ranking out, with what they found in `signals` and `matches`."""

from collections.abc import Iterator, Sequence
from typing import Any, Protocol, runtime_checkable

from resight import plugins
from resight.index import Searcher
from resight.types import Box, Choice, Descriptors, Positions, Query, Ranking


class Gallery(Protocol):
    """What a reranker may read of the collection."""

    def descriptors(self, branch: int, ids: Sequence[str]) -> Iterator[Descriptors]:
        """The rows of these images, in this order, a few images at a time."""
        ...

    def searcher(self, branch: int, choice: Choice | None) -> Searcher:
        """An index of the rows of a branch, made when it is not there; None: the branch's own."""
        ...

    def positions(self) -> Positions:
        """Where the images were taken, as far as that is known."""
        ...

    def patches(self, name: str, region: Box | None) -> Descriptors | None:
        """Every patch of an image, or of a region of it, encoded now; None where that cannot be done."""
        ...


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
