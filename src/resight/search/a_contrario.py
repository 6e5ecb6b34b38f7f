"""How unlikely it is that so many matches agree with a model by chance: residuals in, a significance out.

    significance = max_r −log10 NFA(r)        NFA(r) = N · C(n, k) · C(k, s) · α(r)^(k − s)

Of n matches, k lie within r pixels of a model that s matches define. α(r) is the probability that a random match lies
as near: the share of the image that the model leaves for it, times the share of sizes and angles that agree with the
model. Key points without size and angle have the first factor alone. N counts the models that could have been tried.
NFA is the expected number of models that fit as well by chance, so that models of different kinds and tolerances can be
compared: a loose similarity that explains 40 of 60 matches, and a homography that explains 9 of 12 to a few pixels.
L. Moisan and B. Stival, 2004; P. Moulon, P. Monasse and R. Marlet, Adaptive structure from motion with a contrario
model estimation, 2012.
"""

import numpy as np
from numpy.typing import NDArray

from resight.types import FloatArray

RADII = (3.0, 6.0, 12.0, 24.0, 48.0)  # tried for every model, in 800ths of the longer side of the image
SIDE = 800.0
LIKELIEST = 0.5  # bound of α: beyond, agreement says nothing
Floats = NDArray[np.float64]


class Extent:
    """The area that an image's key points [n, 4] span, in which a random match may lie.

    `shaped`: whether the key points have a size and an angle, which can agree with a model or not.
    """

    def __init__(self, points: FloatArray) -> None:
        sides = np.maximum(np.ptp(points[:, :2], axis=0).astype(np.float64), 1.0) if len(points) else np.ones(2)
        self.area = float(sides.prod())
        self.diagonal = float(np.hypot(*sides))
        self.radii: Floats = np.asarray(RADII) * float(sides.max()) / SIDE
        self.shaped = bool(np.isfinite(points[:, 2:]).all())

    def around_point(self, shape: float) -> Floats:
        """log10 α for a model that maps points to points; `shape`: the share of sizes and angles that agree."""
        return _log_alpha(np.pi * self.radii**2 / self.area * (shape if self.shaped else 1.0))

    def along_line(self, shape: float) -> Floats:
        """log10 α for a model that maps points to lines."""
        return _log_alpha(2 * self.diagonal * self.radii / self.area * (shape if self.shaped else 1.0))


def measure(counts: NDArray[np.integer], matches: int, sample: int, models: float, log_alpha: Floats) -> Floats:
    """−log10 NFA for counts [..., radii] of agreeing matches; -inf where the sample alone agrees."""
    if matches <= sample:
        return np.full(counts.shape, -np.inf)
    table = _log_factorials(matches)
    k = np.minimum(counts, matches)
    inside = np.maximum(k, sample)
    choices = table[matches] - table[sample] - table[inside - sample] - table[matches - inside]  # C(n, k) · C(k, s)
    tests = np.log10(max(models, 1.0)) + np.log10(len(log_alpha))
    return np.where(k > sample, -(tests + choices + (k - sample) * log_alpha), -np.inf)


def _log_alpha(alpha: Floats) -> Floats:
    return np.asarray(np.log10(np.minimum(alpha, LIKELIEST)))


def _log_factorials(most: int) -> Floats:
    """log10 n! for n from 0 to `most`."""
    return np.concatenate([[0.0], np.cumsum(np.log10(np.arange(1, most + 1)))])
