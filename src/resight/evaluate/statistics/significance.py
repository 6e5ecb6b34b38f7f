"""How far a mean over queries would move with other queries: values, one a query, in; intervals and tests out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from resight.errors import InputError
from resight.evaluate.statistics.corrections import correct
from resight.evaluate.statistics.paired_tests import bootstrap_test, find_differences, randomisation_test, t_test

TESTS = ("bootstrap", "randomisation", "t")
AT_ONCE = 65_536  # values that the bootstrap draws at a time


def bootstrap_interval(
    values: ArrayLike, generator: np.random.Generator, level: float = 0.95, samples: int = 1000
) -> tuple[float, float]:
    """Percentile interval of the mean over queries drawn anew with replacement (Efron's bootstrap).

    NaN values (queries that a metric says nothing about) are left out; if no other is there, both ends are NaN.
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
    # Some samples at a time: all at once would take samples × queries of memory.
    some = max(1, AT_ONCE // len(known))
    means = [
        known[generator.integers(len(known), size=(min(some, samples - done), len(known)))].mean(axis=1)
        for done in range(0, samples, some)
    ]
    low, high = np.quantile(np.concatenate(means), [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def paired_interval(
    values: ArrayLike, reference: ArrayLike, generator: np.random.Generator, level: float = 0.95, samples: int = 1000
) -> tuple[float, float]:
    """Interval of the mean of values − reference, both of the same queries in the same order.

    Queries that are hard for both move both means alike, so that it is narrower than the two means' own intervals say.
    """
    return bootstrap_interval(find_differences(values, reference), generator, level, samples)


@dataclass(frozen=True)
class Compared:
    """One run against the reference: the mean difference, its 95 % interval, and how probable it is by chance."""

    label: str
    queries: int  # in which both have a value
    difference: float  # its mean minus the reference's; NaN without such queries
    low: float
    high: float
    p: Mapping[str, float]  # test → probability
    corrected: Mapping[str, float]  # the same, for the number of comparisons


def compare_many(
    reference: ArrayLike,
    others: Mapping[str, ArrayLike],
    generator: np.random.Generator,
    tests: Sequence[str] = TESTS,
    correction: str = "holm",
) -> tuple[Compared, ...]:
    """Each of `others` against the reference, by each test; values of the same queries in the same order.

    The correction (holm, benjamini_hochberg or none) is over the others, one test at a time. Every comparison draws
    the same samples, so that another run beside it changes nothing but the correction.
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
        allowed = {test: float(corrected[test][number]) for test in tests}
        compared.append(Compared(label, len(differences), mean, low, high, p[label], allowed))
    return tuple(compared)


def _test(name: str, values: ArrayLike, reference: ArrayLike, generator: np.random.Generator) -> float:
    if name == "t":
        return t_test(values, reference)[1]
    return (bootstrap_test if name == "bootstrap" else randomisation_test)(values, reference, generator)
