"""Settings that all descriptors with visual words share, and the code book that they name."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from resight.encode import codebook as codebooks
from resight.encode.codebook import Codebook
from resight.errors import RecipeError
from resight.plugins import check_range
from resight.types import Features, FloatArray
from resight.vectors import l2_normalise

LEARN = "learn"  # instead of a file: learn from the images that are indexed


@dataclass(frozen=True)
class VocabularySettings:
    codebook: Path | None = None  # code book file, or "learn" to learn one; None: the one shipped for RootSIFT
    words: int | None = None  # number of visual words: to learn, or that the file must have
    normalise: bool = False  # scale features to unit length first, as for tokens of a network
    sample: int = 500_000  # learn: most features to learn from
    branching: int | None = None  # learn: children per node of a vocabulary tree; None: no tree
    seed: int = 0  # learn: random seed

    def __post_init__(self) -> None:
        check_range("sample", self.sample, 1)
        check_range("seed", self.seed, 0)
        if self.words is not None:
            check_range("words", self.words, 1, 10_000_000)
        if self.branching is not None:
            check_range("branching", self.branching, 2, 10_000)


def open_codebook(settings: VocabularySettings, shipped: str, bits: bool = False) -> Codebook:
    """The code book; `bits`: the descriptor also takes binary words."""
    if settings.codebook is not None and str(settings.codebook) == LEARN:
        raise RecipeError(
            'codebook = "learn", and there are no images to learn from',
            expected="a collection that is made from images",
            actual="a recipe without images",
            fix="make it with `resight index` or `resight eval`, or learn a file with `resight codebook` first",
        )
    book = codebooks.load(settings.codebook, shipped)
    if book.is_binary and not bits:
        raise RecipeError(
            "words of bits have no residuals",
            expected="an encoder whose features are numbers, such as sift",
            actual=f"{settings.codebook}, words of {8 * book.centres.shape[1]} bits",
            fix='choose the descriptor "bow", or another encoder',
        )
    if settings.words is not None and settings.words != len(book.centres):
        raise RecipeError(
            f"the code book does not have {settings.words} words",
            expected=str(settings.words),
            actual=str(len(book.centres)),
            fix='leave words out, or set codebook = "learn"',
        )
    return book


def read_rows(features: Features, image: int, normalise: bool) -> FloatArray:
    """The local features of one image of a batch, ready for assignment to words: [n, D] float32 or uint8."""
    rows: FloatArray = features.patches[image]
    return l2_normalise(rows) if normalise and rows.dtype != "uint8" else rows


def sum_residuals(vectors: FloatArray, codebook: Codebook, count: int) -> tuple[np.ndarray, FloatArray]:
    """The words that occur [m], rising, and the sum of their residuals [m, D], each feature given to `count` words."""
    assigned = codebook.assign(vectors, count)
    words, slots = np.unique(assigned.ravel(), return_inverse=True)
    order = np.argsort(slots, kind="stable")
    residuals = np.repeat(vectors, assigned.shape[1], axis=0) - codebook.centres[assigned.ravel()]
    if len(words) == 0:
        return words, np.zeros((0, codebook.centres.shape[1]), np.float32)
    starts = np.searchsorted(slots[order], np.arange(len(words)))
    return words, np.add.reduceat(residuals[order], starts, axis=0)
