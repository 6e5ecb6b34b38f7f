"""A pack with error bounds and the tokens behind it → the fp32 top k, and why no other image can be in it.

Every image has a score s and a radius r: its fp32 score lies in s - r … s + r. Some promising images are scored in
fp32; the k-th best of them is a threshold. An image with s + r below the threshold cannot enter; all others are
scored in fp32 as well.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from resight.kernels.kinds import Codes
from resight.kernels.select import best_rows, kth_best
from resight.types import FloatArray

LOWEST = float(np.finfo(np.float32).min)  # above minus infinity, which images without tokens score


@dataclass(frozen=True)
class Certificate:
    images: int  # with at least one token
    rescored: int  # of them, scored in full precision
    threshold: float  # the k-th best score; minus infinity when there are fewer images
    margin: float  # how far below it every other image stays at least; infinity when none is left
    reason: str


def prove(
    codes: Codes, reference: Codes, query: FloatArray, k: int, threads: int | None
) -> tuple[NDArray[np.int64], FloatArray, Certificate]:
    """Rows [≤ k], their scores by `reference`, and the certificate."""
    rough = codes.scores(query, None, threads)
    highest = rough + codes.radius(query)
    images = int(np.count_nonzero(np.diff(codes.offsets)))
    first = best_rows(rough, 2 * k + 8)
    scores = reference.scores(query, first, threads)
    highest[first] = -np.inf  # done with
    doubtful = np.flatnonzero(highest >= max(kth_best(scores, k), LOWEST))
    highest[doubtful] = -np.inf
    rows = np.concatenate([first, doubtful])
    scores = np.concatenate([scores, reference.scores(query, doubtful, threads)])
    order = np.lexsort((rows, -scores))[:k]
    threshold = kth_best(scores, k)
    left = float(highest.max()) if len(highest) else -np.inf
    return rows[order], scores[order], certify(images, len(rows), threshold, left, reference.kind)


def certify_all(scores: FloatArray, k: int, kind: str) -> Certificate:
    """For tokens that are compared as they are: there is nothing to prove."""
    images = int(np.count_nonzero(scores > -np.inf))
    reason = f"All {images:,} images were scored in {kind}."
    return Certificate(images, images, kth_best(scores[scores > -np.inf], k), float("inf"), reason)


def certify(images: int, rescored: int, threshold: float, left: float, kind: str) -> Certificate:
    """left: the highest that an image can score which was not scored in `kind`."""
    if rescored == images:
        return Certificate(images, images, threshold, float("inf"), f"All {images:,} images were scored in {kind}.")
    margin = threshold - left
    reason = (
        f"{rescored:,} of {images:,} images were scored in {kind}. The {images - rescored:,} others cannot reach "
        f"{threshold:.6g}: their compressed scores and error bounds keep them at least {margin:.3g} below."
    )
    return Certificate(images, rescored, threshold, margin, reason)
