"""The Gallery: what rerankers and boxes may read of a collection, whole or filtered.

In: a collection's state, and the ids that pass a filter. Out: the same interface over these images alone. Without it, a
reranker that searches the index a second time would bring back what the filter has left out.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from resight.geodesy import Positions
from resight.index import Searcher
from resight.types import Box, Choice, Descriptors, Ranking


class Gallery(Protocol):
    def descriptors(self, branch: int, ids: Sequence[str]) -> Iterator[Descriptors]:
        """The rows of these images, in this order, a few images at a time."""
        ...

    def searcher(self, branch: int, choice: Choice | None) -> Searcher:
        """An index over the rows of a branch, built if missing; None: the one that the recipe names."""
        ...

    def positions(self) -> Positions:
        """Where the images were taken, as far as that is known."""
        ...

    def patches(self, name: str, region: Box | None) -> Descriptors | None:
        """Every patch of an image or of a region of it, encoded now; None if its file is gone or has changed."""
        ...

    def sizes(self, ids: Sequence[str]) -> Mapping[str, tuple[int, int]]:
        """Width and height of the originals; an image whose rows cannot be read is left out."""
        ...


def filter_gallery(gallery: Gallery, allowed: frozenset[str] | None) -> Gallery:
    """The gallery of the allowed images; None allows all."""
    return gallery if allowed is None else FilteredGallery(gallery, allowed)


@dataclass(frozen=True)
class FilteredGallery:
    gallery: Gallery
    allowed: frozenset[str]

    def descriptors(self, branch: int, ids: Sequence[str]) -> Iterator[Descriptors]:
        return self.gallery.descriptors(branch, ids)

    def searcher(self, branch: int, choice: Choice | None) -> Searcher:
        return FilteredSearcher(self.gallery.searcher(branch, choice), self.allowed)

    def positions(self) -> Positions:
        known = self.gallery.positions()
        rows = [row for row, name in enumerate(known.ids) if name in self.allowed]
        ids = tuple(known.ids[row] for row in rows)
        return Positions(ids, known.lats[rows], known.lons[rows], known.headings[rows])

    def patches(self, name: str, region: Box | None) -> Descriptors | None:
        return self.gallery.patches(name, region)

    def sizes(self, ids: Sequence[str]) -> Mapping[str, tuple[int, int]]:
        return self.gallery.sizes(ids)


@dataclass(frozen=True)
class FilteredSearcher:
    searcher: Searcher
    allowed: frozenset[str]

    def search(self, query: Descriptors, k: int, allowed: frozenset[str] | None = None) -> Ranking:
        return self.searcher.search(query, k, self.allowed if allowed is None else self.allowed & allowed)
