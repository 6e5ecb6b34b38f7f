"""The inverted file of ASMK: for each visual word, the images that have it and their binary codes.

Score of query q and image x, over the words w that both have (Tolias, Avrithis and Jégou, ICCV 2013):

    S(q, x) = Σ_w idf_w · σ(⟨b_qw, b_xw⟩ / D) / (√n_q · √n_x),   σ(u) = u^alpha where u > threshold, else 0

with codes b in {-1, 1}^D (so ⟨b, b'⟩ = D - 2 · Hamming distance) and n the number of words of an image.
On disk: starts.npy [words + 1], images.npy [m] int32, codes.npy [m, D/8] uint8, lengths.npy [N], ids.json; the
posting lists are mapped. `create` makes two passes over the rows: count, then fill.
"""

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from resight import topk
from resight.files.documents import load_json
from resight.index import Chunks
from resight.index._postings import Cursor, count_words, create_array, flush
from resight.kernels.dispatch import add_codes
from resight.plugins import check_range
from resight.types import Descriptors, FloatArray, Ranking


@dataclass(frozen=True)
class Config:
    alpha: float = 3.0  # exponent of the similarity of two binary codes; higher favours close ones
    threshold: float = 0.0  # similarity of two binary codes, -1 to 1, above which they count
    idf: bool = False  # weigh words by log²(N / images with the word); it did not help with a good code book

    def __post_init__(self) -> None:
        check_range("alpha", self.alpha, 0, 100)
        check_range("threshold", self.threshold, -1, 1)


def build(config: Config) -> "AsmkInverted":
    return AsmkInverted(config)


class AsmkInverted:
    def __init__(self, config: Config) -> None:
        self._config = config

    @property
    def divisible(self) -> bool:
        return not self._config.idf  # idf depends on all images

    def create(self, chunks: Chunks, folder: Path) -> "AsmkInvertedSearcher":
        counted = count_words(chunks, "asmk_inverted", np.uint8, "asmk")
        total = int(counted.starts[-1])
        images = create_array(folder / "images.npy", (total,), np.int32)
        codes = create_array(folder / "codes.npy", (total, counted.dimensions), np.uint8)
        cursor = Cursor(counted.starts)
        for chunk in chunks():
            order, slots, numbers = cursor.assign(chunk)
            images[slots], codes[slots] = numbers, chunk.vectors[order]
        flush(images, codes)
        np.save(folder / "starts.npy", counted.starts)
        np.save(folder / "lengths.npy", counted.lengths)
        (folder / "ids.json").write_text(json.dumps(counted.ids), encoding="utf-8")
        return self.open(folder)

    def open(self, folder: Path) -> "AsmkInvertedSearcher":
        return AsmkInvertedSearcher(
            ids=load_json((folder / "ids.json").read_text(encoding="utf-8")),
            starts=np.load(folder / "starts.npy"),
            lengths=np.load(folder / "lengths.npy"),
            images=np.load(folder / "images.npy", mmap_mode="r"),
            codes=np.load(folder / "codes.npy", mmap_mode="r"),
            config=self._config,
        )


class AsmkInvertedSearcher:
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
        self._gains = tabulate_gains(8 * codes.shape[1], config)
        holders = np.diff(starts)
        self._weights = np.log(max(len(ids), 1) / np.maximum(holders, 1)) ** 2 if config.idf else np.ones(len(holders))

    def search(self, query: Descriptors, k: int, allowed: frozenset[str] | None = None) -> Ranking:
        return topk.best_allowed(query.ids[0], self._ids, self._score(query), k, allowed)

    def _score(self, query: Descriptors) -> FloatArray:
        if not len(self._codes):  # no codes, so their width is unknown too
            return np.zeros(len(self._ids), np.float32)
        words = query.words if query.words is not None else np.zeros(0, np.int32)
        known = words < len(self._starts) - 1  # no image has the other words
        named = words[known]
        totals = add_codes(
            np.ascontiguousarray(query.vectors[known]),
            self._weights[named],
            self._starts[named],
            self._starts[named + 1],
            self._images,
            self._codes,
            self._gains,
            len(self._ids),
        )
        scale = np.sqrt(max(len(words), 1)) * np.sqrt(np.maximum(self._lengths, 1))
        return np.asarray(totals / scale, np.float32)


def tabulate_gains(bits: int, config: Config) -> NDArray[np.float64]:
    """σ of the similarity for each number of differing bits [bits + 1]."""
    similarity = 1 - np.arange(bits + 1) * (2 / bits)
    gains = np.zeros(bits + 1)
    chosen = similarity > config.threshold
    gains[chosen] = similarity[chosen] ** config.alpha
    return gains
