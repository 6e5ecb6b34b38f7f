"""Intervals of means over queries, paired tests between runs, and corrections for many comparisons.

In: values, one per query. Out: bootstrap intervals (`bootstrap_interval`, `paired_interval`), the probability of a
difference by chance alone (three paired tests), and several runs against a reference with both (`compare_many`).

All three tests are two-sided and about the mean of values − reference; they leave out pairs with a NaN, and return NaN
for fewer than two pairs. The randomisation test assumes least; the t test assumes that the mean is normally
distributed, as it nearly is over many queries. Smucker, Allan and Carterette (CIKM 2007) compare the three.

The more comparisons, the likelier that one looks significant by chance. `holm` bounds the probability that any of those
called significant is not; `benjamini_hochberg` bounds the share of such among them, and so finds more. A NaN (a test
that could not be made) stays NaN and does not count.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from resight.errors import InputError

TESTS = ("bootstrap", "randomisation", "t")
TEST_SAMPLES = 10_000
INTERVAL_BATCH = 65_536  # values that an interval draws at a time
TEST_BATCH = 4_000_000  # values that a test draws at a time
ROUNDING = 1e-12  # of a mean: the same values summed in another order differ by less


@dataclass(frozen=True)
class Compared:
    """One run against the reference: the mean difference, its 95 % interval, and its probability by chance."""

    label: str
    queries: int  # in which both have a value
    difference: float  # mean minus the reference's mean; NaN without such queries
    low: float
    high: float
    p: Mapping[str, float]  # test → probability
    corrected: Mapping[str, float]  # the same, corrected for the number of comparisons


def compare_many(
    reference: ArrayLike,
    others: Mapping[str, ArrayLike],
    generator: np.random.Generator,
    tests: Sequence[str] = TESTS,
    correction: str = "holm",
) -> tuple[Compared, ...]:
    """Each of `others` against the reference, by each test; values of the same queries in the same order.

    The correction (holm, benjamini_hochberg or none) is over the others, one test at a time. Every comparison draws
    the same samples, so that adding a run changes only the correction.
    """
    for test in tests:
        if test not in TESTS:
            raise InputError(
                f"there is no test called {test!r}",
                expected=f"one of {', '.join(TESTS)}",
                actual=test,
                fix="choose one",
            )
    seed = int(generator.integers(2**63))
    p = {
        label: {test: _test(test, values, reference, np.random.default_rng(seed)) for test in tests}
        for label, values in others.items()
    }
    corrected = {test: correct([p[label][test] for label in others], correction) for test in tests}
    compared = []
    for number, (label, values) in enumerate(others.items()):
        differences = find_differences(values, reference)
        low, high = bootstrap_interval(differences, np.random.default_rng(seed))
        mean = float(differences.mean()) if len(differences) else float("nan")
        own = {test: float(corrected[test][number]) for test in tests}
        compared.append(Compared(label, len(differences), mean, low, high, p[label], own))
    return tuple(compared)


def bootstrap_interval(
    values: ArrayLike, generator: np.random.Generator, level: float = 0.95, samples: int = 1000
) -> tuple[float, float]:
    """Percentile interval of the mean over queries drawn with replacement (Efron's bootstrap).

    Leaves out NaN values (queries without a value of the metric); without any other, both ends are NaN.
    """
    if not 0 < level < 1 or samples < 1:
        raise InputError(
            "no such bootstrap interval",
            expected="a level between 0 and 1 and at least 1 sample",
            actual=f"level {level}, samples {samples}",
            fix="use level=0.95, samples=1000",
        )
    array = np.asarray(values, dtype=np.float64)
    known = array[~np.isnan(array)]
    if len(known) == 0:
        return float("nan"), float("nan")
    # In batches: all at once would take samples × queries of memory.
    batch = max(1, INTERVAL_BATCH // len(known))
    means = [
        known[generator.integers(len(known), size=(min(batch, samples - done), len(known)))].mean(axis=1)
        for done in range(0, samples, batch)
    ]
    low, high = np.quantile(np.concatenate(means), [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def paired_interval(
    values: ArrayLike, reference: ArrayLike, generator: np.random.Generator, level: float = 0.95, samples: int = 1000
) -> tuple[float, float]:
    """Interval of the mean of values − reference, both of the same queries in the same order.

    Queries that are hard for both move both means alike, so it is narrower than the two means' own intervals suggest.
    """
    return bootstrap_interval(find_differences(values, reference), generator, level, samples)


def randomisation_test(
    values: ArrayLike, reference: ArrayLike, generator: np.random.Generator, samples: int = TEST_SAMPLES
) -> float:
    """Share of sign patterns of the differences whose mean is at least as far from 0 (Fisher's sign flips).

    If there are no more than `samples` patterns, the test tries all and the share is exact; otherwise it is
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
    values: ArrayLike, reference: ArrayLike, generator: np.random.Generator, samples: int = TEST_SAMPLES
) -> float:
    """(1 + as far) / (1 + samples): how often a resample of the queries moves the mean by its distance from 0."""
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

    Equal differences leave no doubt: p is 0, or 1 if they are all 0.
    """
    differences = find_differences(values, reference)
    if len(differences) < 2:
        return float("nan"), float("nan")
    mean, spread = float(differences.mean()), float(differences.std(ddof=1))
    if spread <= ROUNDING * abs(mean):
        return (math.copysign(math.inf, mean), 0.0) if mean else (0.0, 1.0)
    t = mean / (spread / math.sqrt(len(differences)))
    return t, find_t_tails(t, len(differences) - 1)


def find_t_tails(t: float, freedom: float) -> float:
    """P(|T| ≥ |t|) of Student's distribution."""
    from scipy.special import stdtr

    return 2 * float(stdtr(freedom, -abs(t)))


def find_differences(values: ArrayLike, reference: ArrayLike) -> NDArray[np.float64]:
    """values − reference of the pairs without a NaN; both in the order of the same queries."""
    first, second = np.asarray(values, dtype=np.float64), np.asarray(reference, dtype=np.float64)
    if first.shape != second.shape or first.ndim != 1:
        raise InputError(
            "values do not pair up",
            expected="one value per query on both sides, in the same order",
            actual=f"{first.shape} and {second.shape}",
            fix="judge both on the same queries",
        )
    differences = first - second
    return differences[~np.isnan(differences)]


def correct(probabilities: ArrayLike, correction: str) -> NDArray[np.float64]:
    """Probabilities corrected for their number by holm, benjamini_hochberg or none, in the same order."""
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


def leave_uncorrected(probabilities: ArrayLike) -> NDArray[np.float64]:
    return np.array(probabilities, dtype=np.float64)


CORRECTIONS: dict[str, Callable[[ArrayLike], NDArray[np.float64]]] = {
    "holm": holm,
    "benjamini_hochberg": benjamini_hochberg,
    "none": leave_uncorrected,
}


def _test(name: str, values: ArrayLike, reference: ArrayLike, generator: np.random.Generator) -> float:
    if name == "t":
        return t_test(values, reference)[1]
    return (bootstrap_test if name == "bootstrap" else randomisation_test)(values, reference, generator)


def _split(samples: int, width: int) -> Iterator[int]:
    """Numbers of rows that add up to `samples`, each small enough to draw at once."""
    if samples < 1:
        raise InputError("no samples to test with", expected="1 or more", actual=str(samples), fix="use 10000")
    rows = max(1, TEST_BATCH // width)
    for start in range(0, samples, rows):
        yield min(rows, samples - start)
