"""A gallery that knows no other images than those that take part in a search.

A reranker that asks an index anew would otherwise bring back what a filter has left out.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from resight.index import Searcher
from resight.types import Box, Choice, Descriptors, Positions, Ranking


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


def restrict(gallery: Gallery, allowed: frozenset[str] | None) -> Gallery:
    """The gallery itself where all images are allowed."""
    return gallery if allowed is None else RestrictedGallery(gallery, allowed)


@dataclass(frozen=True)
class RestrictedGallery:
    gallery: Gallery
    allowed: frozenset[str]

    def descriptors(self, branch: int, ids: Sequence[str]) -> Iterator[Descriptors]:
        return self.gallery.descriptors(branch, ids)

    def patches(self, name: str, region: Box | None) -> Descriptors | None:
        return self.gallery.patches(name, region)

    def searcher(self, branch: int, choice: Choice | None) -> Searcher:
        return RestrictedSearcher(self.gallery.searcher(branch, choice), self.allowed)

    def positions(self) -> Positions:
        known = self.gallery.positions()
        rows = [row for row, name in enumerate(known.ids) if name in self.allowed]
        ids = tuple(known.ids[row] for row in rows)
        return Positions(ids, known.lats[rows], known.lons[rows], known.headings[rows])


@dataclass(frozen=True)
class RestrictedSearcher:
    searcher: Searcher
    allowed: frozenset[str]

    def search(self, query: Descriptors, k: int, allowed: frozenset[str] | None = None) -> Ranking:
        return self.searcher.search(query, k, self.allowed if allowed is None else self.allowed & allowed)
