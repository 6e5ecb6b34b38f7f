"""Tentative matches between two sets of local features.

In: unit rows [n, D] and [m, D]. Out: pairs [t, 2] of row numbers, best first. A pair is kept when each is the
other's nearest neighbour (mutual) and the nearest is clearly nearer than the second (ratio of distances below
`ratio`). Both tests come from one matrix product.
"""

import numpy as np
from numpy.typing import NDArray

from resight.types import FloatArray


def match(query: FloatArray, image: FloatArray, ratio: float = 0.9, mutual: bool = True) -> NDArray[np.int64]:
    if len(query) < 2 or len(image) < 2:
        return np.zeros((0, 2), np.int64)
    similarity = query @ image.T
    rows = np.arange(len(query))
    nearest = similarity.argmax(axis=1)
    best = similarity[rows, nearest]
    similarity[rows, nearest] = -np.inf
    second = similarity.max(axis=1)
    similarity[rows, nearest] = best
    # ‖a - b‖² = 2 - 2⟨a, b⟩ for unit rows, so that the ratio of distances needs no distance.
    kept = np.flatnonzero((1 - best) < ratio**2 * (1 - second))
    if mutual:  # only the columns of the few that are left: a pass down every column would cost as much as the product
        kept = kept[similarity[:, nearest[kept]].argmax(axis=0) == kept]
    kept = kept[np.argsort(-best[kept], kind="stable")]
    return np.stack([kept, nearest[kept]], axis=1)
