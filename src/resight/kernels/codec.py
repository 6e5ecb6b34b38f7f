"""How far a score can be from the fp32 one: what the kinds of packs share.

A token x that is stored as x' gives a dot product that is wrong by at most |q| × |x - x'| (Cauchy-Schwarz), and so
does the best over an image's tokens, with the largest error among them. Rounding comes on top.

What a kind of pack can do.

Each kind is one module with `Config`, `begin(plan, config)`, which gives a Filler (filling.py), and `restore(arrays,
offsets)`.

Tokens, some at a time and in any order → the codes of a pack, in memory that does not grow with their number.

`fill_from` makes codes from tokens that lie in one array, `writing.PackWriter` from tokens that never do.
"""

import importlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from resight.errors import InputError
from resight.kernels.allocation import Allocate
from resight.types import FloatArray

CHUNK = 1024  # tokens that are quantised together: more would leave the cache between one step and the next
UNIT = 2.0**-24  # what rounding to float32 changes, relative


def round_off(query_length: float, count: int, d: int, spread: float = 1.0) -> tuple[float, float]:
    """What float32 can add: a factor on a measured bound, and so much for each unit of a token's length.

    A sum of d products is off by at most about d × 2^-24 × |q| × |x|, whatever the order; taking the mean over `count`
    query tokens adds as much for each of them. The factor of 8 stands for: both scores, their constant parts, the
    projection of the query (its rows spread an error over the root of their number: `spread`), the errors and lengths
    themselves, which were measured in float32, and the last sum of score and bound.
    """
    return 1 + 4 * d * UNIT, 8 * spread * (d + count + 16) * UNIT * query_length


def bound_by_tables(query: FloatArray, rounding: FloatArray, errors: FloatArray, lengths: FloatArray) -> FloatArray:
    """[N] how far scores can be off that are sums of entries of tables.

    `rounding` [Kq] is the most that the integers of the tables change, `errors` and `lengths` [N] those of the tokens.
    """
    length = float(np.linalg.norm(query, axis=1).mean())
    growth, each = round_off(length, len(query), query.shape[1])
    constant = np.float32(growth * float(rounding.mean()))
    return np.asarray(errors * np.float32(growth * length) + lengths * np.float32(each) + constant)


def read_chunks(tokens: NDArray[Any]) -> Iterator[tuple[slice, FloatArray]]:
    """Some thousand rows at a time as float32, so that a memory map is never read as a whole."""
    for start in range(0, len(tokens), CHUNK):
        chunk = slice(start, min(start + CHUNK, len(tokens)))
        yield chunk, np.asarray(tokens[chunk], np.float32)


KINDS = ("fp32", "fp16", "int8", "pq", "rq")


class Codes(Protocol):
    """Tokens of N images in some form; image i is offsets[i]:offsets[i + 1] of them."""

    kind: ClassVar[str]

    @property
    def d(self) -> int: ...

    @property
    def offsets(self) -> NDArray[np.int64]: ...

    def scores(self, query: FloatArray, rows: NDArray[np.int64] | None, threads: int | None) -> FloatArray:
        """[N], or one a row: the mean over query tokens [Kq, d] of the best dot product."""
        ...

    def radius(self, query: FloatArray) -> FloatArray:
        """[N]: how far these scores can be from those of the tokens that the codes were made from."""
        ...

    def arrays(self) -> dict[str, NDArray[Any]]:
        """What has to be kept to restore the codes, besides the offsets."""
        ...


def find_kind(kind: str) -> ModuleType:
    if kind not in KINDS:
        raise InputError(
            f"there is no kind of pack called {kind!r}",
            expected=f"one of {', '.join(KINDS)}",
            actual=repr(kind),
            fix="check the spelling",
        )
    return importlib.import_module(f"resight.kernels.{kind}")


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
