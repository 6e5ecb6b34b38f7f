"""How far a score can be from the fp32 one: what the kinds of packs share.

A token x that is stored as x' gives a dot product that is wrong by at most |q| × |x - x'| (Cauchy-Schwarz), and so
does the best over an image's tokens, with the largest error among them. Rounding comes on top.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

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
