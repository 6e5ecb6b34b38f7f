"""Rows, chunk by chunk → the sample that trains a compression, in one pass.

Every row gets a random number, and those with the lowest are kept: how rows come in chunks makes no difference.

Levels are those of grids, each with the coarser ones: an image's largest row is L0; a row of at least half its side
belongs to L1, of a third to L2, of a quarter to L3. Sides are compared by the root of the area.

Tokens in chunks, of which nobody knows how many there are → a random sample of them, in one run.

Every token gets a random key; those with the smallest keys stay. So each is as likely to stay as any other, and the
sample depends on the order of the tokens, not on how they are cut into chunks.
"""

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from resight.errors import RecipeError, SpaceMismatch
from resight.index.rows.row_files import check_rows
from resight.types import Descriptors, FloatArray, IntArray

Level = Literal["all", "L0", "L1", "L2", "L3"]
SLACK = 0.9  # boxes are rounded to pixels, and the next level is farther away than that


class Sampler:
    """Holds at most `most` rows [n, D] float32, of a level."""

    def __init__(self, most: int, level: Level, generator: np.random.Generator) -> None:
        self._most = most
        self._level = level
        self._generator = generator
        self._numbers = np.zeros(0)  # random, of the rows that are kept
        self._places = np.zeros(0, np.int64)  # where those came in the stream
        self._room = np.zeros((0, 0), np.float32)  # its first rows are theirs
        self._seen = 0

    def add(self, chunk: Descriptors) -> None:
        check_rows(chunk)
        if self._seen and chunk.vectors.shape[1] != self._room.shape[1]:
            raise SpaceMismatch(
                "the rows that train the index are of two kinds",
                expected=f"{self._room.shape[1]} dimensions",
                actual=f"{chunk.vectors.shape[1]} dimensions",
                fix="describe all images in one way, into a new collection",
            )
        eligible = choose_level(chunk, self._level)
        numbers = self._generator.random(len(eligible))
        every = np.concatenate([self._numbers, numbers])
        limit = np.partition(every, self._most - 1)[self._most - 1] if len(every) > self._most else np.inf
        comes = np.flatnonzero(numbers <= limit)
        # New rows take the places of those that go; what is more than that comes behind.
        end = min(len(every), self._most)
        slots = np.concatenate([np.flatnonzero(self._numbers > limit), np.arange(len(self._numbers), end)])[
            : len(comes)
        ]
        self._make_room(end, chunk.vectors.shape[1])
        self._numbers = _put(self._numbers, slots, numbers[comes])
        self._places = _put(self._places, slots, self._seen + comes)
        self._room[slots] = chunk.vectors[eligible[comes]]
        self._seen += len(eligible)

    def take(self) -> FloatArray:
        """The sample, in the order of the stream."""
        return self._room[np.argsort(self._places)]

    def _make_room(self, count: int, dimensions: int) -> None:
        """For `count` rows at least; room is doubled, so that little is copied."""
        if count > len(self._room) or self._room.shape[1] != dimensions:
            room = np.empty((min(max(2 * len(self._room), count), self._most), dimensions), np.float32)
            if len(self._numbers):
                room[: len(self._numbers)] = self._room[: len(self._numbers)]
            self._room = room


def _put(array: NDArray[Any], slots: IntArray, values: NDArray[Any]) -> NDArray[Any]:
    """A copy of `array` with `values` in the slots, longer where a slot lies behind its end."""
    result = np.empty(max(len(array), int(slots.max(initial=-1)) + 1), array.dtype)
    result[: len(array)] = array
    result[slots] = values
    return result


def choose_level(chunk: Descriptors, level: Level) -> IntArray:
    """The rows of a chunk that belong to a level or a coarser one."""
    if level == "all" or len(chunk) == len(np.unique(chunk.owners)):
        return np.arange(len(chunk))
    if chunk.boxes is None:
        raise RecipeError(
            f"the rows have no boxes, so that train_on = {level!r} cannot be told",
            expected="regions, which have boxes",
            actual=f"{len(chunk):,} rows of {len(chunk.ids):,} images without boxes",
            fix='set train_on = "all"',
        )
    sides = np.sqrt(np.prod(np.maximum(chunk.boxes[:, 2:] - chunk.boxes[:, :2], 0), axis=1))
    largest = np.zeros(len(chunk.ids), np.float32)
    np.maximum.at(largest, chunk.owners, sides)
    return np.flatnonzero(sides >= SLACK * largest[chunk.owners] / (int(level[1]) + 1))


LATER = 16  # a sixteenth of the sample is put aside before it is sorted in, since chunks may be small


class Reservoir:
    def __init__(self, size: int, seed: int = 0) -> None:
        self._size = size
        self._random = np.random.default_rng(seed)
        self._count = 0  # tokens held, at the front of both arrays
        self._keys = np.zeros(0)
        self._tokens: FloatArray = np.zeros((0, 0), np.float32)
        self._aside: list[tuple[NDArray[np.float64], FloatArray]] = []  # keys and tokens that came since it was full

    def add(self, tokens: NDArray[Any]) -> None:
        """[n, d]"""
        keys = self._random.random(len(tokens))
        free = self._size - self._count
        if free > 0 and len(tokens):
            self._fill(tokens[:free], keys[:free])
            tokens, keys = tokens[free:], keys[free:]
        if len(tokens) and self._size:
            coming = np.flatnonzero(keys < self._keys.max())
            self._aside.append((keys[coming], np.array(tokens[coming], np.float32)))
            if LATER * sum(len(some) for some, _ in self._aside) >= self._size:
                self._sort_in()

    def take(self) -> FloatArray:
        """[at most size, d] float32, by key."""
        self._sort_in()
        return self._tokens[: self._count][np.argsort(self._keys[: self._count])]

    def _fill(self, tokens: NDArray[Any], keys: NDArray[np.float64]) -> None:
        end = self._count + len(tokens)
        if end > len(self._keys):
            room = min(max(end, 2 * len(self._keys)), self._size)
            held, self._tokens = self._tokens, np.empty((room, tokens.shape[1]), np.float32)
            self._tokens[: self._count] = held[: self._count] if self._count else 0
            self._keys = np.concatenate([self._keys, np.zeros(room - len(self._keys))])
        self._tokens[self._count : end], self._keys[self._count : end] = tokens, keys
        self._count = end

    def _sort_in(self) -> None:
        if not self._aside:
            return
        keys = np.concatenate([keys for keys, _ in self._aside])
        tokens = np.concatenate([tokens for _, tokens in self._aside])
        self._aside = []
        stays = np.zeros(self._size + len(keys), bool)
        stays[np.argsort(np.concatenate([self._keys, keys]))[: self._size]] = True
        places, chosen = np.flatnonzero(~stays[: self._size]), np.flatnonzero(stays[self._size :])
        self._tokens[places], self._keys[places] = tokens[chosen], keys[chosen]
