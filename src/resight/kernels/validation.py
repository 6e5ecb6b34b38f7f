"""Input validation for the kernels.

The kernels take tokens [n, d] float32 or float16, offsets [N + 1] with image i = rows offsets[i]:offsets[i + 1], and a
query [Kq, d]. Images may have no tokens. NaN, infinity and zero vectors are refused: their dot products mean nothing.
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from resight.errors import InputError
from resight.types import FloatArray

# Between these bounds the sum of any number of products of two values fits float32.
SMALLEST, LARGEST = 1e-15, 1e15
CHUNK = 4096  # rows checked together: small enough for the cache


def validate_tokens(tokens: ArrayLike, offsets: ArrayLike) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Check both; return tokens as given (float16 or float32, contiguous) and offsets as int64."""
    rows = validate_matrix(tokens, "tokens")
    bounds = np.asarray(offsets)
    if bounds.ndim != 1 or len(bounds) == 0 or not np.issubdtype(bounds.dtype, np.integer):
        raise InputError(
            "offsets cannot be used",
            expected="a list of whole numbers, one more than there are images",
            actual=f"an array of shape {bounds.shape} and type {bounds.dtype}",
            fix="give 0, then the running count of tokens after each image",
        )
    bounds = bounds.astype(np.int64)
    if bounds[0] != 0 or bounds[-1] != len(rows) or (np.diff(bounds) < 0).any():
        raise InputError(
            "offsets do not fit the tokens",
            expected=f"0 first, {len(rows)} last (the number of tokens), never decreasing",
            actual=f"{bounds[0]} first, {bounds[-1]} last" + (", decreasing" if (np.diff(bounds) < 0).any() else ""),
            fix="give 0, then the running count of tokens after each image",
        )
    reject_degenerate(rows, "tokens")
    return rows, bounds


def validate_query(query: ArrayLike, d: int) -> FloatArray:
    """A query [Kq, d] float32; a single vector [d] is one token."""
    rows = validate_matrix(np.atleast_2d(as_array(query, "query")), "query")
    if rows.shape[1] != d or len(rows) == 0:
        raise InputError(
            "the query does not fit the tokens",
            expected=f"at least one token of {d} dimensions",
            actual=f"{len(rows)} tokens of {rows.shape[1]} dimensions",
            fix="encode the query with the encoder of the images",
        )
    reject_degenerate(rows, "query")
    return np.ascontiguousarray(rows, np.float32)


def validate_rows(rows: ArrayLike | None, images: int) -> NDArray[np.int64] | None:
    if rows is None:
        return None
    listed = np.asarray(rows)
    if listed.size == 0:
        return np.zeros(0, np.int64)
    whole = listed.ndim == 1 and np.issubdtype(listed.dtype, np.integer)
    if not whole or listed.min() < 0 or listed.max() >= images:
        raise InputError(
            "rows name images that do not exist",
            expected=f"a list of whole numbers from 0 to {images - 1}",
            actual=f"{listed.min()} to {listed.max()}" if whole else f"shape {listed.shape}, type {listed.dtype}",
            fix="give row numbers of this pack",
        )
    return np.ascontiguousarray(listed, np.int64)


def validate_matrix(values: ArrayLike, what: str) -> NDArray[Any]:
    rows = as_array(values, what)
    if rows.ndim != 2 or rows.shape[1] == 0 or not np.issubdtype(rows.dtype, np.floating):
        raise InputError(
            f"the {what} cannot be used",
            expected="a matrix of floating-point numbers, one token per row",
            actual=f"an array of shape {rows.shape} and type {rows.dtype}",
            fix="give rows of one length as float32",
        )
    kept = rows.dtype if rows.dtype in (np.float16, np.float32) and rows.dtype.isnative else np.dtype(np.float32)
    with np.errstate(over="ignore"):  # a float64 beyond float32 becomes infinity, which is refused below
        return np.require(rows, kept, ["C_CONTIGUOUS", "ALIGNED"])


def as_array(values: ArrayLike, what: str) -> NDArray[Any]:
    try:
        return np.asanyarray(values)
    except ValueError as error:
        raise InputError(
            f"the {what} have different lengths",
            expected="rows of one length",
            actual=str(error),
            fix="encode all of them with one encoder",
        ) from error


def reject_degenerate(rows: NDArray[Any], what: str) -> None:
    for start in range(0, len(rows), CHUNK):
        chunk = rows[start : start + CHUNK]
        largest = np.maximum(chunk.max(axis=1), -chunk.min(axis=1)).astype(np.float64)
        useless = ~((largest >= SMALLEST) & (largest <= LARGEST))  # NaN compares as false
        if useless.any():
            row = int(np.argmax(useless))
            raise InputError(
                f"the {what} contain a vector that cannot be compared",
                expected=f"finite values, the largest of each row between {SMALLEST:g} and {LARGEST:g}",
                actual=f"row {start + row}, largest value {largest[row]:g}",
                fix="leave out empty and damaged vectors, and normalise the rest",
            )
