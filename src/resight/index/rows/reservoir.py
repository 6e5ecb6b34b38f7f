"""Reservoir sampling: rows arrive chunk by chunk, in unknown number; a uniform random sample of them stays.

Every row draws a random key, and the rows with the smallest keys stay (Vitter 1985, by keys). So each row is as likely
to stay as any other, and the sample does not depend on how the rows are cut into chunks. `Reservoir` takes plain
arrays. `RegionReservoir` takes Descriptors and keeps rows of one grid level only: the sample that trains a compression.

Levels are those of grids, each with the coarser ones: an image's largest row is L0; a row of at least half its side
belongs to L1, of a third to L2, of a quarter to L3. Sides are compared by the root of the area.
"""

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from resight.errors import RecipeError, SpaceMismatch
from resight.index.rows.row_files import check_rows
from resight.types import Descriptors, FloatArray, IntArray

Level = Literal["all", "L0", "L1", "L2", "L3"]
SLACK = 0.9  # boxes are rounded to pixels; the next level is more than a tenth smaller
BATCH = 16  # chunks may be small: new rows wait until they number a sixteenth of the sample


class Reservoir:
    """Holds at most `size` rows [n, D] float32."""

    def __init__(self, size: int, generator: np.random.Generator | None = None) -> None:
        self._size = size
        self._random = generator or np.random.default_rng(0)
        self._seen = 0  # rows so far
        self._count = 0  # rows held, at the front of the three arrays
        self._keys = np.zeros(0)
        self._numbers = np.zeros(0, np.int64)  # position of each held row in the stream
        self._rows: FloatArray = np.zeros((0, 0), np.float32)
        self._waiting: list[tuple[NDArray[np.float64], IntArray, FloatArray]] = []  # arrived after it was full

    @property
    def dimensions(self) -> int | None:
        """Dimensions of the rows; None before the first."""
        return int(self._rows.shape[1]) if self._seen else None

    def add(self, rows: NDArray[Any]) -> None:
        """Offer rows [n, D]."""
        keys = self._random.random(len(rows))
        numbers = self._seen + np.arange(len(rows))
        self._seen += len(rows)
        free = self._size - self._count
        if free > 0 and len(rows):
            self._fill(rows[:free], keys[:free], numbers[:free])
            rows, keys, numbers = rows[free:], keys[free:], numbers[free:]
        if len(rows) and self._size:
            coming = np.flatnonzero(keys < self._keys.max())
            self._waiting.append((keys[coming], numbers[coming], np.array(rows[coming], np.float32)))
            if BATCH * sum(len(some) for some, _, _ in self._waiting) >= self._size:
                self._merge()

    def take(self) -> FloatArray:
        """The sample [at most size, D] in random order: by key."""
        self._merge()
        return self._rows[: self._count][np.argsort(self._keys[: self._count])]

    def take_in_order(self) -> FloatArray:
        """The sample [at most size, D] in the order in which the rows arrived."""
        self._merge()
        return self._rows[: self._count][np.argsort(self._numbers[: self._count])]

    def _fill(self, rows: NDArray[Any], keys: NDArray[np.float64], numbers: IntArray) -> None:
        end = self._count + len(rows)
        if end > len(self._keys):  # double the arrays, so that few copies are needed
            capacity = min(max(end, 2 * len(self._keys)), self._size)
            held, self._rows = self._rows, np.empty((capacity, rows.shape[1]), np.float32)
            self._rows[: self._count] = held[: self._count] if self._count else 0
            self._keys = np.concatenate([self._keys, np.zeros(capacity - len(self._keys))])
            self._numbers = np.concatenate([self._numbers, np.zeros(capacity - len(self._numbers), np.int64)])
        slots = slice(self._count, end)
        self._rows[slots], self._keys[slots], self._numbers[slots] = rows, keys, numbers
        self._count = end

    def _merge(self) -> None:
        """Let the waiting rows with smaller keys replace held ones."""
        if not self._waiting:
            return
        keys, numbers, rows = (np.concatenate(parts) for parts in zip(*self._waiting, strict=True))
        self._waiting = []
        stays = np.zeros(self._size + len(keys), bool)
        stays[np.argsort(np.concatenate([self._keys, keys]))[: self._size]] = True
        slots, chosen = np.flatnonzero(~stays[: self._size]), np.flatnonzero(stays[self._size :])
        self._rows[slots], self._keys[slots], self._numbers[slots] = rows[chosen], keys[chosen], numbers[chosen]


class RegionReservoir:
    """A Reservoir of the rows that belong to one grid level."""

    def __init__(self, size: int, level: Level, generator: np.random.Generator) -> None:
        self._level = level
        self._reservoir = Reservoir(size, generator)

    def add(self, chunk: Descriptors) -> None:
        check_rows(chunk)
        dimensions = self._reservoir.dimensions
        if dimensions not in (None, chunk.vectors.shape[1]):
            raise SpaceMismatch(
                "the rows that train the index have different dimensions",
                expected=f"{dimensions} dimensions",
                actual=f"{chunk.vectors.shape[1]} dimensions",
                fix="encode all images with one recipe, into a new collection",
            )
        self._reservoir.add(chunk.vectors[select_level(chunk, self._level)])

    def take(self) -> FloatArray:
        """The sample, in the order in which the rows arrived."""
        return self._reservoir.take_in_order()


def select_level(chunk: Descriptors, level: Level) -> IntArray:
    """Numbers of the rows that belong to a level or a coarser one."""
    if level == "all" or len(chunk) == len(np.unique(chunk.owners)):
        return np.arange(len(chunk))
    if chunk.boxes is None:
        raise RecipeError(
            f"train_on = {level!r} needs boxes, and the rows have none",
            expected="regions, which have boxes",
            actual=f"{len(chunk):,} rows of {len(chunk.ids):,} images without boxes",
            fix='set train_on = "all"',
        )
    sides = np.sqrt(np.prod(np.maximum(chunk.boxes[:, 2:] - chunk.boxes[:, :2], 0), axis=1))
    largest = np.zeros(len(chunk.ids), np.float32)
    np.maximum.at(largest, chunk.owners, sides)
    return np.flatnonzero(sides >= SLACK * largest[chunk.owners] / (int(level[1]) + 1))
