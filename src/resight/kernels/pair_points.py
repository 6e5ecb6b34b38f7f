"""Nearest neighbours among the key points of two images, for geometric verification: 8-bit rows in, pairs out.

The kernel takes the rows as they are stored, adds up in integers, and so finds what exact arithmetic finds; numpy
compares rows of unit length in float32 and may choose otherwise where two cosines differ by less than 1e-6.
"""

import functools

import numpy as np
from numpy.typing import NDArray

from resight.kernels import dispatch, numpy_reference
from resight.vectors import l2_normalise

Pairs = NDArray[np.int64]
WORD = 4  # bytes that the kernel reads at once


def pair_points(query: NDArray[np.int8], image: NDArray[np.int8], ratio: float, mutual: bool) -> Pairs:
    """Pairs [t, 2] of row numbers, best first. A query row and the image row nearest to it by angle are a pair if

        ‖q − x‖ < ratio · ‖q − x'‖   for every other row x', all rows scaled to unit length

    and, if mutual, no other query row is nearer to x. Of rows equally near, the first counts.
    """
    if len(query) < 2 or len(image) < 2:
        return np.zeros((0, 2), np.int64)
    module = dispatch.native()
    kernel = getattr(module, "pair_points", None)  # compiled kernels of an earlier build lack it
    if module is None or kernel is None:
        one, other = (l2_normalise(rows.astype(np.float32), floor=1e-6) for rows in (query, image))
        return numpy_reference.pair_points(one, other, ratio, mutual)
    lanes = -(-len(query) // dispatch.LANES) * dispatch.LANES
    nearest, best = np.empty(lanes, np.int32), np.empty(lanes, np.float32)
    d = query.shape[1] + -query.shape[1] % WORD
    kernel(_fill(query, d), _fill(image, d), d, ratio**2, mutual, has_vnni(), nearest, best)
    kept = np.flatnonzero(nearest >= 0)
    kept = kept[np.argsort(-best[kept], kind="stable")]
    return np.stack([kept, nearest[kept]], axis=1)


@functools.cache
def has_vnni() -> bool:
    """Whether the processor multiplies bytes four at a time."""
    module = dispatch.load_native()
    return module is not None and bool(module.has_vnni())


def _fill(rows: NDArray[np.int8], d: int) -> NDArray[np.int8]:
    """Contiguous rows of d bytes."""
    if rows.shape[1] == d:
        return np.ascontiguousarray(rows)
    return np.pad(rows, ((0, 0), (0, d - rows.shape[1])))
