"""Rank images by the rows that a faiss index finds: the best row of each image counts.

The search asks the finder for more rows than it wants images, because several of the best rows may belong to one image,
and asks for more as long as too few images come back. If the caller wants all images, or a filter leaves few rows, the
search compares all of them instead.
"""

from typing import Protocol

import numpy as np

from resight.index.rows.row_files import Rows
from resight.index.rows.scoring import Match, add_boxes, permit_images, rank_images, score_images, take_queries
from resight.types import Descriptors, FloatArray, IntArray, Ranking

FEW_ROWS = 20_000  # comparing so many is faster than a filtered search
ROWS_PER_IMAGE = 2  # in the first attempt: most of the best rows belong to different images
WIDER = 4  # factor of the next attempt if that was too few


class Finder(Protocol):
    """A faiss index. `effort` 1 is the configured width, more is a wider search; `permitted` None: all rows."""

    def find(
        self, query: FloatArray, count: int, permitted: IntArray | None, effort: int
    ) -> tuple[IntArray, FloatArray, bool]:
        """At most `count` rows for a query [D], best first, their scores, and whether more effort would find more."""
        ...

    def compare(self, rows: slice | IntArray, queries: FloatArray) -> FloatArray:
        """Scores [r, q] of given rows."""
        ...


def search_images(
    finder: Finder,
    rows: Rows,
    query: Descriptors,
    k: int,
    allowed: frozenset[str] | None,
    match: Match | None,
    compared_again: int = 0,
) -> Ranking:
    """The best k images. With `compared_again` = r, find r · k images, then compare their found rows exactly."""
    queries = take_queries(query, match)
    images, bare = permit_images(rows, allowed, queries)
    count = len(rows.ids) if images is None else len(images)
    permitted = None if allowed is None or images is None else rows.list_rows(images)
    wanted = min(k * max(compared_again, 1), count)
    if 0 < wanted < count and (permitted is None or len(permitted) > FEW_ROWS):
        found, best = _find(finder, rows, queries, wanted, permitted)
        images = np.unique(rows.find_owners(found))
        if match != "mean" or len(queries) == 1:
            best = finder.compare(found, queries).max(axis=1) if compared_again else best
            scores = _take_highest(rows, found, best, images)
            return add_boxes(rank_images(query.ids[0], rows, images, scores, bare, k), rows, found, best)
    elif wanted == 0:
        images = np.zeros(0, np.int64)
    scores, compared, best = score_images(finder.compare, rows, images, queries, match)
    return add_boxes(rank_images(query.ids[0], rows, images, scores, bare, k), rows, compared, best)


def _find(
    finder: Finder, rows: Rows, queries: FloatArray, wanted: int, permitted: IntArray | None
) -> tuple[IntArray, FloatArray]:
    """Rows of at least `wanted` images per query row: sorted, each once, with its best score."""
    total = len(rows) if permitted is None else len(permitted)
    found, scores = [], []
    for query in queries:
        count, effort = wanted if rows.single else min(wanted * ROWS_PER_IMAGE, total), 1
        while True:
            own, values, more = finder.find(query, count, permitted, effort)
            if len(np.unique(rows.find_owners(own))) >= wanted or (
                len(own) >= total or not (more or len(own) == count)
            ):
                break
            if len(own) == count:
                count = min(count * WIDER, total)
            else:
                effort *= WIDER
        found.append(own)
        scores.append(values)
    every, values = np.concatenate(found), np.concatenate(scores)
    order = np.lexsort((-values, every))
    unique, first = np.unique(every[order], return_index=True)
    return unique, values[order[first]]


def _take_highest(rows: Rows, found: IntArray, best: FloatArray, images: IntArray) -> FloatArray:
    """The highest score of each image; `found` is sorted."""
    starts = np.searchsorted(found, rows.offsets[images])
    return np.maximum.reduceat(best, starts) if len(starts) else np.zeros(0, np.float32)
