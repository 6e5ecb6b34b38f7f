"""Rank images whose rows Qdrant holds as points: the rows of a query go in, the best images come out.

    one query row          the best row of an image counts: ⟨q, x⟩, or MaxSim with one query row
    several, "best"        one search per query row; the best of each search include the best of all
    several, "mean"        MaxSim over all query rows, divided by their number; ⟨mean q, x⟩ if every image has one row

The search also asks for points that tie with the last one, so that the id decides and not the order of the points.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from resight.index.qdrant_backend.backend import Backend, VectorLayout, VectorQuery
from resight.index.rows.row_files import Rows
from resight.index.rows.scoring import Match, permit_images, rank_images, take_queries
from resight.types import Box, Descriptors, FloatArray, IntArray, Ranking

WIDER = 4  # factor of the next attempt if points tie with the last one


class RowSearcher:
    """A point has the number of its image in `rows`; images without rows have no point."""

    def __init__(
        self,
        rows: Rows,
        backend: Backend | None,
        using: str,
        layout: VectorLayout,
        match: Match | None,
        exact: bool,
        bytes_on_disk: int,
    ) -> None:
        self._rows = rows
        self._backend = backend
        self._using = using
        self._many = layout.many
        self._dimensions = layout.size
        self._match = match
        self._exact = exact
        self.bytes_on_disk = bytes_on_disk

    @property
    def bytes_in_memory(self) -> int:
        """Bytes of all rows in float32, which a search reads."""
        return 4 * len(self._rows) * self._dimensions

    def search(self, query: Descriptors, k: int, allowed: frozenset[str] | None = None) -> Ranking:
        queries = take_queries(query, self._match)
        images, bare = permit_images(self._rows, allowed, queries)
        permitted = images if allowed is not None else None
        best: dict[int, float] = {}
        if len(queries) and self._backend is not None:
            for rows, share in self._list_searches(queries):
                for image, score in self._find(self._backend, rows, k, permitted):
                    best[image] = max(best.get(image, -np.inf), score * share)
        found = np.array(sorted(best), np.int64)
        scores = np.array([best[image] for image in found.tolist()], np.float32)
        ranking = rank_images(query.ids[0], self._rows, found, scores, bare, k)
        return self._add_boxes(ranking, queries)

    def _list_searches(self, queries: FloatArray) -> Iterator[tuple[FloatArray, float]]:
        """The rows of each search, and the factor of its scores."""
        if self._match == "mean" and len(queries) > 1:
            yield (queries, 1 / len(queries)) if self._many else (queries.mean(axis=0), 1.0)
            return
        for row in queries:
            yield (row[None] if self._many else row), 1.0

    def _find(
        self, backend: Backend, rows: FloatArray, k: int, permitted: IntArray | None
    ) -> Iterator[tuple[int, float]]:
        total = len(self._rows.ids) if permitted is None else len(permitted)
        limit = min(k + 1, total)
        while limit and k:
            condition = None if permitted is None else allow(permitted.tolist())
            found = backend.query(VectorQuery(self._using, rows, limit, self._exact), condition)
            if limit == total or len(found) < limit or found[-1].score < found[k - 1].score:
                yield from ((int(point.number), point.score) for point in found)
                return
            limit = min(limit * WIDER, total)

    def _add_boxes(self, ranking: Ranking, queries: FloatArray) -> Ranking:
        """Add the box of each image's winning row: the first with the highest ⟨q, x⟩."""
        if self._rows.boxes is None or self._backend is None or not len(queries):
            return ranking
        numbers = {self._rows.numbers[name]: name for name in ranking.ids}
        vectors = self._backend.read_vectors(list(numbers), self._using)
        boxes: dict[str, Box] = {}
        for number, name in numbers.items():
            if number in vectors:
                products = np.atleast_2d(vectors[number]) @ queries.T
                row = int(self._rows.offsets[number]) + int(products.max(axis=1).argmax())
                boxes[name] = tuple(self._rows.boxes[row].tolist())
        return replace(ranking, boxes=boxes)


def allow(numbers: list[int]) -> object:
    """The condition that a point has one of these numbers."""
    from qdrant_client import models

    return models.Filter(must=[models.HasIdCondition(has_id=list(numbers))])
