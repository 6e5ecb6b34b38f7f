"""K-means on the sphere: positions of database images in, the cluster of each image out.

Positions are unit vectors in space, so that a cluster may lie on a pole or on the antimeridian. A centroid is the mean
of its members, projected back to the surface. With fewer distinct positions than clusters, each is a cluster by itself.
The same seed gives the same clusters.
"""

import itertools

import numpy as np
from numpy.typing import NDArray

from resight.geodesy import Positions, to_vectors
from resight.types import IntArray

ROUNDS = 10
AT_ONCE = 300  # clusters; more are found in two steps, first areas, then clusters within each
TRAINED_ON = 50_000  # positions; the others only get the nearest cluster
BLOCK = 1 << 22  # distances at a time
Vectors = NDArray[np.float64]


def cluster_positions(positions: Positions, k: int, rng: np.random.Generator) -> IntArray:
    """[n] the number of each image's cluster, from 0 without gaps; k clusters, or about k beyond AT_ONCE."""
    if not len(positions):
        return np.zeros(0, np.int64)
    points, member_of = np.unique(to_vectors(positions.lats, positions.lons), axis=0, return_inverse=True)
    if len(points) <= k:
        return np.asarray(member_of.reshape(-1), np.int64)
    weights = np.bincount(member_of.reshape(-1)).astype(np.float64)
    return split(points, weights, k, rng)[member_of.reshape(-1)]


def split(points: Vectors, weights: Vectors, k: int, rng: np.random.Generator) -> IntArray:
    """Distinct unit vectors [n, 3] with weights [n] → the number of each one's cluster [n]."""
    if len(points) <= k:
        return np.arange(len(points), dtype=np.int64)
    if k > AT_ONCE:
        return _split_twice(points, weights, k, rng)
    sample = np.arange(len(points))
    if len(points) > TRAINED_ON:
        sample = np.sort(rng.choice(len(points), TRAINED_ON, replace=False))
    centroids = find_centroids(points[sample], weights[sample], k, rng)
    _, numbers = np.unique(find_nearest(points, centroids), return_inverse=True)
    return np.asarray(numbers.reshape(-1), np.int64)


def _split_twice(points: Vectors, weights: Vectors, k: int, rng: np.random.Generator) -> IntArray:
    """First into areas, then each area into its share of the clusters, by the number of its points."""
    areas = split(points, weights, max(2, min(round(k**0.5), AT_ONCE)), rng)
    limits = np.round(np.cumsum([0, *np.bincount(areas)]) * k / len(points)).astype(np.int64)
    numbers = np.zeros(len(points), np.int64)
    used = 0
    for area, (low, high) in enumerate(itertools.pairwise(limits)):
        inside = np.flatnonzero(areas == area)
        found = split(points[inside], weights[inside], max(int(high - low), 1), rng)
        numbers[inside] = used + found
        used += int(found.max()) + 1
    return numbers


def find_centroids(points: Vectors, weights: Vectors, k: int, rng: np.random.Generator) -> Vectors:
    """Unit vectors [n, 3] with weights [n] → [k, 3], by Lloyd's rounds from starts that lie far apart (k-means++)."""
    centroids = _start(points, weights, k, rng)
    before = None
    for _ in range(ROUNDS):
        nearest = find_nearest(points, centroids)
        if before is not None and np.array_equal(nearest, before):
            break
        sums = np.stack([np.bincount(nearest, weights * points[:, axis], k) for axis in range(3)], axis=1)
        lengths = np.linalg.norm(sums, axis=1, keepdims=True)
        # A centroid without members stays where it is, as does one whose members lie all around the Earth.
        centroids = np.where(lengths > 1e-9, sums / np.maximum(lengths, 1e-9), centroids)
        before = nearest
    return centroids


def find_nearest(points: Vectors, centroids: Vectors) -> IntArray:
    """The number of the nearest centroid [n]; of equal ones the first."""
    step = max(BLOCK // len(centroids), 1)
    parts = (points[first : first + step] for first in range(0, len(points), step))
    return np.concatenate([np.argmin(_square_distances(part, centroids), axis=1) for part in parts]).astype(np.int64)


def _start(points: Vectors, weights: Vectors, k: int, rng: np.random.Generator) -> Vectors:
    chosen = [int(rng.choice(len(points), p=weights / weights.sum()))]
    nearest = _square_distances(points, points[chosen])[:, 0]
    while len(chosen) < k:
        chances = weights * nearest
        chosen.append(int(rng.choice(len(points), p=chances / chances.sum())))
        nearest = np.minimum(nearest, _square_distances(points, points[chosen[-1:]])[:, 0])
    return points[chosen]


def _square_distances(points: Vectors, centroids: Vectors) -> Vectors:
    """[n, k] from differences: 2 - 2⟨a, b⟩ would round a metre to 0."""
    squares = np.zeros((len(points), len(centroids)))
    for axis in range(3):
        squares += (points[:, None, axis] - centroids[None, :, axis]) ** 2
    return squares
