"""A map of the images as a branch sees them.

In: stored descriptors and encoded queries. Out: an EmbeddingMap, points on a plane. An image with many rows is
represented by the mean of its normalised rows, one of visual words by the square roots of its word counts. Up to MOST
images and queries are sampled evenly. t-SNE lays them out (van der Maaten and Hinton, 2008: Gaussian neighbours of a
chosen perplexity in the space, Student's t on the plane, gradient descent with momentum), starting from principal
components; fewer than FEWEST images are laid out by the components alone.
"""

from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from resight.collection import Collection
from resight.evaluate.results import EmbeddingMap, Point
from resight.types import Dataset, Descriptors, ImageRef, Query
from resight.vectors import l2_normalise_exact

MOST = 2000
FEWEST = 12  # images that t-SNE needs
PERPLEXITY = 20.0
STEPS = 350
EARLY = 100  # steps in which neighbours pull harder, so that groups can pass each other
WORDS = 4096  # columns of the word counts
DIMENSIONS = 50  # principal components given to t-SNE
LABELS = ("label", "set", "place", "class", "category")  # attributes that may colour a map; the first present one does
Array = NDArray[np.float64]
T = TypeVar("T")


class MapMaker:
    """Collects the queries while they are searched, then draws them with the images of the database."""

    def __init__(self, branch: int, most: int = MOST) -> None:
        self._branch = branch
        self._most = most
        self._queries: list[tuple[ImageRef, Array]] = []

    def add_query(self, ref: ImageRef, query: Query) -> None:
        (vector,) = summarise_rows(query.descriptors[self._branch])
        self._queries.append((ref, vector))

    def draw(self, collection: Collection, dataset: Dataset) -> EmbeddingMap:
        images = pick_evenly(dataset.database, self._most - min(len(self._queries), self._most // 3))
        asked = pick_evenly(self._queries, self._most // 3)
        refs = {ref.id: ref for ref in images}
        known = {record.id for record in collection.records()}
        found: list[tuple[ImageRef, Array]] = []
        for chunk in collection.descriptors(self._branch, [id for id in refs if id in known]):
            found += zip([refs[id] for id in chunk.ids], summarise_rows(chunk), strict=True)
        everything = [*found, *asked]
        positions, method = lay_out(np.array([vector for _, vector in everything]), np.random.default_rng(0))
        kinds = ["database"] * len(found) + ["query"] * len(asked)
        points = tuple(
            Point(ref.id, round(float(x), 4), round(float(y), 4), kind, _label(ref))
            for (ref, _), (x, y), kind in zip(everything, positions, kinds, strict=True)
        )
        return EmbeddingMap(method, points, len(dataset.database) + len(self._queries))


def lay_out(vectors: Array, generator: np.random.Generator) -> tuple[Array, str]:
    """Positions [n, 2] in 0..1, and the method; vectors [n, D]."""
    flat = project(vectors, DIMENSIONS)
    if len(vectors) < FEWEST:
        return _fit(flat[:, :2]), "the first two principal components"
    perplexity = min(PERPLEXITY, len(vectors) / 4)
    return _fit(run_tsne(flat, perplexity, generator)), f"t-SNE, perplexity {perplexity:g}, {STEPS} steps, seed 0"


def project(vectors: Array, dimensions: int) -> Array:
    """The first principal components [n, max(2, …)], the signs chosen so that the same vectors give the same ones."""
    centred = vectors - vectors.mean(axis=0)
    left, scales, right = np.linalg.svd(centred, full_matrices=False)
    signs = np.sign(right[np.arange(len(right)), np.abs(right).argmax(axis=1)])
    parts = (left * scales * np.where(signs == 0, 1, signs))[:, :dimensions]
    return np.pad(parts, ((0, 0), (0, max(0, 2 - parts.shape[1]))))


def run_tsne(vectors: Array, perplexity: float, generator: np.random.Generator) -> Array:
    """Positions [n, 2] by t-SNE."""
    joint = find_affinities(vectors, perplexity).astype(np.float32)
    positions = (vectors[:, :2] / max(float(vectors[:, 0].std()), 1e-12) * 1e-2).astype(np.float32)
    positions += generator.normal(scale=1e-4, size=positions.shape).astype(np.float32)
    rate = max(len(vectors) / 12 / 4, 20.0)
    move = np.zeros_like(positions)
    gains = np.ones_like(positions)
    for step in range(STEPS):
        kernel = 1 / (1 + _squares(positions))
        np.fill_diagonal(kernel, 0)
        pull = (joint * (12.0 if step < EARLY else 1.0) - kernel / kernel.sum()) * kernel
        slope = 4 * (pull.sum(axis=1, keepdims=True) * positions - pull @ positions)
        gains = np.maximum(np.where(np.sign(slope) != np.sign(move), gains + 0.2, gains * 0.8), 0.01)
        move = (0.5 if step < EARLY else 0.8) * move - rate * gains * slope
        positions = positions + move
        positions -= positions.mean(axis=0)
    return np.asarray(positions, np.float64)


def find_affinities(vectors: Array, perplexity: float) -> Array:
    """Joint probabilities [n, n]: each row a Gaussian whose entropy is log(perplexity), made symmetric."""
    squares = _squares(vectors)
    np.fill_diagonal(squares, np.inf)
    squares -= squares.min(axis=1, keepdims=True)
    low, high = np.zeros(len(vectors)), np.full(len(vectors), np.inf)
    precision = 1 / np.maximum(np.median(squares, axis=1), 1e-12)
    for _ in range(50):
        weights = np.exp(-squares * precision[:, None])
        shares = weights / weights.sum(axis=1, keepdims=True)
        finite = np.where(np.isfinite(squares), squares, 0.0)
        entropy = np.log(weights.sum(axis=1)) + precision * (shares * finite).sum(axis=1)
        narrow = entropy > np.log(perplexity)
        low, high = np.where(narrow, precision, low), np.where(narrow, high, precision)
        precision = np.where(np.isinf(high), precision * 2, (low + np.where(np.isinf(high), low, high)) / 2)
    return np.asarray(np.maximum((shares + shares.T) / (2 * len(vectors)), 1e-12))


def summarise_rows(rows: Descriptors) -> Array:
    """One vector per image [images, D]."""
    if rows.words is not None:
        counts = np.zeros((len(rows.ids), WORDS))
        np.add.at(counts, (rows.owners, rows.words % WORDS), 1)
        return l2_normalise_exact(np.sqrt(counts))
    sums = np.zeros((len(rows.ids), rows.vectors.shape[1]))
    np.add.at(sums, rows.owners, l2_normalise_exact(rows.vectors.astype(np.float64)))
    return l2_normalise_exact(sums)


def pick_evenly(items: Sequence[T], most: int) -> list[T]:
    if len(items) <= most:
        return list(items)
    return [items[number * len(items) // most] for number in range(most)]


def _label(ref: ImageRef) -> str:
    return next((str(ref.attributes[name]) for name in LABELS if name in ref.attributes), "")


def _squares(points: NDArray[Any]) -> NDArray[Any]:
    lengths = np.einsum("nd,nd->n", points, points)
    return np.asarray(np.maximum(lengths[:, None] + lengths[None] - 2 * points @ points.T, 0))


def _fit(positions: Array) -> Array:
    """Into the unit square, with one scale for both axes."""
    low, high = positions.min(axis=0), positions.max(axis=0)
    return np.asarray((positions - (low + high) / 2) / max(float((high - low).max()), 1e-12) + 0.5)
