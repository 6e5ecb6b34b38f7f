"""How far a mean over queries would move with other queries: values, one a query, in; an interval out."""

import numpy as np
from numpy.typing import ArrayLike

from resight.errors import InputError


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
    # One sample at a time: all at once would take samples × queries of memory.
    means = [known[generator.integers(len(known), size=len(known))].mean() for _ in range(samples)]
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def paired_interval(
    values: ArrayLike, reference: ArrayLike, generator: np.random.Generator, level: float = 0.95, samples: int = 1000
) -> tuple[float, float]:
    """Interval of the mean of values − reference, both of the same queries in the same order.

    Queries that are hard for both move both means alike, so that it is narrower than the two means' own intervals say.
    """
    first, second = np.asarray(values, dtype=np.float64), np.asarray(reference, dtype=np.float64)
    if first.shape != second.shape:
        raise InputError(
            "values do not pair up",
            expected="one value a query on both sides, in the same order",
            actual=f"{first.shape} and {second.shape}",
            fix="judge both on the same queries",
        )
    return bootstrap_interval(first - second, generator, level, samples)
