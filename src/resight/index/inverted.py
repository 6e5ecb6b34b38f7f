"""The inverted file of ASMK: for each visual word, the images that have it and their binary codes.

Score of query q and image x, over the words w that both have (Tolias, Avrithis and Jégou, ICCV 2013):

    S(q, x) = Σ_w idf_w · σ(⟨b_qw, b_xw⟩ / D) / (√n_q · √n_x),   σ(u) = u^alpha where u > threshold, else 0

with codes b in {-1, 1}^D (so ⟨b, b'⟩ = D - 2 · Hamming distance) and n the number of words of an image.
On disk: starts.npy [words + 1], images.npy [m] int32, codes.npy [m, D/8] uint8, lengths.npy [N], ids.json; the
posting lists are mapped. Built in two passes over the rows: count, then fill.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from resight import ranks
from resight.index import Chunks
from resight.index.words.lists import Cursor, count_words, create_array, flush
from resight.plugins import check_range
from resight.types import Descriptors, FloatArray, Ranking

AT_ONCE = 1 << 20  # postings looked at together


@dataclass(frozen=True)
class Config:
    alpha: float = 3.0
    threshold: float = 0.0
    idf: bool = False  # weigh words by log²(N / images that have it); with a good code book it did not help

    def __post_init__(self) -> None:
        check_range("alpha", self.alpha, 0, 100)
        check_range("threshold", self.threshold, -1, 1)


def build(config: Config) -> "Inverted":
    return Inverted(config)


class Inverted:
    def __init__(self, config: Config) -> None:
        self._config = config

    @property
    def divisible(self) -> bool:
        return not self._config.idf  # which counts all images

    def create(self, chunks: Chunks, folder: Path) -> "InvertedSearcher":
        counted = count_words(chunks, "inverted", np.uint8, "asmk")
        total = int(counted.starts[-1])
        images = create_array(folder / "images.npy", (total,), np.int32)
        codes = create_array(folder / "codes.npy", (total, counted.dimensions), np.uint8)
        cursor = Cursor(counted.starts)
        for chunk in chunks():
            order, places, numbers = cursor.place(chunk)
            images[places], codes[places] = numbers, chunk.vectors[order]
        flush(images, codes)
        np.save(folder / "starts.npy", counted.starts)
        np.save(folder / "lengths.npy", counted.lengths)
        (folder / "ids.json").write_text(json.dumps(counted.ids), encoding="utf-8")
        return self.open(folder)

    def open(self, folder: Path) -> "InvertedSearcher":
        return InvertedSearcher(
            ids=json.loads((folder / "ids.json").read_text(encoding="utf-8")),
            starts=np.load(folder / "starts.npy"),
            lengths=np.load(folder / "lengths.npy"),
            images=np.load(folder / "images.npy", mmap_mode="r"),
            codes=np.load(folder / "codes.npy", mmap_mode="r"),
            config=self._config,
        )


class InvertedSearcher:
    def __init__(
        self,
        ids: list[str],
        starts: NDArray[np.int64],
        lengths: NDArray[np.int32],
        images: NDArray[np.int32],
        codes: NDArray[np.uint8],
        config: Config,
    ) -> None:
        self._ids = ids
        self._starts = starts
        self._lengths = lengths
        self._images = images
        self._codes = codes
        self._config = config
        holders = np.diff(starts)
        self._weights = np.log(max(len(ids), 1) / np.maximum(holders, 1)) ** 2 if config.idf else np.ones(len(holders))

    def search(self, query: Descriptors, k: int, allowed: frozenset[str] | None = None) -> Ranking:
        return ranks.best_allowed(query.ids[0], self._ids, self._score(query), k, allowed)

    def _score(self, query: Descriptors) -> FloatArray:
        words = query.words if query.words is not None else np.zeros(0, np.int32)
        known = np.flatnonzero(words < len(self._starts) - 1)  # the others are words that no image has
        lengths = self._starts[words[known] + 1] - self._starts[words[known]]
        totals = np.zeros(len(self._ids))
        for part in _portions(known, lengths):
            totals += self._add_up(words[part], query.vectors[part])
        scale = np.sqrt(max(len(words), 1)) * np.sqrt(np.maximum(self._lengths, 1))
        return np.asarray(totals / scale, np.float32)

    def _add_up(self, words: NDArray[np.int32], codes: NDArray[np.uint8]) -> NDArray[np.float64]:
        """Contributions of some words of the query to every image."""
        first, lengths = self._starts[words], self._starts[words + 1] - self._starts[words]
        owner = np.repeat(np.arange(len(words)), lengths)  # posting → word of the query
        postings = np.arange(len(owner)) + np.repeat(first - np.cumsum(lengths) + lengths, lengths)
        different = as_integers(self._codes[postings]) ^ as_integers(codes)[owner]
        distances = np.bitwise_count(different).sum(axis=1, dtype=np.int32)
        similarity = 1 - distances * (2 / (8 * self._codes.shape[1]))
        chosen = similarity > self._config.threshold
        gains = self._weights[words[owner[chosen]]] * similarity[chosen] ** self._config.alpha
        return np.bincount(self._images[postings[chosen]], gains, len(self._ids)).astype(np.float64)


def as_integers(codes: NDArray[np.uint8]) -> NDArray[np.unsignedinteger]:
    """Codes [n, bytes] as 64-bit integers where they fit, so that bits are counted eight bytes at a time."""
    codes = np.ascontiguousarray(codes)
    return codes.view(np.uint64) if codes.shape[1] % 8 == 0 else codes


def _portions(rows: NDArray[np.int64], lengths: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
    """`rows` in parts whose posting lists together hold about AT_ONCE entries."""
    bounds = np.cumsum(lengths) // AT_ONCE
    for portion in np.unique(bounds):
        yield rows[bounds == portion]
