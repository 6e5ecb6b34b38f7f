"""Positions of a database in, the cluster of each image out: k-means on the sphere.

Positions go in as unit vectors in space, so that a cluster may lie on a pole or on the antimeridian. A centroid is the
mean of its members, brought back to the surface. Where there are fewer different positions than clusters, each of them
is a cluster by itself. The same seed gives the same clusters.
"""

import itertools

import numpy as np
from numpy.typing import NDArray

from resight.geodesy import to_vectors
from resight.types import IntArray, Positions

ROUNDS = 10
AT_ONCE = 300  # clusters; more are found in two steps, first areas and then clusters within each
TRAINED_ON = 50_000  # positions; the others only find their cluster
BLOCK = 1 << 22  # distances at a time
Vectors = NDArray[np.float64]


def cluster_positions(positions: Positions, k: int, rng: np.random.Generator) -> IntArray:
    """[n] the number of each image's cluster, from 0 without gaps; k clusters, or about so many beyond AT_ONCE."""
    if not len(positions):
        return np.zeros(0, np.int64)
    places, member_of = np.unique(to_vectors(positions.lats, positions.lons), axis=0, return_inverse=True)
    if len(places) <= k:
        return np.asarray(member_of.reshape(-1), np.int64)
    weights = np.bincount(member_of.reshape(-1)).astype(np.float64)
    return split(places, weights, k, rng)[member_of.reshape(-1)]


def split(places: Vectors, weights: Vectors, k: int, rng: np.random.Generator) -> IntArray:
    """Different unit vectors [n, 3] with weights [n] → the number of each one's cluster [n]."""
    if len(places) <= k:
        return np.arange(len(places), dtype=np.int64)
    if k > AT_ONCE:
        return _split_twice(places, weights, k, rng)
    sample = np.arange(len(places))
    if len(places) > TRAINED_ON:
        sample = np.sort(rng.choice(len(places), TRAINED_ON, replace=False))
    centroids = find_centroids(places[sample], weights[sample], k, rng)
    _, numbers = np.unique(find_nearest(places, centroids), return_inverse=True)
    return np.asarray(numbers.reshape(-1), np.int64)


def _split_twice(places: Vectors, weights: Vectors, k: int, rng: np.random.Generator) -> IntArray:
    """First into areas, then each area into its share of the clusters, by how many places it has."""
    areas = split(places, weights, max(2, min(round(k**0.5), AT_ONCE)), rng)
    limits = np.round(np.cumsum([0, *np.bincount(areas)]) * k / len(places)).astype(np.int64)
    numbers = np.zeros(len(places), np.int64)
    used = 0
    for area, (low, high) in enumerate(itertools.pairwise(limits)):
        inside = np.flatnonzero(areas == area)
        found = split(places[inside], weights[inside], max(int(high - low), 1), rng)
        numbers[inside] = used + found
        used += int(found.max()) + 1
    return numbers


def find_centroids(places: Vectors, weights: Vectors, k: int, rng: np.random.Generator) -> Vectors:
    """Unit vectors [n, 3] with weights [n] → [k, 3], by Lloyd's rounds from starts that lie far apart (k-means++)."""
    centroids = _start(places, weights, k, rng)
    before = None
    for _ in range(ROUNDS):
        nearest = find_nearest(places, centroids)
        if before is not None and np.array_equal(nearest, before):
            break
        sums = np.stack([np.bincount(nearest, weights * places[:, axis], k) for axis in range(3)], axis=1)
        lengths = np.linalg.norm(sums, axis=1, keepdims=True)
        # One without members stays where it is, and so does one whose members lie all around the Earth.
        centroids = np.where(lengths > 1e-9, sums / np.maximum(lengths, 1e-9), centroids)
        before = nearest
    return centroids


def find_nearest(places: Vectors, centroids: Vectors) -> IntArray:
    """The number of the nearest centroid [n]; of equal ones the first."""
    step = max(BLOCK // len(centroids), 1)
    parts = (places[first : first + step] for first in range(0, len(places), step))
    return np.concatenate([np.argmin(_square_distances(part, centroids), axis=1) for part in parts]).astype(np.int64)


def _start(places: Vectors, weights: Vectors, k: int, rng: np.random.Generator) -> Vectors:
    chosen = [int(rng.choice(len(places), p=weights / weights.sum()))]
    nearest = _square_distances(places, places[chosen])[:, 0]
    while len(chosen) < k:
        chances = weights * nearest
        chosen.append(int(rng.choice(len(places), p=chances / chances.sum())))
        nearest = np.minimum(nearest, _square_distances(places, places[chosen[-1:]])[:, 0])
    return places[chosen]


def _square_distances(places: Vectors, centroids: Vectors) -> Vectors:
    """[n, k] from differences: 2 - 2⟨a, b⟩ would not tell a metre from nothing."""
    squares = np.zeros((len(places), len(centroids)))
    for axis in range(3):
        squares += (places[:, None, axis] - centroids[None, :, axis]) ** 2
    return squares
