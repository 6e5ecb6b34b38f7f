"""Bag of visual words: how often each word occurs in an image.

Hard assignment gives each local feature to its nearest word. Soft assignment divides it among its `neighbours` nearest
words by a Gaussian of their distances d, with shares that add up to 1:

    share of word w ∝ exp(-d_w² / (2 · width²))

Without `width`, 2 · width² is the code book's `gap`: the second word of a typical feature weighs 1/e of its first. For
bits, d² is the number that differ. Out: words [n], and vectors [n, 1] float32, the counts; an image without local
features has no rows. The index weighs words and computes norms and distances: `resight/index/bow_histogram.py`.
Sivic and Zisserman, ICCV 2003; Philbin et al., CVPR 2008.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from resight.encode.codebook import Codebook
from resight.encode.descriptors._vocabulary import VocabularySettings, open_codebook, read_rows
from resight.errors import RecipeError
from resight.plugins import check_range
from resight.types import Descriptors, Features, FloatArray, Role


@dataclass(frozen=True)
class Config(VocabularySettings):
    assignment: Literal["hard", "soft"] = "hard"  # hard: count each feature for its nearest word; soft: divide it
    neighbours: int = 5  # soft: number of nearest words that share a feature
    width: float | None = None  # soft: width of the Gaussian of distances; None: from the code book's `gap`

    def __post_init__(self) -> None:
        super().__post_init__()
        check_range("neighbours", self.neighbours, 1, 1000)
        if self.width is not None:
            check_range("width", self.width, 1e-6)


def build(config: Config) -> "Bow":
    return Bow(open_codebook(config, "asmk_4096", bits=True), config)


class Bow:
    def __init__(self, codebook: Codebook, config: Config) -> None:
        self._codebook = codebook
        self._config = config
        self._spread = 1.0 if config.assignment == "hard" else find_spread(codebook, config.width)
        kind = "hard" if config.assignment == "hard" else f"soft {config.neighbours}, 2 width² = {self._spread:.6g}"
        self.fingerprint = f"bow({codebook.fingerprint}, {kind}{', unit length' if config.normalise else ''})"

    def describe(self, features: Features, role: Role) -> Descriptors:  # noqa: ARG002 - both sides alike
        parts = [self._count(features, image) for image in range(len(features.ids))]
        return Descriptors(
            ids=features.ids,
            vectors=np.concatenate([counts for _, counts in parts])[:, None],
            owners=np.repeat(np.arange(len(parts), dtype=np.int32), [len(words) for words, _ in parts]),
            words=np.concatenate([words for words, _ in parts]),
        )

    def _count(self, features: Features, image: int) -> tuple[NDArray[np.int32], FloatArray]:
        """The words of an image [n], increasing, and the count of each [n]."""
        count = self._config.neighbours if self._config.assignment == "soft" else 1
        rows = read_rows(features, image, self._config.normalise)
        words, squares = self._codebook.find_nearest(rows, count)
        total = np.bincount(words.ravel(), share(squares, self._spread).ravel(), len(self._codebook.centres))
        held = np.flatnonzero(total)
        return held.astype(np.int32), total[held].astype(np.float32)


def share(squares: FloatArray, spread: float) -> FloatArray:
    """Squared distances [n, words], nearest first → shares [n, words] that add up to 1; spread: 2 · width²."""
    nearer = np.exp((squares[:, :1] - squares) / spread)
    return np.asarray(nearer / nearer.sum(axis=1, keepdims=True), np.float32)


def find_spread(codebook: Codebook, width: float | None) -> float:
    if width is not None:
        return 2 * width**2
    if codebook.gap is None:
        raise RecipeError(
            "the code book has no width for soft assignment",
            expected="a code book with its gap, as `resight codebook` learns it, or a width",
            actual="neither",
            fix='set width, e.g. 0.15 for RootSIFT, or codebook = "learn"',
        )
    return max(codebook.gap, 1e-12)
