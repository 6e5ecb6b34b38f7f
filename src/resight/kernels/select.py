"""Scores → the rows of the best k: higher first, equal scores by row."""

import numpy as np
from numpy.typing import NDArray

from resight.types import FloatArray

SAMPLED = 65_536  # below this, a plain partition is quick enough
EVERY = 16


def best_rows(scores: FloatArray, k: int) -> NDArray[np.int64]:
    """At most k rows; images without tokens, which score minus infinity, are never among them."""
    candidates = find_candidates(scores, k) if 0 < k < len(scores) else np.arange(len(scores) if k > 0 else 0)
    candidates = candidates[scores[candidates] > -np.inf]
    return candidates[np.lexsort((candidates, -scores[candidates]))][:k].astype(np.int64)


def find_candidates(scores: FloatArray, k: int) -> NDArray[np.int64]:
    """Every row that reaches the k-th best score.

    A partition of a million scores takes as long as a scan of their vectors. So a sample gives a score that about
    twice as many rows as needed will reach, and only those are partitioned. A bad guess costs time, never a row.
    """
    if len(scores) >= SAMPLED and k * EVERY < len(scores):
        reached = np.flatnonzero(scores >= kth_best(scores[::EVERY], 2 * k // EVERY + 8))
        if len(reached) >= k:
            chosen: NDArray[np.int64] = reached[scores[reached] >= kth_best(scores[reached], k)]
            return chosen
    return np.flatnonzero(scores >= kth_best(scores, k))


def kth_best(scores: FloatArray, k: int) -> float:
    """Minus infinity when there are fewer."""
    if not 0 < k <= len(scores):
        return float("-inf")
    return float(np.partition(scores, len(scores) - k)[len(scores) - k])
