"""Tokens that are made up, with words, scenes and a falling spectrum as a network's have; and vectors in clusters."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from resight.types import FloatArray
from speed_parts.real_tokens import TokenSet


def make_random(images: int, count: int, d: int) -> TokenSet:
    """Without any structure, which exhaustive scoring does not see; the query is image 0 with noise."""
    random = np.random.default_rng(0)
    tokens = unit(random.standard_normal((images, count, d), dtype=np.float32))
    return TokenSet("synthetic", tokens, unit(tokens[:1] + 0.02 * random.standard_normal((1, count, d))))


def make_clusters(images: int, queries: int, count: int = 32, d: int = 384) -> TokenSet:
    """Queries are changed views: two fifths of the tokens of another image, and noise on all."""
    random = np.random.default_rng(0)
    spectrum = fall(d)
    turn = np.linalg.qr(random.standard_normal((d, d)))[0].astype(np.float32)

    def draw(*shape: int) -> FloatArray:
        return np.asarray((random.standard_normal((*shape, d), dtype=np.float32) * spectrum) @ turn, np.float32)

    words, scenes = draw(3000), draw(800)
    common = 1 / np.arange(1, 3001) ** 0.7
    vocabulary = np.stack([random.choice(3000, 40, replace=False, p=common / common.sum()) for _ in range(800)])
    tokens = np.empty((images, count, d), np.float32)
    for start in range(0, images, 500):
        size = min(500, images - start)
        scene = random.integers(0, 800, size)
        word = vocabulary[scene[:, None], random.integers(0, 40, (size, count))]
        shared = scenes[scene][:, None] * 0.35 + draw(size, 1) * 0.35
        tokens[start : start + size] = unit(words[word] * 0.8 + shared + draw(size, count) * 0.6)
    seen, other = random.integers(0, images, queries), random.integers(0, images, queries)
    changed = random.random((queries, count, 1)) < 0.4
    noise = random.standard_normal((queries, count, d), dtype=np.float32) * np.float32(0.5 / d**0.5)
    return TokenSet("synthetic", tokens, unit(np.where(changed, tokens[other], tokens[seen]) + noise))


def make_vectors(images: int, queries: int, d: int = 384) -> TokenSet:
    """One vector an image."""
    random = np.random.default_rng(0)
    spectrum = fall(d)
    centres = random.standard_normal((5000, d), dtype=np.float32) * spectrum
    vectors = np.empty((images, 1, d), np.float32)
    for start in range(0, images, 50_000):
        size = min(50_000, images - start)
        noise = random.standard_normal((size, d), dtype=np.float32) * spectrum
        vectors[start : start + size, 0] = unit(centres[random.integers(0, 5000, size)] + noise * 0.8)
    noise = random.standard_normal((queries, 1, d), dtype=np.float32) * spectrum
    return TokenSet("synthetic", vectors, unit(vectors[random.integers(0, images, queries)] + noise * 0.5))


def fall(d: int) -> FloatArray:
    spectrum = np.arange(1, d + 1, dtype=np.float32) ** -0.5
    return np.asarray(spectrum / np.linalg.norm(spectrum), np.float32)


def unit(vectors: NDArray[Any]) -> FloatArray:
    return np.asarray(vectors / np.linalg.norm(vectors, axis=-1, keepdims=True), np.float32)
