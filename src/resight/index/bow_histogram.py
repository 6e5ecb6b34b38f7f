"""The inverted file of bags of words: compares histograms over the words that both have.

The histogram of an image x holds its word counts, times idf_w = log(N / images that have w) with `tf_idf`, normalised
to length 1: in L2 for cosine and l2, in L1 for l1 and chi2. Scores of a query q and an image x:

    cosine    Σ q_w x_w                                       l2      -√(2 - 2 Σ q_w x_w)
    l1        -Σ |q_w - x_w| = Σ (q_w + x_w - |q_w - x_w|) - 2
    chi2      -Σ (q_w - x_w)² / (q_w + x_w) = Σ (q_w + x_w - (q_w - x_w)² / (q_w + x_w)) - 2

In the sums on the right, a word that either lacks adds 0, so posting lists suffice. An image or a query without words,
or whose words all have weight 0, scores as if it shared no word. The weights come from the images of the index alone;
a word that none of them has gets the weight of a word that one image has.
On disk: starts.npy [words + 1], images.npy [m] int32, values.npy [m] float32 (both mapped), idf.npy [words], ids.json.
Sivic and Zisserman, ICCV 2003.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from resight import topk
from resight.files.documents import load_json
from resight.index import Chunks
from resight.index._postings import Counted, Cursor, count_words, create_array, flush
from resight.kernels.dispatch import add_postings
from resight.kernels.numpy_reference import Gain
from resight.types import Descriptors, FloatArray, IntArray, Ranking

Distance = Literal["cosine", "l2", "l1", "chi2"]


@dataclass(frozen=True)
class Config:
    distance: Distance = "cosine"  # how two histograms are compared: cosine, l2, l1 or chi2
    tf_idf: bool = True  # give rare words more weight: log(N / images with the word)


@dataclass(frozen=True)
class _Comparison:
    power: int  # 1 or 2: histograms are normalised in L1 or L2
    gain: Gain  # what a shared word adds to the sum
    finish: Callable[[FloatArray], FloatArray]  # sums → scores


COMPARISONS: dict[Distance, _Comparison] = {
    "cosine": _Comparison(2, "product", lambda sums: sums),
    "l2": _Comparison(2, "product", lambda sums: -np.sqrt(np.maximum(2 - 2 * sums, 0))),
    "l1": _Comparison(1, "overlap", lambda sums: sums - 2),
    "chi2": _Comparison(1, "chi2", lambda sums: sums - 2),
}


def build(config: Config) -> "BowHistogram":
    return BowHistogram(config)


class BowHistogram:
    def __init__(self, config: Config) -> None:
        self._config = config

    @property
    def divisible(self) -> bool:
        return not self._config.tf_idf  # idf depends on all images

    def create(self, chunks: Chunks, folder: Path) -> "BowHistogramSearcher":
        counted = count_words(chunks, "bow_histogram", np.float32, "bow")
        idf = _weigh(counted, self._config.tf_idf)
        total = int(counted.starts[-1])
        images = create_array(folder / "images.npy", (total,), np.int32)
        values = create_array(folder / "values.npy", (total,), np.float32)
        cursor, power = Cursor(counted.starts), COMPARISONS[self._config.distance].power
        for chunk in chunks():
            assert chunk.words is not None
            weighed = chunk.vectors[:, 0] * idf[chunk.words]
            lengths = np.bincount(chunk.owners, weighed**power, len(chunk.ids)) ** (1 / power)
            order, slots, numbers = cursor.assign(chunk)
            images[slots] = numbers
            values[slots] = (weighed / _without_zeros(lengths)[chunk.owners])[order]
        flush(images, values)
        np.save(folder / "starts.npy", counted.starts)
        np.save(folder / "idf.npy", idf)
        (folder / "ids.json").write_text(json.dumps(counted.ids), encoding="utf-8")
        return self.open(folder)

    def open(self, folder: Path) -> "BowHistogramSearcher":
        return BowHistogramSearcher(
            ids=load_json((folder / "ids.json").read_text(encoding="utf-8")),
            starts=np.load(folder / "starts.npy"),
            idf=np.load(folder / "idf.npy"),
            images=np.load(folder / "images.npy", mmap_mode="r"),
            values=np.load(folder / "values.npy", mmap_mode="r"),
            config=self._config,
        )


class BowHistogramSearcher:
    def __init__(
        self,
        ids: list[str],
        starts: IntArray,
        idf: NDArray[np.float64],
        images: NDArray[np.int32],
        values: FloatArray,
        config: Config,
    ) -> None:
        self._ids = ids
        self._starts = starts
        self._idf = idf
        self._images = images
        self._values = values
        self._comparison = COMPARISONS[config.distance]
        self._unseen = np.log(max(len(ids), 1)) if config.tf_idf else 1.0

    def search(self, query: Descriptors, k: int, allowed: frozenset[str] | None = None) -> Ranking:
        return topk.best_allowed(query.ids[0], self._ids, self._score(query), k, allowed)

    def _score(self, query: Descriptors) -> FloatArray:
        words = query.words if query.words is not None else np.zeros(0, np.int32)
        known = words < len(self._idf)
        weights = np.where(known, self._idf[np.where(known, words, 0)], self._unseen) if len(words) else np.zeros(0)
        weighed = query.vectors[: len(words), 0] * weights
        length = (weighed**self._comparison.power).sum() ** (1 / self._comparison.power)
        given = (weighed / (length or 1)).astype(np.float32)
        asked = np.flatnonzero(known & (given > 0))
        starts, stops = self._starts[words[asked]], self._starts[words[asked] + 1]
        sums = add_postings(
            given[asked], starts, stops, self._images, self._values, self._comparison.gain, len(self._ids)
        )
        return np.asarray(self._comparison.finish(sums), np.float32)


def _weigh(counted: Counted, tf_idf: bool) -> NDArray[np.float64]:
    """The weight of each word [words]. An image has one row per word, so a list has one entry per image."""
    holders = np.diff(counted.starts)
    return np.log(max(len(counted.ids), 1) / np.maximum(holders, 1)) if tf_idf else np.ones(len(holders))


def _without_zeros(lengths: NDArray[np.floating]) -> NDArray[np.floating]:
    return np.where(lengths > 0, lengths, 1)
