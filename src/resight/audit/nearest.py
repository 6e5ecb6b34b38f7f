"""The nearest rows by product, exactly, in blocks: no matrix of all against all is ever held.

In: rows [n, D] and [m, D] float32. Out: the k best of the second for each of the first, best first.
"""

import numpy as np
from numpy.typing import NDArray

from resight.types import FloatArray

QUERIES, ROWS = 512, 16384  # 32 MB a block


def find_nearest(queries: FloatArray, rows: FloatArray, k: int) -> tuple[NDArray[np.int64], FloatArray]:
    """Row numbers [n, min(k, m)] and products."""
    k = min(k, len(rows))
    found = np.zeros((len(queries), k), np.int64)
    products = np.full((len(queries), k), -np.inf, np.float32)
    for start in range(0, len(queries), QUERIES):
        part = slice(start, start + QUERIES)
        for first in range(0, len(rows), ROWS):
            block = queries[part] @ rows[first : first + ROWS].T
            some = min(k, block.shape[1])
            best = np.argpartition(-block, some - 1, axis=1)[:, :some]
            every = np.concatenate([products[part], np.take_along_axis(block, best, axis=1)], axis=1)
            numbers = np.concatenate([found[part], best + first], axis=1)
            order = np.argsort(-every, axis=1, kind="stable")[:, :k]
            products[part] = np.take_along_axis(every, order, axis=1)
            found[part] = np.take_along_axis(numbers, order, axis=1)
    return found, products
