"""Rows of the store, chunk by chunk → one file of tokens in the order of the ids, never held in memory as a whole."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from resight.errors import RecipeError, SpaceMismatch
from resight.index import Chunks
from resight.types import FloatArray


@dataclass(frozen=True)
class Contents:
    ids: list[str]  # sorted
    offsets: NDArray[np.int64]  # [N + 1]
    dimensions: int
    space: str


def measure(chunks: Chunks) -> Contents:
    """What the tokens are, without reading them all at once; rows that do not go together are refused."""
    counts: dict[str, int] = {}
    shape: tuple[int, str] | None = None
    for chunk in chunks():
        if chunk.words is not None or chunk.vectors.dtype.kind != "f":
            raise RecipeError(
                "late interaction needs tokens",
                expected="a descriptor such as aggregated or tokens",
                actual="visual words" if chunk.words is not None else f"rows of {chunk.vectors.dtype}",
                fix='choose index "inverted" for asmk, or another descriptor',
            )
        own = chunk.vectors.shape[1], chunk.space
        shape = shape or own
        if own != shape:
            raise SpaceMismatch(
                "the tokens are of two kinds",
                expected=f"{shape[0]} dimensions, space {shape[1]!r}",
                actual=f"{own[0]} dimensions, space {own[1]!r}",
                fix="describe all images in one way, into a new collection",
            )
        counts |= zip(chunk.ids, np.bincount(chunk.owners, minlength=len(chunk.ids)).tolist(), strict=True)
    ids = sorted(counts)
    offsets = np.concatenate([[0], np.cumsum([counts[name] for name in ids])]).astype(np.int64)
    return Contents(ids, offsets, *(shape or (1, "")))


def write_tokens(chunks: Chunks, contents: Contents, path: Path) -> FloatArray:
    """All tokens [n, d] float32 in a file, mapped, in the order of the ids."""
    shape = int(contents.offsets[-1]), contents.dimensions
    if shape[0] == 0:
        return np.zeros(shape, np.float32)
    tokens = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=shape)
    starts = dict(zip(contents.ids, contents.offsets.tolist(), strict=False))
    for chunk in chunks():
        limits = np.searchsorted(chunk.owners, np.arange(len(chunk.ids) + 1)).tolist()
        for name, begin, end in zip(chunk.ids, limits, limits[1:], strict=False):
            tokens[starts[name] : starts[name] + end - begin] = chunk.vectors[begin:end]
    tokens.flush()
    return tokens
