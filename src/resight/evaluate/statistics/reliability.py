"""How reliable scores and probabilities are.

In: scores or probabilities, and the truth. Out: figures. `auc` measures whether positives score above negatives,
whatever the scale; `expected_calibration_error` and `brier` measure how close probabilities are to frequencies.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from resight.errors import InputError


def auc(positive_scores: ArrayLike, negative_scores: ArrayLike) -> float:
    """Probability that a positive scores above a negative, ties counting half (Mann and Whitney's U, normalised)."""
    positives = _read("positive_scores", positive_scores)
    negatives = np.sort(_read("negative_scores", negative_scores))
    below = np.searchsorted(negatives, positives, side="left")
    up_to = np.searchsorted(negatives, positives, side="right")
    return int((below + up_to).sum()) / (2 * len(positives) * len(negatives))


def expected_calibration_error(
    probabilities: ArrayLike, truths: ArrayLike, bins: int = 10, counts: ArrayLike | None = None
) -> float:
    """Σ_b (n_b / n) · |mean probability − share of true| over bins of equal count.

    Equal probabilities always share a bin (the one of their middle rank), so that their order cannot change the
    figure; bins are then only about equal. `counts`: how often each pair is taken (default: once).
    """
    if bins < 1:
        raise InputError("no bins for the probabilities", expected="bins of 1 or more", actual=str(bins), fix="use 10")
    forecast, outcome = _read_pairs(probabilities, truths)
    often = np.ones(len(forecast), dtype=np.int64) if counts is None else np.asarray(counts, dtype=np.int64)
    _, level = np.unique(forecast, return_inverse=True)
    at_level = np.bincount(level, weights=often)
    after = np.cumsum(at_level)
    bin_of_level = np.minimum((2 * after - at_level) * bins // (2 * after[-1]), bins - 1).astype(np.int64)
    gaps = np.bincount(bin_of_level[level], weights=(forecast - outcome) * often)
    return float(np.abs(gaps).sum() / after[-1])


def brier(probabilities: ArrayLike, truths: ArrayLike) -> float:
    """Mean of (probability − truth)², truth being 0 or 1: 0 is perfect, and a constant 0.5 gets 0.25."""
    forecast, outcome = _read_pairs(probabilities, truths)
    return float(np.square(forecast - outcome).mean())


def _read_pairs(probabilities: ArrayLike, truths: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    forecast, outcome = _read("probabilities", probabilities), _read("truths", truths)
    if len(forecast) != len(outcome):
        raise InputError(
            "probabilities and truths do not pair up",
            expected="as many truths as probabilities",
            actual=f"{len(forecast)} probabilities, {len(outcome)} truths",
            fix="pass one truth for each probability, in the same order",
        )
    if forecast.min() < 0 or forecast.max() > 1:
        raise InputError(
            "a probability outside 0..1",
            expected="values from 0 to 1",
            actual=f"values from {forecast.min():g} to {forecast.max():g}",
            fix="calibrate the scores first",
        )
    if not np.isin(outcome, (0.0, 1.0)).all():
        raise InputError(
            "a truth that is neither true nor false",
            expected="booleans, or 0 and 1",
            actual=f"values from {outcome.min():g} to {outcome.max():g}",
            fix="pass grade > 0 instead of the grade",
        )
    return forecast, outcome


def _read(name: str, values: ArrayLike) -> NDArray[np.float64]:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1 or len(array) == 0 or np.isnan(array).any():
        raise InputError(
            f"{name} cannot be used",
            expected="a list of at least one number, none of them NaN",
            actual=f"shape {array.shape}, {int(np.isnan(array).sum())} NaN",
            fix="leave out items without a score",
        )
    return array
