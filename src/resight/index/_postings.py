"""Rows with visual words on their way into posting lists.

Rows with visual words, chunk by chunk → posting lists: for each word, one after the other, what has it.

Made in two passes: `count_words` tells how long each list is, and `Cursor` where the rows of a chunk go.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from resight.errors import RecipeError
from resight.index import Chunks
from resight.types import Descriptors, IntArray


@dataclass(frozen=True)
class Counted:
    starts: IntArray  # [words + 1]: the list of word w is from starts[w] to starts[w + 1]
    lengths: NDArray[np.int32]  # [images] words that each has
    ids: list[str]
    dimensions: int  # of a row's vector


def count_words(chunks: Chunks, owner: str, dtype: type, wanted: str) -> Counted:
    """`owner` is the index, whose rows are words with vectors of `dtype`, as the descriptor `wanted` gives them."""
    counts = np.zeros(1, np.int64)
    lengths = [np.zeros(0, np.int64)]
    ids: list[str] = []
    dimensions = 1
    for chunk in chunks():
        if chunk.words is None or chunk.vectors.dtype != dtype:
            raise RecipeError(
                f"the index {owner} needs visual words",
                expected=f"a descriptor whose rows are words with {np.dtype(dtype)}, such as {wanted}",
                actual="rows without words" if chunk.words is None else f"words with {chunk.vectors.dtype}",
                fix='choose index "histogram" for bow, "inverted" for asmk, "exact" or "hnsw" for one vector an image',
            )
        seen = np.bincount(chunk.words, minlength=len(counts))
        seen[: len(counts)] += counts
        counts = seen
        lengths.append(np.bincount(chunk.owners, minlength=len(chunk.ids)))
        ids.extend(chunk.ids)
        dimensions = chunk.vectors.shape[1]
    starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    return Counted(starts, np.concatenate(lengths).astype(np.int32), ids, dimensions)


class Cursor:
    """How far each list is filled, and how many images have been dealt with."""

    def __init__(self, starts: IntArray) -> None:
        self._next = starts[:-1].copy()
        self._images = 0

    def place(self, chunk: Descriptors) -> tuple[NDArray[np.intp], IntArray, NDArray[np.int32]]:
        """The rows of a chunk in the order of their words, the places that they go to, and their images' numbers."""
        assert chunk.words is not None
        order = np.argsort(chunk.words, kind="stable")
        words = chunk.words[order]
        # Rows of one word go to consecutive places: the word's next one plus the place within the run.
        runs, run_starts, run_lengths = np.unique(words, return_index=True, return_counts=True)
        places = self._next[words] + np.arange(len(words)) - np.repeat(run_starts, run_lengths)
        images = self._images + chunk.owners[order]
        self._next[runs] += run_lengths
        self._images += len(chunk.ids)
        return order, places, images


def create_array(path: Path, shape: tuple[int, ...], dtype: type) -> NDArray[Any]:
    """An array that is written straight to its file."""
    if 0 in shape:  # an empty file cannot be mapped
        np.save(path, np.zeros(shape, dtype))
        return np.zeros(shape, dtype)
    return np.lib.format.open_memmap(path, mode="w+", dtype=dtype, shape=shape)


def flush(*arrays: NDArray[Any]) -> None:
    for array in arrays:
        if isinstance(array, np.memmap):
            array.flush()
