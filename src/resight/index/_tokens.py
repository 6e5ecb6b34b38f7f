"""Stream tokens from the store into an index, chunk by chunk, and choose the images that train its compression.

`measure` makes the first pass and returns ids, counts and a random sample. `number_tokens` makes the second and yields
tokens with their numbers in the order of the ids.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

import numpy as np
from numpy.typing import NDArray

from resight.errors import RecipeError, SpaceMismatch
from resight.index import Chunks
from resight.index.rows.reservoir import Reservoir
from resight.kernels.numpy_reference import join_ranges
from resight.types import FloatArray, IntArray

SAMPLE = 65_536  # tokens that int8 and rq learn from


@dataclass(frozen=True)
class Contents:
    ids: list[str]  # sorted
    offsets: NDArray[np.int64]  # [N + 1]
    dimensions: int
    space: str
    sample: FloatArray  # [at most SAMPLE, d] a uniform random sample of all tokens


def measure(chunks: Chunks) -> Contents:
    """Make one pass over the chunks; refuse rows of different shapes or spaces."""
    counts: dict[str, int] = {}
    reservoir = Reservoir(SAMPLE)
    shape: tuple[int, str] | None = None
    for chunk in chunks():
        if chunk.words is not None or chunk.vectors.dtype.kind != "f":
            raise RecipeError(
                "late interaction needs tokens",
                expected="a descriptor such as aggregated or tokens",
                actual="visual words" if chunk.words is not None else f"rows of {chunk.vectors.dtype}",
                fix='choose index "asmk_inverted" for asmk, or another descriptor',
            )
        own = chunk.vectors.shape[1], chunk.space
        shape = shape or own
        if own != shape:
            raise SpaceMismatch(
                "the tokens have different shapes or spaces",
                expected=f"{shape[0]} dimensions, space {shape[1]!r}",
                actual=f"{own[0]} dimensions, space {own[1]!r}",
                fix="encode all images with one recipe, into a new collection",
            )
        reservoir.add(chunk.vectors)
        counts |= zip(chunk.ids, np.bincount(chunk.owners, minlength=len(chunk.ids)).tolist(), strict=True)
    ids = sorted(counts)
    offsets = np.concatenate([[0], np.cumsum([counts[name] for name in ids])]).astype(np.int64)
    return Contents(ids, offsets, *(shape or (1, "")), reservoir.take())


def number_tokens(chunks: Chunks, contents: Contents) -> Iterator[tuple[IntArray, NDArray[Any]]]:
    """The tokens of each chunk [n, d], and their numbers [n] in the order of the ids."""
    starts = dict(zip(contents.ids, contents.offsets.tolist(), strict=False))
    for chunk in chunks():
        if len(chunk.vectors):
            begins = np.array([starts[name] for name in chunk.ids], np.int64)
            yield join_ranges(begins, np.bincount(chunk.owners, minlength=len(chunk.ids))), chunk.vectors


def read_tokens(chunks: Chunks, contents: Contents, rows: IntArray) -> FloatArray:
    """The tokens with the sorted numbers `rows` [s] → [s, d] float32; one pass over all chunks."""
    wanted = np.empty((len(rows), contents.dimensions), np.float32)
    for numbers, tokens in number_tokens(chunks, contents):
        slots = np.searchsorted(rows, numbers)
        inside = rows[np.minimum(slots, len(rows) - 1)] == numbers
        wanted[slots[inside]] = tokens[inside]
    return wanted


def choose_training(contents: Contents, pattern: str, most: int, seed: int) -> tuple[int, ...]:
    """Row numbers, in order, of at most `most` images that match the pattern and have tokens."""
    matched = [row for row, name in enumerate(contents.ids) if fnmatchcase(name, pattern)]
    usable = np.array([row for row in matched if contents.offsets[row] < contents.offsets[row + 1]], np.int64)
    if len(usable) == 0:
        raise RecipeError(
            "no image can train the product quantisation",
            expected=f"images with tokens whose ids match train_on = {pattern!r}",
            actual=f"{len(matched):,} of {len(contents.ids):,} match"
            + (", none of them with tokens" if matched else f"; ids are like {', '.join(map(repr, contents.ids[:3]))}"),
            fix="correct the pattern (* stands for any text, ? for any character), or leave it out",
        )
    chosen = np.random.default_rng(seed).permutation(len(usable))[:most]
    return tuple(np.sort(usable[chosen]).tolist())
