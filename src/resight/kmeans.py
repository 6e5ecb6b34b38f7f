"""k-means and nearest centres: rows [n, D] → centres [count, D], and the nearest centres of each row.

    find_nearest      the nearest centres of rows, with their squared distances
    lloyd             plain rounds (S. Lloyd, 1982), for small problems such as the parts of product codes
    find_centres      for vocabularies, at a fraction of the work of plain rounds
    find_majorities   the same for rows of bits: k-majority

Most of the work of Lloyd's rounds compares every row with every centre, although few rows change their centre, and
those that do go to a neighbouring one. `find_centres` therefore

    1. runs some plain rounds on a sample, from rows drawn at random;
    2. compares every row with every centre, once;
    3. runs rounds over all rows, in which it compares a row only with the centres nearest to its own.

In k-majority a row belongs to the centre from which the fewest of its bits differ. A bit of a centre is the one that
most of its rows have there, and stays as it was on a tie. Grana, Borghesani, Manfredi and Cucchiara, SPIE 2013.

A centre without rows starts again at the row that is farthest from its centre. Positions on Earth have a k-means of
their own, `search.geo_kmeans`: it is weighted, keeps centres on the sphere and needs metres at float64.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from resight.types import FloatArray

BLOCK = 4096  # rows at a time: their distances to 65,536 centres take 1 GiB in float32
SAMPLE = 64  # rows per centre in the rounds on a sample
SAMPLE_ROUNDS = 6
NEIGHBOURS = 32  # centres that a row is compared with in the rounds over all rows

Codes = NDArray[np.uint8]  # packed bits


def find_nearest(rows: FloatArray, centres: FloatArray, count: int = 1) -> tuple[NDArray[np.int32], FloatArray]:
    """The `count` nearest centres of each row, nearest first: numbers [n, count], squared distances [n, count]."""
    numbers, squares = [np.zeros((0, count), np.int32)], [np.zeros((0, count), np.float32)]
    for start in range(0, len(rows), BLOCK):
        block = rows[start : start + BLOCK]
        nearest, closeness = _find_largest(_closeness(block, centres), count)
        numbers.append(nearest)
        squares.append(np.maximum(np.square(block).sum(axis=1, keepdims=True) - 2 * closeness, 0))
    return np.concatenate(numbers), np.concatenate(squares)


def assign(rows: FloatArray, centres: FloatArray) -> NDArray[np.intp]:
    """The nearest centre of each row [n], without distances; for rows that fit in memory beside their distances."""
    return np.asarray(np.argmax(_closeness(rows, centres), axis=1), np.intp)


def lloyd(rows: FloatArray, count: int, rounds: int, random: np.random.Generator) -> FloatArray:
    """`rounds` plain rounds from rows drawn at random: every row to its nearest centre, every centre to the mean."""
    centres = rows[random.choice(len(rows), count, replace=False)]
    for _ in range(rounds):
        centres = update_centres(rows, assign(rows, centres), centres)
    return centres


def find_centres(rows: FloatArray, count: int, rounds: int, random: np.random.Generator) -> FloatArray:
    """At most `rounds` rounds over all rows; fewer where no row changes its centre any more."""
    rows = np.ascontiguousarray(rows, np.float32)
    sample = rows[np.sort(random.permutation(len(rows))[: max(SAMPLE * count, count)])]
    centres = sample[random.permutation(len(sample))[:count]]
    for _ in range(SAMPLE_ROUNDS if len(sample) < len(rows) else 0):
        centres = update_centres(sample, assign_many(sample, centres), centres)
    nearest = assign_many(rows, centres)
    for _ in range(rounds):
        centres = update_centres(rows, nearest, centres)
        before, nearest = nearest, _assign_locally(rows, nearest, centres)
        if np.array_equal(before, nearest):
            break
    return centres


def assign_many(rows: FloatArray, centres: FloatArray) -> NDArray[np.int64]:
    """`assign` for many rows and centres: faiss holds no matrix of distances and compares in several threads."""
    import faiss

    _, nearest = faiss.knn(rows, np.ascontiguousarray(centres), 1)
    return np.asarray(nearest[:, 0], np.int64)


def update_centres(rows: FloatArray, nearest: NDArray[np.intp], centres: FloatArray) -> FloatArray:
    """The mean of the rows of each centre; for a centre without rows, the row farthest from its own centre."""
    sizes = np.bincount(nearest, minlength=len(centres))
    sums = np.stack([np.bincount(nearest, rows[:, axis], len(centres)) for axis in range(rows.shape[1])], axis=1)
    updated = (sums / np.maximum(sizes, 1)[:, None]).astype(np.float32)
    empty = np.flatnonzero(sizes == 0)
    if len(empty):
        distances = np.square(rows - updated[nearest]).sum(axis=1)
        updated[empty] = rows[np.argsort(-distances, kind="stable")[: len(empty)]]
    return updated


def find_majorities(rows: Codes, count: int, rounds: int, random: np.random.Generator) -> Codes:
    """k-majority of rows [n, bytes]: at most `rounds` rounds from rows drawn at random; fewer where nothing changes."""
    rows = np.ascontiguousarray(rows)
    centres = rows[random.permutation(len(rows))[:count]]
    nearest = assign_codes(rows, centres)
    for _ in range(rounds):
        centres = update_majorities(rows, nearest, centres)
        before, nearest = nearest, assign_codes(rows, centres)
        if np.array_equal(before, nearest):
            break
    return centres


def assign_codes(rows: Codes, centres: Codes) -> NDArray[np.int64]:
    """The centre of each row [n] from which the fewest of its bits differ; on a tie the first."""
    import faiss

    index = faiss.IndexBinaryFlat(8 * rows.shape[1])
    index.add(np.ascontiguousarray(centres))
    return np.asarray(index.search(rows, 1)[1][:, 0], np.int64)


def update_majorities(rows: Codes, nearest: NDArray[np.int64], centres: Codes) -> Codes:
    """The majority of the rows of each centre; for a centre without rows, a row farthest from its own centre."""
    updated = centres.copy()
    for centre, members in _group(nearest, len(centres)):
        twice = 2 * np.unpackbits(rows[members], axis=1).sum(axis=0, dtype=np.int64)
        even = np.unpackbits(centres[centre]) * (twice == len(members))
        updated[centre] = np.packbits((twice > len(members)) | even.astype(bool))
    empty = np.flatnonzero(np.bincount(nearest, minlength=len(centres)) == 0)
    if len(empty):
        differing = np.bitwise_count(rows ^ updated[nearest]).sum(axis=1, dtype=np.int64)
        updated[empty] = rows[np.argsort(-differing, kind="stable")[: len(empty)]]
    return updated


def _assign_locally(rows: FloatArray, nearest: NDArray[np.int64], centres: FloatArray) -> NDArray[np.int64]:
    """The nearest centre of each row among the neighbours of its present centre, which is one of them."""
    import faiss

    _, neighbours = faiss.knn(centres, centres, min(NEIGHBOURS, len(centres)))
    found = np.empty_like(nearest)
    with threadpool_limits(1, "blas"):  # a second thread costs more than it saves on products this small
        for centre, members in _group(nearest, len(centres)):
            beside = neighbours[centre]
            found[members] = beside[_closeness(rows[members], centres[beside]).argmax(axis=1)]
    return found


def _group(nearest: NDArray[np.int64], count: int) -> Iterator[tuple[int, NDArray[np.intp]]]:
    """Each centre that has rows, and the numbers of its rows."""
    order = np.argsort(nearest, kind="stable")
    bounds = np.concatenate([[0], np.cumsum(np.bincount(nearest, minlength=count))]).tolist()
    for centre in range(count):
        if bounds[centre] < bounds[centre + 1]:
            yield centre, order[bounds[centre] : bounds[centre + 1]]


def _closeness(rows: FloatArray, centres: FloatArray) -> FloatArray:
    """x · c - |c|² / 2 for each row x and centre c, [n, count]: largest where |x - c|² is least."""
    return np.asarray(rows @ centres.T - np.square(centres).sum(axis=1) / 2)


def _find_largest(values: FloatArray, count: int) -> tuple[NDArray[np.int32], FloatArray]:
    """Columns and values of the `count` largest of each row, largest first. Overwrites `values`.

    A few passes of argmax take a fraction of the time of a partition, which moves every value.
    """
    rows = np.arange(len(values))
    columns = np.empty((len(values), count), np.int32)
    largest = np.empty((len(values), count), np.float32)
    for rank in range(count):
        columns[:, rank] = values.argmax(axis=1)
        largest[:, rank] = values[rows, columns[:, rank]]
        values[rows, columns[:, rank]] = -np.inf
    return columns, largest
