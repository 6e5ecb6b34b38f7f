"""Rows × queries → dot products that are the same to the last bit however many rows there are, and wherever one lies.

A matrix product of BLAS does not promise that: the last few rows, or all where they are few, go another way through it
and are rounded in another way, so that of two rows which are nearly equally good either may come first. An index in
parts would then differ from the whole. Here one query is compared row by row (the compiled kernel, or einsum without
it), and several are multiplied with blocks of rows that all have the same height, the last one filled up with zeros.
"""

import numpy as np

from resight.kernels.dispatch import maxsim_float, native
from resight.types import FloatArray

HEIGHT = 1024  # rows of a block


def multiply_rows(vectors: FloatArray, queries: FloatArray) -> FloatArray:
    """vectors [n, D] float32, queries [q, D] float32 → [n, q]."""
    if len(queries) == 1:
        return _multiply_one(vectors, queries)[:, None]
    products = np.empty((len(vectors), len(queries)), np.float32)
    for start in range(0, len(vectors), HEIGHT):
        block = vectors[start : start + HEIGHT]
        missing = HEIGHT - len(block)
        filled = np.pad(block, ((0, missing), (0, 0))) if missing else block
        products[start : start + HEIGHT] = (filled @ queries.T)[: len(block)]
    return products


def _multiply_one(vectors: FloatArray, queries: FloatArray) -> FloatArray:
    if native() is None:
        return np.asarray(np.einsum("ij,j->i", vectors, queries[0]), np.float32)
    rows = np.ascontiguousarray(vectors)
    return maxsim_float(queries, rows, np.arange(len(rows) + 1), None, None)
