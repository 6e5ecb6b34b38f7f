"""Top k: scores in, a Ranking of the best k out; higher scores first, equal scores by id.

The kernels have their own top k over row numbers (kernels/exact_topk.py), which knows no ids.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from resight.types import FloatArray, Ranking


def best(
    query_id: str, ids: Sequence[str], scores: FloatArray, k: int, rows: NDArray[np.int64] | None = None
) -> Ranking:
    """The k best of scores [n]; score i belongs to ids[i], or to ids[rows[i]] if `rows` is given."""
    k = min(k, len(scores))
    if k == 0:
        return Ranking(query_id, (), np.zeros(0, np.float32))
    # All that tie with the k-th score are candidates, so that the id decides and not the position.
    threshold = np.partition(scores, len(scores) - k)[len(scores) - k]
    candidates = np.flatnonzero(scores >= threshold)
    ordered = candidates[np.argsort(-scores[candidates], kind="stable")]
    values = scores[ordered]
    names = [ids[row] for row in (ordered if rows is None else rows[ordered]).tolist()]
    ends = np.flatnonzero(np.diff(values, append=np.nan) != 0) + 1  # of each run of equal scores
    for end, length in zip(ends.tolist(), np.diff(ends, prepend=0).tolist(), strict=True):
        if length > 1:
            names[end - length : end] = sorted(names[end - length : end])
    return Ranking(query_id, tuple(names[:k]), values[:k].astype(np.float32))


def best_allowed(
    query_id: str, ids: Sequence[str], scores: FloatArray, k: int, allowed: frozenset[str] | None
) -> Ranking:
    """The k best among the allowed images (None: all), from the scores [n] of all images."""
    if allowed is None:
        return best(query_id, ids, scores, k)
    rows = np.array([row for row, name in enumerate(ids) if name in allowed], dtype=np.int64)
    return best(query_id, ids, scores[rows], k, rows)
