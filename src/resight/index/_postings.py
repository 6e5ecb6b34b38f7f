"""Build posting lists from rows with visual words, chunk by chunk. The lists of all words lie one after the other.

Two passes: `count_words` measures how long each list is, and `Cursor` assigns the rows of each chunk to their slots.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from resight.errors import RecipeError
from resight.files.mapped import create_mapped
from resight.index import Chunks
from resight.types import Descriptors, IntArray


@dataclass(frozen=True)
class Counted:
    starts: IntArray  # [words + 1]: the list of word w runs from starts[w] to starts[w + 1]
    lengths: NDArray[np.int32]  # [images] number of words per image
    ids: list[str]
    dimensions: int  # of a row's vector


def count_words(chunks: Chunks, owner: str, dtype: type, wanted: str) -> Counted:
    """Count rows per word and per image. `owner` is the index; it needs vectors of `dtype`, as `wanted` makes them."""
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
                fix='choose index "bow_histogram" for bow, "asmk_inverted" for asmk, "exact" for one vector per image',
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
    """Tracks how far each list is filled, and how many images have been seen."""

    def __init__(self, starts: IntArray) -> None:
        self._next = starts[:-1].copy()
        self._images = 0

    def assign(self, chunk: Descriptors) -> tuple[NDArray[np.intp], IntArray, NDArray[np.int32]]:
        """The rows of a chunk in the order of their words, the slots that they go to, and their image numbers."""
        assert chunk.words is not None
        order = np.argsort(chunk.words, kind="stable")
        words = chunk.words[order]
        # Rows of one word go to consecutive slots: the word's next free one plus the position within the run.
        runs, run_starts, run_lengths = np.unique(words, return_index=True, return_counts=True)
        slots = self._next[words] + np.arange(len(words)) - np.repeat(run_starts, run_lengths)
        images = self._images + chunk.owners[order]
        self._next[runs] += run_lengths
        self._images += len(chunk.ids)
        return order, slots, images


def create_array(path: Path, shape: tuple[int, ...], dtype: type) -> NDArray[Any]:
    """A new array, mapped to its file."""
    if 0 in shape:  # an empty file cannot be mapped
        np.save(path, np.zeros(shape, dtype))
        return np.zeros(shape, dtype)
    return create_mapped(path, shape, dtype)


def flush(*arrays: NDArray[Any]) -> None:
    for array in arrays:
        if isinstance(array, np.memmap):
            array.flush()
