"""Score rows of images against the rows of a query: one score per image, and the row that won.

    best    max over query rows and image rows of ⟨q, x⟩; with one query row this is the score of the best region
    mean    (1/Kq) Σ_i max_j ⟨q_i, x_j⟩

An image without rows scores 0, and so does every image when the query has no rows. The winning row is the one with the
highest single ⟨q, x⟩, the first of equal ones. Rows are compared block by block.

A dot product is the same to the last bit, however many rows there are and whatever the row's number. BLAS does not
promise that: it rounds the last few rows of a matrix differently, so an index in parts could rank two nearly equal rows
differently from the whole. `deterministic_dot` compares a single query row by row (compiled kernel, or einsum), and
multiplies several with blocks of equal height, the last one padded with zeros.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from resight import topk
from resight.errors import RecipeError
from resight.index.rows.row_files import Rows
from resight.kernels.dispatch import maxsim_float, native
from resight.kernels.numpy_reference import join_ranges
from resight.types import Box, Descriptors, FloatArray, IntArray, Ranking

HEIGHT = 1024  # rows per block


def deterministic_dot(vectors: FloatArray, queries: FloatArray) -> FloatArray:
    """vectors [n, D] float32, queries [q, D] float32 → [n, q]."""
    if len(queries) == 1:
        return _multiply_one(vectors, queries)[:, None]
    products = np.empty((len(vectors), len(queries)), np.float32)
    for start in range(0, len(vectors), HEIGHT):
        block = vectors[start : start + HEIGHT]
        missing = HEIGHT - len(block)
        filled = np.pad(block, ((0, missing), (0, 0))) if missing else block
        products[start : start + HEIGHT] = (filled @ queries.T)[: len(block)]
    return products


def _multiply_one(vectors: FloatArray, queries: FloatArray) -> FloatArray:
    if native() is None:
        return np.asarray(np.einsum("ij,j->i", vectors, queries[0]), np.float32)
    rows = np.ascontiguousarray(vectors)
    return maxsim_float(queries, rows, np.arange(len(rows) + 1), None, None)


Match = Literal["best", "mean"]
Compare = Callable[[slice | IntArray, FloatArray], FloatArray]  # rows, queries [q, D] → [rows, q]
BLOCK_BYTES = 64 << 20  # of vectors converted to float32 at a time


def take_queries(query: Descriptors, match: Match | None) -> FloatArray:
    """The query's rows [q, D] float32; several are allowed only if the recipe sets `match`."""
    if len(query.vectors) > 1 and match is None:
        raise RecipeError(
            f"the query has {len(query.vectors)} rows, and the recipe does not set how to match them",
            expected='match = "best" (the best pair of rows) or match = "mean" (each query row\'s best, averaged)',
            actual="no match",
            fix='set match for regions of a query; for tokens choose index = "maxsim"',
        )
    return np.ascontiguousarray(query.vectors, dtype=np.float32)


def permit_images(rows: Rows, allowed: frozenset[str] | None, queries: FloatArray) -> tuple[IntArray | None, IntArray]:
    """Allowed images that can be compared (None: all), and those that score 0 in any case."""
    images, bare = rows.permit(allowed)
    if len(queries):
        return images, bare
    return np.zeros(0, np.int64), np.concatenate([np.arange(len(rows.ids)) if images is None else images, bare])


def compare_vectors(vectors: NDArray[Any]) -> Compare:
    """Dot products with vectors in memory or mapped."""
    return lambda rows, queries: deterministic_dot(np.asarray(vectors[rows], np.float32), queries)


def score_images(
    compare: Compare, rows: Rows, images: IntArray | None, queries: FloatArray, match: Match | None
) -> tuple[FloatArray, IntArray | None, FloatArray]:
    """The score of each image [i]; the compared rows [r] (None: all) and the best score of each [r].

    `images` are sorted numbers of images with rows; None: all images, all of which have rows.
    """
    counts = rows.counts if images is None else rows.counts[images]
    total = int(counts.sum())
    listed = rows.list_rows(images) if images is not None and total < len(rows) else None
    owners = None if match != "mean" or len(queries) < 2 else np.repeat(np.arange(len(counts)), counts)
    bests = np.full((len(counts), len(queries)), -np.inf, np.float32) if owners is not None else None
    best = np.empty(total, np.float32)
    step = max(BLOCK_BYTES // (4 * max(queries.shape[1], 1)), 1)
    for start in range(0, total, step):
        part = slice(start, min(start + step, total))
        products = compare(part if listed is None else listed[part], queries)
        best[part] = products[:, 0] if len(queries) == 1 else products.max(axis=1)
        if owners is not None and bests is not None:
            _raise_to(bests, owners[part], products)
    scores = _reduce(best, counts) if bests is None else bests.mean(axis=1)
    return scores, listed, best


def rank_images(
    query_id: str, rows: Rows, images: IntArray | None, scores: FloatArray, bare: IntArray, k: int
) -> Ranking:
    """The best k among `images` with rows (None: all) and `bare` ones without."""
    if len(bare):
        images = np.concatenate([np.arange(len(rows.ids)) if images is None else images, bare])
        scores = np.concatenate([scores, np.zeros(len(bare), np.float32)])
    return topk.best(query_id, rows.ids, scores, k, images)


def add_boxes(ranking: Ranking, rows: Rows, compared: IntArray | None, best: FloatArray) -> Ranking:
    """Add the box of each image's winning row; `compared` [r] are the sorted rows that were scored (None: all)."""
    if rows.boxes is None or not ranking.ids or not len(best):
        return ranking
    wanted = np.array([rows.numbers[name] for name in ranking.ids], np.int64)
    begins, ends = rows.offsets[wanted], rows.offsets[wanted + 1]
    if compared is not None:
        begins, ends = np.searchsorted(compared, begins), np.searchsorted(compared, ends)
    positions = join_ranges(begins, ends - begins)
    slots = np.repeat(np.arange(len(wanted)), ends - begins)
    order = np.lexsort((positions, -best[positions], slots))
    found, first = np.unique(slots[order], return_index=True)
    winners = positions[order[first]]
    boxes = np.asarray(rows.boxes[winners if compared is None else compared[winners]]).tolist()
    named: dict[str, Box] = {ranking.ids[slot]: tuple(box) for slot, box in zip(found.tolist(), boxes, strict=True)}
    return replace(ranking, boxes=named)


def _reduce(best: FloatArray, counts: IntArray) -> FloatArray:
    """The maximum of each run of rows; no run is empty."""
    if len(best) == len(counts):
        return best
    return np.maximum.reduceat(best, np.cumsum(counts) - counts)


def _raise_to(bests: FloatArray, owners: IntArray, products: FloatArray) -> None:
    """Update `bests` in place; an image may continue in the next block."""
    starts = np.flatnonzero(np.diff(owners, prepend=-1))
    images = owners[starts]
    bests[images] = np.maximum(bests[images], np.maximum.reduceat(products, starts, axis=0))
