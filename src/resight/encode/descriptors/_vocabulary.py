"""The settings of every descriptor that has visual words, and the code book that they mean."""

from dataclasses import dataclass
from pathlib import Path

from resight.encode import codebook as codebooks
from resight.encode.codebook import Codebook
from resight.errors import RecipeError
from resight.plugins import check_range
from resight.types import Features, FloatArray
from resight.vectors import l2_normalise

LEARN = "learn"  # in the place of a file: from the images that are indexed


@dataclass(frozen=True)
class VocabularySettings:
    codebook: Path | None = None  # a file of one's own, or "learn"; None: the generic one for RootSIFT
    words: int | None = None  # how many; to be learnt, or that the file has to have
    normalise: bool = False  # features to unit length first, as tokens of a network should be
    # How it is learnt, where it is:
    sample: int = 500_000  # at most so many features
    branching: int | None = None  # a tree of words, each node with so many below it; None: no tree
    seed: int = 0

    def __post_init__(self) -> None:
        check_range("sample", self.sample, 1)
        check_range("seed", self.seed, 0)
        if self.words is not None:
            check_range("words", self.words, 1, 10_000_000)
        if self.branching is not None:
            check_range("branching", self.branching, 2, 10_000)


def open_codebook(settings: VocabularySettings, shipped: str, bits: bool = False) -> Codebook:
    """bits: whether binary words will do."""
    if settings.codebook is not None and str(settings.codebook) == LEARN:
        raise RecipeError(
            'codebook = "learn", and there are no images to learn from',
            expected="a collection that is made together with its images",
            actual="a recipe alone",
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


def take_rows(features: Features, image: int, normalise: bool) -> FloatArray:
    """The local features of one image of a batch as words are found among them: [n, D] float32 or uint8."""
    rows: FloatArray = features.patches[image]
    return l2_normalise(rows) if normalise and rows.dtype != "uint8" else rows
