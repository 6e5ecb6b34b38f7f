"""k-means for product codes: rows [n, w] → centroids [count, w], and the number of the nearest one for each row.

A part of a token has few dimensions and there are many parts, so each problem is small: numpy in one thread is enough.
"""

import numpy as np
from numpy.typing import NDArray

from resight.types import FloatArray


def find_centroids(rows: FloatArray, count: int, rounds: int, random: np.random.Generator) -> FloatArray:
    """Lloyd's rounds from rows drawn at random; a centroid that nothing is near to starts again at the farthest row."""
    centroids = rows[random.choice(len(rows), count, replace=False)]
    for _ in range(rounds):
        nearest = find_nearest(rows, centroids)
        sizes = np.bincount(nearest, minlength=count)
        sums = np.stack([np.bincount(nearest, rows[:, axis], count) for axis in range(rows.shape[1])], axis=1)
        moved = (sums / np.maximum(sizes, 1)[:, None]).astype(np.float32)
        empty = np.flatnonzero(sizes == 0)
        if len(empty):
            distances = np.square(rows - moved[nearest]).sum(axis=1)
            moved[empty] = rows[np.argsort(-distances, kind="stable")[: len(empty)]]
        centroids = moved
    return centroids


def find_nearest(rows: FloatArray, centroids: FloatArray) -> NDArray[np.intp]:
    """|x - c|² is least where x · c - |c|² / 2 is largest."""
    return np.asarray(np.argmax(rows @ centroids.T - np.square(centroids).sum(axis=1) / 2, axis=1), np.intp)
