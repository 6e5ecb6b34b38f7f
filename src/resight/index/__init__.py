"""Indexes: structures that find stored rows.

An index is derived from the store, so it can be deleted and rebuilt. `create` writes it to a folder from chunks of
rows, and `open` maps it from there; both return a Searcher. Data that does not fit in memory stays in mapped files.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from resight import plugins
from resight.types import Descriptors, Ranking

Chunks = Callable[[], Iterator[Descriptors]]  # may be iterated more than once


class Searcher(Protocol):
    def search(self, query: Descriptors, k: int, allowed: frozenset[str] | None = None) -> Ranking:
        """The best min(k, size) images, ties broken by id; only `allowed` ones if given."""
        ...


class Index(Protocol):
    def create(self, chunks: Chunks, folder: Path) -> Searcher: ...

    def open(self, folder: Path) -> Searcher: ...


@runtime_checkable
class Divisible(Index, Protocol):
    """An index that may be built in parts, because the score of an image depends on no other image.

    The best k of the whole are then among the best k of the parts.
    """

    @property
    def divisible(self) -> bool:
        """May depend on settings."""


@runtime_checkable
class Splittable(Index, Protocol):
    """An index that can be split after it was built; each part keeps the codes learnt from all images."""

    @property
    def splittable(self) -> bool:
        """May depend on settings."""

    def write_subset(self, source: Path, folder: Path, keep: Callable[[str], bool]) -> int:
        """Copy the images whose id `keep` accepts from the index in `source` to `folder`; return their number."""
        ...


@runtime_checkable
class Learner(Index, Protocol):
    """An index that may learn its codes from the rows of another branch, whose number is `learns_from`."""

    learns_from: int | None

    def create(self, chunks: Chunks, folder: Path, training: Chunks | None = None) -> Searcher: ...


def build(name: str, **settings: Any) -> Index:
    index: Index = plugins.load(__name__, name, settings)
    return index
