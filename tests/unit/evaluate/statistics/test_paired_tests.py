"""Paired tests between runs: hand-worked values, scipy's, and what is left out or refused."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from resight.errors import InputError
from resight.evaluate.statistics.tests import bootstrap_test, find_t_tails, randomisation_test, t_test

stats = pytest.importorskip("scipy.stats")
special = pytest.importorskip("scipy.special")


def generator() -> np.random.Generator:
    return np.random.default_rng(0)


def test_randomisation_of_few_queries_counts_every_sign_pattern() -> None:
    # Differences 1, 2, 3: of 8 sign patterns only +++ and --- have a mean as far from 0 as 2.
    assert randomisation_test([1, 2, 3], [0, 0, 0], generator()) == 2 / 8
    # Differences 1, -1: every pattern is as far from 0 as their mean, 0.
    assert randomisation_test([1, 0], [0, 1], generator()) == 1.0


def test_randomisation_agrees_with_scipy() -> None:
    first, second = np.random.default_rng(1).random((2, 10))
    exact = stats.permutation_test(
        (first, second), lambda a, b, axis: np.mean(a - b, axis=axis), permutation_type="samples", n_resamples=2**11
    )
    assert randomisation_test(first, second, generator()) == pytest.approx(exact.pvalue, abs=1e-12)


def test_random_signs_come_near_the_exact_probability() -> None:
    first, second = np.random.default_rng(2).random((2, 14))
    exact = randomisation_test(first, second, generator(), samples=2**14)
    drawn = randomisation_test(first, second, generator(), samples=2**14 - 1)
    assert drawn == pytest.approx(exact, abs=0.015)
    assert drawn != exact


@pytest.mark.parametrize("test", [randomisation_test, bootstrap_test])
def test_drawn_probability_is_never_0(test: object) -> None:
    assert test([1.0] * 40, [0.0] * 40, generator(), samples=99) == 1 / 100  # type: ignore[operator]


@pytest.mark.parametrize("test", [randomisation_test, bootstrap_test])
def test_same_seed_gives_the_same_probability(test: object) -> None:
    first, second = np.random.default_rng(3).random((2, 40))
    assert test(first, second, generator()) == test(first, second, generator())  # type: ignore[operator]


@pytest.mark.parametrize("count", [2, 3, 10, 70, 1000])
def test_t_agrees_with_scipy(count: int) -> None:
    random = np.random.default_rng(count)
    first = random.random(count)
    second = first + random.normal(0.02, 0.1, count)
    expected = stats.ttest_rel(first, second)
    assert t_test(first, second) == pytest.approx((expected.statistic, expected.pvalue), rel=1e-10)


@given(st.floats(0, 50), st.integers(1, 5000))
def test_tails_of_t_agree_with_scipy(t: float, freedom: int) -> None:
    assert find_t_tails(t, freedom) == pytest.approx(2 * stats.t.sf(t, freedom), rel=1e-9, abs=1e-300)


def test_t_of_differences_that_are_all_alike() -> None:
    assert t_test([0.5, 0.7], [0.5, 0.7]) == (0.0, 1.0)
    assert t_test([0.5, 0.75], [0.25, 0.5]) == (math.inf, 0.0)
    assert t_test([0.25, 0.5], [0.5, 0.75]) == (-math.inf, 0.0)


def test_bootstrap_comes_near_t_with_many_queries() -> None:
    random = np.random.default_rng(5)
    first = random.normal(0, 1, 400)
    second = first - random.normal(0.1, 1, 400)
    assert bootstrap_test(first, second, generator()) == pytest.approx(t_test(first, second)[1], abs=0.02)


def test_equal_runs_are_never_significant() -> None:
    values = np.random.default_rng(6).random(30)
    assert bootstrap_test(values, values, generator()) == 1.0
    assert randomisation_test(values, values, generator()) == 1.0


def test_pairs_with_nan_are_left_out() -> None:
    first, second = [1.0, math.nan, 2.0, 3.0, 9.0], [0.0, 0.0, 0.0, 0.0, math.nan]
    assert randomisation_test(first, second, generator()) == 2 / 8
    assert t_test(first, second) == t_test([1, 2, 3], [0, 0, 0])


def test_fewer_than_two_pairs_say_nothing() -> None:
    assert math.isnan(randomisation_test([1.0], [0.0], generator()))
    assert math.isnan(bootstrap_test([], [], generator()))
    assert all(math.isnan(part) for part in t_test([1.0, math.nan], [0.0, 0.0]))


def test_values_of_different_queries_are_refused() -> None:
    with pytest.raises(InputError, match="pair up"):
        t_test([1.0, 0.0], [1.0])
    with pytest.raises(InputError, match="no samples"):
        bootstrap_test([1.0, 0.0], [1.0, 1.0], generator(), samples=0)
