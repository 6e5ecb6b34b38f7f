"""k-majority: k-means for binary features. Rows [n, bytes] of packed bits → centres [words, bytes] of packed bits.

A row belongs to the centre from which the fewest of its bits differ; a bit of a centre is what most of its rows have
there, and stays as it was where they are even. Grana, Borghesani, Manfredi and Cucchiara, SPIE 2013.
"""

import numpy as np
from numpy.typing import NDArray

from resight.encode.vocabulary.kmeans import list_members

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
