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
from resight.errors import RecipeError
from resight.index import Chunks
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

    def create(self, chunks: Chunks, folder: Path) -> "InvertedSearcher":
        counts, lengths, ids, code_bytes = _count(chunks)
        starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        total = int(starts[-1])
        images = _create(folder / "images.npy", (total,), np.int32)
        codes = _create(folder / "codes.npy", (total, code_bytes), np.uint8)
        _fill(chunks, starts, images, codes)
        np.save(folder / "starts.npy", starts)
        np.save(folder / "lengths.npy", np.array(lengths, dtype=np.int32))
        (folder / "ids.json").write_text(json.dumps(ids), encoding="utf-8")
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
        scores = self._score(query)
        rows = None
        if allowed is not None:
            rows = np.array([row for row, name in enumerate(self._ids) if name in allowed], dtype=np.int64)
            scores = scores[rows]
        return ranks.best(query.ids[0], self._ids, scores, k, rows)

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


def _count(chunks: Chunks) -> tuple[NDArray[np.int64], list[int], list[str], int]:
    counts = np.zeros(1, np.int64)
    lengths: list[int] = []
    ids: list[str] = []
    code_bytes = 1
    for chunk in chunks():
        if chunk.words is None:
            raise RecipeError(
                "the inverted file needs visual words",
                expected="a descriptor with words, such as asmk",
                actual="rows without words",
                fix='choose index "exact" or "hnsw" for one vector an image',
            )
        seen = np.bincount(chunk.words, minlength=len(counts))
        seen[: len(counts)] += counts
        counts = seen
        lengths.extend(np.bincount(chunk.owners, minlength=len(chunk.ids)).tolist())
        ids.extend(chunk.ids)
        code_bytes = chunk.vectors.shape[1]
    return counts, lengths, ids, code_bytes


def _fill(chunks: Chunks, starts: NDArray[np.int64], images: NDArray[np.int32], codes: NDArray[np.uint8]) -> None:
    cursor = starts[:-1].copy()
    first_image = 0
    for chunk in chunks():
        assert chunk.words is not None
        order = np.argsort(chunk.words, kind="stable")
        words = chunk.words[order]
        # Rows of one word go to consecutive places: the word's cursor plus the place within the run.
        runs, run_starts, run_lengths = np.unique(words, return_index=True, return_counts=True)
        places = cursor[words] + np.arange(len(words)) - np.repeat(run_starts, run_lengths)
        images[places] = first_image + chunk.owners[order]
        codes[places] = chunk.vectors[order]
        cursor[runs] += run_lengths
        first_image += len(chunk.ids)
    for array in (images, codes):
        if isinstance(array, np.memmap):
            array.flush()


def _create(path: Path, shape: tuple[int, ...], dtype: type) -> np.ndarray:
    if 0 in shape:  # an empty file cannot be mapped
        np.save(path, np.zeros(shape, dtype))
        return np.zeros(shape, dtype)
    return np.lib.format.open_memmap(path, mode="w+", dtype=dtype, shape=shape)
