"""Tokens, some at a time and in any order → the codes of a pack, in memory that does not grow with their number.

`fill_from` makes codes from tokens that lie in one array, `writing.PackWriter` from tokens that never do.
"""

from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from resight.kernels.bounds import read_chunks
from resight.kernels.kinds import Codes
from resight.kernels.room import Allocate
from resight.types import FloatArray

Rows = slice | NDArray[np.int64]  # numbers of tokens
# Numbers of tokens, sorted → these tokens [n, d] float32. A kind that draws from all tokens may be given others that
# were drawn at random, too.
Draw = Callable[[NDArray[np.int64]], FloatArray]


@dataclass(frozen=True)
class Plan:
    """What is known before the first token comes."""

    offsets: NDArray[np.int64]  # [N + 1]
    d: int
    draw: Draw  # for what a kind learns from a sample
    allocate: Allocate

    @property
    def tokens(self) -> int:
        return int(self.offsets[-1])


class Filler(Protocol):
    def fill(self, rows: Rows, tokens: FloatArray) -> None:
        """Some thousand tokens [n, d] float32 and their numbers; each comes once."""
        ...

    def finish(self) -> Codes: ...


def fill_from(
    kind: ModuleType, tokens: NDArray[Any], offsets: NDArray[np.int64], config: Any, allocate: Allocate
) -> Codes:
    def draw(rows: NDArray[np.int64]) -> FloatArray:
        return np.asarray(tokens[rows], np.float32)

    filler: Filler = kind.begin(Plan(offsets, tokens.shape[1], draw, allocate), config)
    for chunk, rows in read_chunks(tokens):
        filler.fill(chunk, rows)
    return filler.finish()


def raise_longest(longest: FloatArray, offsets: NDArray[np.int64], rows: Rows, values: FloatArray) -> None:
    """Raises each image's entry of `longest` [N] to the largest of its tokens' values."""
    numbers = np.arange(rows.start, rows.stop) if isinstance(rows, slice) else rows
    np.maximum.at(longest, np.searchsorted(offsets, numbers, side="right") - 1, values)
