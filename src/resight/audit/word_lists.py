"""Images that share visual words down to the bits of their codes: lists that stay short however many images there are.

An inverted file of words alone is too coarse to ask 200,000 times: every image is in hundreds of long lists. Here a key
is a word and BITS bits of the code that an image has for it, so that lists are 2^BITS times shorter. What counts is how
many keys two images share, above what chance explains. Copies of paintings share 184 of 587 (cropped), 82 of 750
(turned by 45°) or 65 of 823 (JPEG of quality 20) in the median; of a thousand unrelated images the nearest shares 5.

In: rows of the descriptor `asmk` (words, and packed bits). On disk: one int32 for each word of each image, mapped.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from resight.types import Descriptors, IntArray

BITS = 8
Chunks = Callable[[], Iterator[Descriptors]]  # run through twice: count, then fill


@dataclass(frozen=True)
class WordLists:
    starts: IntArray  # [keys + 1]
    images: NDArray[np.int32]  # [rows] numbers of images, in the order of the chunks
    count: int  # images

    def count_shared(self, words: NDArray[np.int32], codes: NDArray[np.uint8]) -> NDArray[np.int32]:
        """How many keys of a query each image has: [count]."""
        keys = make_keys(words, codes)
        keys = keys[keys < len(self.starts) - 1]
        lengths = self.starts[keys + 1] - self.starts[keys]
        places = np.arange(lengths.sum()) + np.repeat(self.starts[keys] - np.cumsum(lengths) + lengths, lengths)
        return np.bincount(self.images[places], minlength=self.count).astype(np.int32)


def build_lists(chunks: Chunks, file: Path) -> WordLists:
    counts = np.zeros(0, np.int64)
    images = 0
    for chunk in chunks():
        keys = make_keys(_words(chunk), chunk.vectors)
        counts = _add(counts, np.bincount(keys, minlength=len(counts)))
        images += len(chunk.ids)
    starts = np.concatenate([[0], np.cumsum(counts)])
    postings = np.lib.format.open_memmap(file, "w+", np.int32, (max(int(starts[-1]), 1),))
    places, first = starts[:-1].copy(), 0
    for chunk in chunks():
        keys = make_keys(_words(chunk), chunk.vectors)
        order = np.argsort(keys, kind="stable")
        found, begins, often = np.unique(keys[order], return_index=True, return_counts=True)
        within = np.arange(len(keys)) - np.repeat(begins, often)
        postings[np.repeat(places[found], often) + within] = chunk.owners[order] + first
        places[found] += often
        first += len(chunk.ids)
    postings.flush()
    return WordLists(starts, np.load(file, mmap_mode="r"), images)


def make_keys(words: NDArray[np.int32], codes: NDArray[np.uint8]) -> IntArray:
    """Words [n] and codes [n, bytes] → [n] int64. The bits are spread evenly over the code."""
    bits = np.unpackbits(codes, axis=1) if len(codes) else np.zeros((0, 8 * codes.shape[1]), np.uint8)
    chosen = bits[:, np.linspace(0, bits.shape[1] - 1, BITS).astype(int)].astype(np.int64)
    return np.asarray((words.astype(np.int64) << BITS) + chosen @ (1 << np.arange(BITS)), np.int64)


def _words(rows: Descriptors) -> NDArray[np.int32]:
    return rows.words if rows.words is not None else np.zeros(len(rows), np.int32)


def _add(first: IntArray, second: IntArray) -> IntArray:
    longer, shorter = (first, second) if len(first) >= len(second) else (second, first)
    total = longer.copy()
    total[: len(shorter)] += shorter
    return total
