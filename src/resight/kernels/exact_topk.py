"""The best k of many scores, and the proof that compressed scores gave the exact top k.

`best_rows` selects. `prove` starts from compressed scores: every image has a score s and an error bound r, so that its
full-precision score lies in s - r … s + r. It scores some promising images in full precision; the k-th best of these is
a threshold. An image with s + r below the threshold cannot enter the top k; `prove` scores all others in full precision
too. The Certificate records how many images that took, and by which margin the rest stays out.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from resight.kernels.codec import Codes
from resight.types import FloatArray

LOWEST = float(np.finfo(np.float32).min)  # above minus infinity, the score of an image without tokens
SAMPLED = 65_536  # scores; for fewer, a plain partition is fast enough
EVERY = 16  # the sample takes every 16th score


@dataclass(frozen=True)
class Certificate:
    """The proof that a top k is exact.

    Attributes:
        images: Number of images with at least one token.
        rescored: Number of images that were scored in full precision.
        threshold: The k-th best score; minus infinity if there are fewer images.
        margin: How far every other image lies below the threshold at least; infinity if none is left.
        reason: The proof in words.
    """

    images: int
    rescored: int
    threshold: float
    margin: float
    reason: str


def prove(
    codes: Codes, reference: Codes, query: FloatArray, k: int, threads: int | None
) -> tuple[NDArray[np.int64], FloatArray, Certificate]:
    """Row numbers [≤ k], their scores by `reference`, and the certificate."""
    rough = codes.scores(query, None, threads)
    highest = rough + codes.radius(query)
    images = int(np.count_nonzero(np.diff(codes.offsets)))
    first = best_rows(rough, 2 * k + 8)
    scores = reference.scores(query, first, threads)
    highest[first] = -np.inf  # scored already
    doubtful = np.flatnonzero(highest >= max(kth_best(scores, k), LOWEST))
    highest[doubtful] = -np.inf
    rows = np.concatenate([first, doubtful])
    scores = np.concatenate([scores, reference.scores(query, doubtful, threads)])
    order = np.lexsort((rows, -scores))[:k]
    threshold = kth_best(scores, k)
    left = float(highest.max()) if len(highest) else -np.inf
    return rows[order], scores[order], certify(images, len(rows), threshold, left, reference.kind)


def certify_all(scores: FloatArray, k: int, kind: str) -> Certificate:
    """The certificate of a search that compared every image in full precision."""
    images = int(np.count_nonzero(scores > -np.inf))
    reason = f"All {images:,} images were scored in {kind}."
    return Certificate(images, images, kth_best(scores[scores > -np.inf], k), float("inf"), reason)


def certify(images: int, rescored: int, threshold: float, left: float, kind: str) -> Certificate:
    """`left` is the highest possible score of the images that were not scored in `kind`."""
    if rescored == images:
        return Certificate(images, images, threshold, float("inf"), f"All {images:,} images were scored in {kind}.")
    margin = threshold - left
    reason = (
        f"{rescored:,} of {images:,} images were scored in {kind}. The {images - rescored:,} others cannot reach "
        f"{threshold:.6g}: their compressed scores and error bounds keep them at least {margin:.3g} below."
    )
    return Certificate(images, rescored, threshold, margin, reason)


def best_rows(scores: FloatArray, k: int) -> NDArray[np.int64]:
    """At most k row numbers, best first, equal scores by row; never an image without tokens (minus infinity)."""
    candidates = find_candidates(scores, k) if 0 < k < len(scores) else np.arange(len(scores) if k > 0 else 0)
    candidates = candidates[scores[candidates] > -np.inf]
    return candidates[np.lexsort((candidates, -scores[candidates]))][:k].astype(np.int64)


def find_candidates(scores: FloatArray, k: int) -> NDArray[np.int64]:
    """Every row that reaches the k-th best score.

    A partition of a million scores takes as long as a scan of their vectors. So a sample predicts a score that about
    twice as many rows as needed will reach, and only those are partitioned. A bad prediction costs time, never a row.
    """
    if len(scores) >= SAMPLED and k * EVERY < len(scores):
        reached = np.flatnonzero(scores >= kth_best(scores[::EVERY], 2 * k // EVERY + 8))
        if len(reached) >= k:
            chosen: NDArray[np.int64] = reached[scores[reached] >= kth_best(scores[reached], k)]
            return chosen
    return np.flatnonzero(scores >= kth_best(scores, k))


def kth_best(scores: FloatArray, k: int) -> float:
    """The k-th best score; minus infinity if there are fewer than k."""
    if not 0 < k <= len(scores):
        return float("-inf")
    return float(np.partition(scores, len(scores) - k)[len(scores) - k])
