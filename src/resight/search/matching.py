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
    keep = np.ones(len(query), dtype=bool)
    if mutual:
        keep = similarity.argmax(axis=0)[nearest] == rows
    rows, nearest = rows[keep], nearest[keep]
    candidates = similarity[rows]  # only these need their second neighbour: a copy of a small part
    best = candidates[np.arange(len(rows)), nearest].copy()
    candidates[np.arange(len(rows)), nearest] = -np.inf
    second = candidates.max(axis=1, initial=-1)
    # ‖a - b‖² = 2 - 2⟨a, b⟩ for unit rows, so that the ratio of distances needs no distance.
    clear = (1 - best) <= ratio**2 * (1 - second)
    order = np.argsort(-best[clear], kind="stable")
    return np.stack([rows[clear][order], nearest[clear][order]], axis=1)
