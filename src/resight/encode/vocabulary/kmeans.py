"""k-means for vocabularies: rows [n, D] float32 → centres [words, D], in a fraction of the work of plain Lloyd rounds.

Most of Lloyd's work compares every row with every centre, round after round, although few rows move, and those that do
go to a centre beside their own. So:

    1. some plain rounds on a sample, from rows drawn at random;
    2. every row compared with every centre, once;
    3. rounds over all rows, in which a row is compared only with the centres that are nearest to its own.

A centre that nothing is near to starts again at the row that is farthest from its centre.

k-majority: k-means for binary features. Rows [n, bytes] of packed bits → centres [words, bytes] of packed bits.

A row belongs to the centre from which the fewest of its bits differ; a bit of a centre is what most of its rows have
there, and stays as it was where they are even. Grana, Borghesani, Manfredi and Cucchiara, SPIE 2013.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from resight.types import FloatArray

SAMPLE = 64  # rows a word that the first rounds look at
FIRST_ROUNDS = 6
NEAR = 32  # centres that a row is compared with in the later rounds


def find_centres(rows: FloatArray, words: int, rounds: int, random: np.random.Generator) -> FloatArray:
    """At most `rounds` rounds over all rows; fewer where nothing moves any more."""
    rows = np.ascontiguousarray(rows, np.float32)
    some = rows[np.sort(random.permutation(len(rows))[: max(SAMPLE * words, words)])]
    centres = some[random.permutation(len(some))[:words]]
    for _ in range(FIRST_ROUNDS if len(some) < len(rows) else 0):
        centres = move(some, find_nearest(some, centres), centres)
    nearest = find_nearest(rows, centres)
    for _ in range(rounds):
        centres = move(rows, nearest, centres)
        before, nearest = nearest, _look_around(rows, nearest, centres)
        if np.array_equal(before, nearest):
            break
    return centres


def find_nearest(rows: FloatArray, centres: FloatArray) -> NDArray[np.int64]:
    """The nearest centre of each row, [n]."""
    import faiss

    _, nearest = faiss.knn(rows, np.ascontiguousarray(centres), 1)
    return np.asarray(nearest[:, 0], np.int64)


def move(rows: FloatArray, nearest: NDArray[np.int64], centres: FloatArray) -> FloatArray:
    """The mean of the rows of each centre; where it has none, the row that is farthest from its own."""
    moved = centres.copy()
    for word, members in list_members(nearest, len(centres)):
        moved[word] = rows[members].mean(axis=0)
    empty = np.flatnonzero(np.bincount(nearest, minlength=len(centres)) == 0)
    if len(empty):
        distances = np.square(rows - moved[nearest]).sum(axis=1)
        moved[empty] = rows[np.argsort(-distances, kind="stable")[: len(empty)]]
    return moved


def list_members(nearest: NDArray[np.int64], words: int) -> Iterator[tuple[int, NDArray[np.intp]]]:
    """Each word that has any, and the numbers of its rows."""
    order = np.argsort(nearest, kind="stable")
    bounds = np.concatenate([[0], np.cumsum(np.bincount(nearest, minlength=words))]).tolist()
    for word in range(words):
        if bounds[word] < bounds[word + 1]:
            yield word, order[bounds[word] : bounds[word + 1]]


def _look_around(rows: FloatArray, nearest: NDArray[np.int64], centres: FloatArray) -> NDArray[np.int64]:
    """The nearest centre of each row among those nearest to its own, which is one of them.

    |x - c|² is least where x · c - |c|² / 2 is largest.
    """
    import faiss

    _, around = faiss.knn(centres, centres, min(NEAR, len(centres)))
    half_norms = np.square(centres).sum(axis=1) / 2
    found = np.empty_like(nearest)
    with threadpool_limits(1, "blas"):  # products this small are not worth a second thread, which would wait in a loop
        for word, members in list_members(nearest, len(centres)):
            beside = around[word]
            closeness = rows[members] @ centres[beside].T - half_norms[beside]
            found[members] = beside[closeness.argmax(axis=1)]
    return found


Codes = NDArray[np.uint8]


def find_majorities(rows: Codes, words: int, rounds: int, random: np.random.Generator) -> Codes:
    """At most `rounds` rounds from rows drawn at random; fewer where nothing moves any more."""
    rows = np.ascontiguousarray(rows)
    centres = rows[random.permutation(len(rows))[:words]]
    nearest = find_nearest_codes(rows, centres)
    for _ in range(rounds):
        centres = vote(rows, nearest, centres)
        before, nearest = nearest, find_nearest_codes(rows, centres)
        if np.array_equal(before, nearest):
            break
    return centres


def find_nearest_codes(rows: Codes, centres: Codes) -> NDArray[np.int64]:
    """The nearest centre of each row, [n]; of equal ones the first."""
    import faiss

    index = faiss.IndexBinaryFlat(8 * rows.shape[1])
    index.add(np.ascontiguousarray(centres))
    return np.asarray(index.search(rows, 1)[1][:, 0], np.int64)


def vote(rows: Codes, nearest: NDArray[np.int64], centres: Codes) -> Codes:
    """The majority of each centre's rows; where it has none, a row that is farthest from its own centre."""
    moved = centres.copy()
    for word, members in list_members(nearest, len(centres)):
        twice = 2 * np.unpackbits(rows[members], axis=1).sum(axis=0, dtype=np.int64)
        even = np.unpackbits(centres[word]) * (twice == len(members))
        moved[word] = np.packbits((twice > len(members)) | even.astype(bool))
    empty = np.flatnonzero(np.bincount(nearest, minlength=len(centres)) == 0)
    if len(empty):
        differing = np.bitwise_count(rows ^ moved[nearest]).sum(axis=1, dtype=np.int64)
        moved[empty] = rows[np.argsort(-differing, kind="stable")[: len(empty)]]
    return moved
