"""Probabilities of many tests in, probabilities that allow for their number out, in the same order.

The more comparisons, the likelier that one looks significant by chance. `holm` bounds the probability that any of those
called significant is not; `benjamini_hochberg` bounds the share of such among them, and so finds more. A NaN (a test
that could not be made) stays NaN and does not count.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from resight.errors import InputError


def correct(probabilities: ArrayLike, correction: str) -> NDArray[np.float64]:
    """By the correction of that name: holm, benjamini_hochberg or none."""
    if correction not in CORRECTIONS:
        raise InputError(
            f"there is no correction called {correction!r}",
            expected=f"one of {', '.join(CORRECTIONS)}",
            actual=correction,
            fix="use holm",
        )
    given = np.asarray(probabilities, dtype=np.float64)
    corrected = np.full(given.shape, np.nan)
    known = ~np.isnan(given)
    if known.any():
        corrected[known] = CORRECTIONS[correction](given[known])
    return corrected


def holm(probabilities: ArrayLike) -> NDArray[np.float64]:
    """p'_(i) = max_{j ≤ i} min(1, (m − j + 1) · p_(j)), for p_(1) ≤ … ≤ p_(m) (Holm 1979)."""
    given = np.asarray(probabilities, dtype=np.float64)
    order = np.argsort(given, kind="stable")
    steps = np.maximum.accumulate(np.minimum((len(given) - np.arange(len(given))) * given[order], 1.0))
    return steps[np.argsort(order)]


def benjamini_hochberg(probabilities: ArrayLike) -> NDArray[np.float64]:
    """p'_(i) = min_{j ≥ i} min(1, (m / j) · p_(j)), for p_(1) ≤ … ≤ p_(m) (Benjamini and Hochberg 1995)."""
    given = np.asarray(probabilities, dtype=np.float64)
    order = np.argsort(given, kind="stable")
    scaled = np.minimum(len(given) / np.arange(1, len(given) + 1) * given[order], 1.0)
    steps = np.minimum.accumulate(scaled[::-1])[::-1]
    return steps[np.argsort(order)]


def leave(probabilities: ArrayLike) -> NDArray[np.float64]:
    return np.array(probabilities, dtype=np.float64)


CORRECTIONS: dict[str, Callable[[ArrayLike], NDArray[np.float64]]] = {
    "holm": holm,
    "benjamini_hochberg": benjamini_hochberg,
    "none": leave,
}
