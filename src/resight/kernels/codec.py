"""What every kind of pack (fp32, fp16, int8, pq, rq) provides, and the error bounds and loops that they share.

Each kind is one module with `Config`, `begin(plan, config)`, which returns a Filler, and `restore(arrays, offsets)`.
`fill_from` codes the tokens of one array; `writer.PackWriter` codes a stream of tokens. Both hand the Filler a few
tokens at a time, in any order, so memory does not grow with their number.

Error bounds: if a token x is stored as x', its dot product is off by at most |q| × |x - x'| (Cauchy-Schwarz). The best
dot product of an image is then off by at most the largest such error of its tokens, plus float rounding.
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

CHUNK = 1024  # tokens quantised together: more would not stay in the cache between two steps
UNIT = 2.0**-24  # relative error of rounding to float32


def rounding_error(query_length: float, count: int, d: int, spread: float = 1.0) -> tuple[float, float]:
    """The share of float32 rounding: a factor on a measured bound, and an amount per unit of a token's length.

    A sum of d products is off by at most about d × 2^-24 × |q| × |x|, in any order; the mean over `count` query tokens
    adds as much per token. The factor of 8 covers both scores, their constant parts, the projection of the query (its
    error grows with the root of the number of rows: `spread`), the errors and lengths, which were measured in float32,
    and the last sum of score and bound.
    """
    return 1 + 4 * d * UNIT, 8 * spread * (d + count + 16) * UNIT * query_length


def bound_by_tables(query: FloatArray, rounding: FloatArray, errors: FloatArray, lengths: FloatArray) -> FloatArray:
    """Error bounds [N] of scores that are sums of table entries.

    `rounding` [Kq] is the largest rounding error of the tables; `errors` and `lengths` [N] belong to the tokens.
    """
    length = float(np.linalg.norm(query, axis=1).mean())
    growth, each = rounding_error(length, len(query), query.shape[1])
    constant = np.float32(growth * float(rounding.mean()))
    return np.asarray(errors * np.float32(growth * length) + lengths * np.float32(each) + constant)


def read_chunks(tokens: NDArray[Any]) -> Iterator[tuple[slice, FloatArray]]:
    """Yield about a thousand rows at a time as float32, so that a memory map is never read whole."""
    for start in range(0, len(tokens), CHUNK):
        chunk = slice(start, min(start + CHUNK, len(tokens)))
        yield chunk, np.asarray(tokens[chunk], np.float32)


KINDS = ("fp32", "fp16", "int8", "pq", "rq")


class Codes(Protocol):
    """Coded tokens of N images; image i owns tokens offsets[i]:offsets[i + 1]."""

    kind: ClassVar[str]

    @property
    def d(self) -> int: ...

    @property
    def offsets(self) -> NDArray[np.int64]: ...

    def scores(self, query: FloatArray, rows: NDArray[np.int64] | None, threads: int | None) -> FloatArray:
        """The mean over query tokens [Kq, d] of the best dot product, for all images [N] or for `rows`."""
        ...

    def radius(self, query: FloatArray) -> FloatArray:
        """Error bounds [N]: the most by which these scores differ from those of the original tokens."""
        ...

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The arrays that `restore` needs besides the offsets."""
        ...


def find_kind(kind: str) -> ModuleType:
    if kind not in KINDS:
        raise InputError(
            f"there is no kind of pack {kind!r}",
            expected=f"one of {', '.join(KINDS)}",
            actual=repr(kind),
            fix="check the spelling",
        )
    return importlib.import_module(f"resight.kernels.{kind}")


Rows = slice | NDArray[np.int64]  # numbers of tokens
# Sorted token numbers → these tokens [n, d] float32. It may return other tokens instead if they are a random sample.
Draw = Callable[[NDArray[np.int64]], FloatArray]


@dataclass(frozen=True)
class Plan:
    """The facts that a Filler needs before the first token arrives."""

    offsets: NDArray[np.int64]  # [N + 1]
    d: int
    draw: Draw  # returns the sample that a kind learns from
    allocate: Allocate

    @property
    def tokens(self) -> int:
        return int(self.offsets[-1])


class Filler(Protocol):
    def fill(self, rows: Rows, tokens: FloatArray) -> None:
        """Code tokens [n, d] float32 with numbers `rows`; each number comes once."""
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


def update_largest(largest: FloatArray, offsets: NDArray[np.int64], rows: Rows, values: FloatArray) -> None:
    """Update `largest` [N] in place with the largest value of each image's tokens."""
    numbers = np.arange(rows.start, rows.stop) if isinstance(rows, slice) else rows
    np.maximum.at(largest, np.searchsorted(offsets, numbers, side="right") - 1, values)
