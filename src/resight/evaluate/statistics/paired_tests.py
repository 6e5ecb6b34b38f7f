"""Two runs' values of the same queries in, the probability of such a difference by chance alone out.

All three tests are two-sided and about the mean of values − reference; a pair with a NaN is left out, and with fewer
than two pairs the answer is NaN. The randomisation test assumes least; the t test assumes that the mean is normally
distributed, as it nearly is over many queries. Smucker, Allan and Carterette (CIKM 2007) compare the three.
"""

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike, NDArray

from resight.errors import InputError

SAMPLES = 10_000
AT_ONCE = 4_000_000  # values that are drawn at a time
ROUNDING = 1e-12  # of a mean: the same values summed in another order differ by less


def randomisation_test(
    values: ArrayLike, reference: ArrayLike, generator: np.random.Generator, samples: int = SAMPLES
) -> float:
    """Share of sign patterns of the differences whose mean is at least as far from 0 (Fisher's sign flips).

    Where there are no more than `samples` patterns, all are tried and the share is exact; otherwise it is
    (1 + as far) / (1 + samples) of random ones.
    """
    differences = find_differences(values, reference)
    if len(differences) < 2:
        return float("nan")
    bound = abs(differences.mean()) - ROUNDING * np.abs(differences).mean()
    if 2 ** min(len(differences), 60) <= samples:
        patterns = np.arange(2 ** len(differences))[:, None] >> np.arange(len(differences)) & 1
        return float((np.abs((2 * patterns - 1) @ differences) / len(differences) >= bound).mean())
    as_far = 0
    for rows in _split(samples, len(differences)):
        signs = 2.0 * generator.integers(2, size=(rows, len(differences)), dtype=np.int8) - 1
        as_far += int((np.abs(signs @ differences) / len(differences) >= bound).sum())
    return (1 + as_far) / (1 + samples)


def bootstrap_test(
    values: ArrayLike, reference: ArrayLike, generator: np.random.Generator, samples: int = SAMPLES
) -> float:
    """(1 + as far) / (1 + samples): how often queries drawn anew move the mean by as much as it is from 0."""
    differences = find_differences(values, reference)
    if len(differences) < 2:
        return float("nan")
    mean = differences.mean()
    bound = abs(mean) - ROUNDING * np.abs(differences).mean()
    as_far = 0
    for rows in _split(samples, len(differences)):
        drawn = differences[generator.integers(len(differences), size=(rows, len(differences)))]
        as_far += int((np.abs(drawn.mean(axis=1) - mean) >= bound).sum())
    return (1 + as_far) / (1 + samples)


def t_test(values: ArrayLike, reference: ArrayLike) -> tuple[float, float]:
    """Student's t of the differences, mean / (s / √n), and P(|T| ≥ |t|) with n − 1 degrees of freedom.

    Differences that are all alike leave no doubt: p is 0, or 1 where they are all 0.
    """
    differences = find_differences(values, reference)
    if len(differences) < 2:
        return float("nan"), float("nan")
    mean, spread = float(differences.mean()), float(differences.std(ddof=1))
    if spread <= ROUNDING * abs(mean):
        return (math.copysign(math.inf, mean), 0.0) if mean else (0.0, 1.0)
    t = mean / (spread / math.sqrt(len(differences)))
    return t, t_tails(t, len(differences) - 1)


def t_tails(t: float, freedom: float) -> float:
    """P(|T| ≥ |t|) of Student's distribution: I_x(ν/2, 1/2) at x = ν / (ν + t²)."""
    return regularised_beta(freedom / 2, 0.5, freedom / (freedom + t * t), t * t / (freedom + t * t))


def regularised_beta(a: float, b: float, x: float, rest: float | None = None) -> float:
    """I_x(a, b), by Lentz's evaluation of its continued fraction (Abramowitz and Stegun 26.5.8).

    `rest` is 1 − x, for callers who know it to more digits than the difference has.
    """
    left = 1 - x if rest is None else rest
    if x <= 0 or left <= 0:
        return 0.0 if x <= 0 else 1.0
    if x > (a + 1) / (a + b + 2):  # the fraction converges fast on the other side
        return 1 - regularised_beta(b, a, left, x)
    front = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log(left)) / a
    return front / _evaluate_fraction(_beta_terms(a, b, x))


def find_differences(values: ArrayLike, reference: ArrayLike) -> NDArray[np.float64]:
    """values − reference of the pairs in which neither is NaN; both in the order of the same queries."""
    first, second = np.asarray(values, dtype=np.float64), np.asarray(reference, dtype=np.float64)
    if first.shape != second.shape or first.ndim != 1:
        raise InputError(
            "values do not pair up",
            expected="one value a query on both sides, in the same order",
            actual=f"{first.shape} and {second.shape}",
            fix="judge both on the same queries",
        )
    differences = first - second
    return differences[~np.isnan(differences)]


def _beta_terms(a: float, b: float, x: float) -> Iterator[float]:
    """The coefficients d_1, d_2, … of 1 + d_1 / (1 + d_2 / (1 + …))."""
    m = 0
    while True:
        yield -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        m += 1
        yield m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))


def _evaluate_fraction(terms: Iterator[float]) -> float:
    tiny = 1e-300
    value, upper, lower = 1.0, 1.0, 0.0
    for term in terms:
        lower = 1 / (1 + term * lower or tiny)
        upper = 1 + term / upper or tiny
        step = upper * lower
        value *= step
        if abs(step - 1) < 1e-15:
            break
    return value


def _split(samples: int, width: int) -> Iterator[int]:
    """Numbers of rows that add up to `samples`, each few enough to be drawn at once."""
    if samples < 1:
        raise InputError("no samples to test with", expected="1 or more", actual=str(samples), fix="use 10000")
    rows = max(1, AT_ONCE // width)
    for start in range(0, samples, rows):
        yield min(rows, samples - start)
