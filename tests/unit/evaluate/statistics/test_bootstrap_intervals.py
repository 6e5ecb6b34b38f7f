"""The bootstrap interval of a mean over queries."""

import math

import numpy as np
import pytest

from resight.errors import InputError
from resight.evaluate.statistics.tests import bootstrap_interval, paired_interval


def test_equal_values_leave_no_doubt() -> None:
    assert bootstrap_interval([0.25] * 8, np.random.default_rng(0)) == (0.25, 0.25)


def test_interval_is_about_two_standard_errors_each_side() -> None:
    values = np.tile([0.0, 1.0], 200)  # mean 0.5, standard error 0.5 / √400 = 0.025
    low, high = bootstrap_interval(values, np.random.default_rng(1), samples=4000)
    assert low == pytest.approx(0.5 - 1.96 * 0.025, abs=0.005)
    assert high == pytest.approx(0.5 + 1.96 * 0.025, abs=0.005)


def test_lower_level_gives_a_narrower_interval_inside() -> None:
    values = np.linspace(0, 1, 50)
    wide = bootstrap_interval(values, np.random.default_rng(2), level=0.95)
    narrow = bootstrap_interval(values, np.random.default_rng(2), level=0.5)
    assert wide[0] < narrow[0] < narrow[1] < wide[1]


def test_nan_is_left_out() -> None:
    known = [0.1, 0.5, 0.9]
    with_nan = bootstrap_interval([0.1, math.nan, 0.5, 0.9, math.nan], np.random.default_rng(3))
    assert with_nan == bootstrap_interval(known, np.random.default_rng(3))


def test_same_seed_gives_the_same_interval() -> None:
    values = [0.0, 0.2, 0.9]
    first, second = (bootstrap_interval(values, np.random.default_rng(4), samples=50) for _ in range(2))
    assert first == second


def test_no_values_give_nan() -> None:
    assert all(math.isnan(end) for end in bootstrap_interval([math.nan], np.random.default_rng(0)))
    assert all(math.isnan(end) for end in bootstrap_interval([], np.random.default_rng(0)))


@pytest.mark.parametrize("settings", [{"level": 0.0}, {"level": 1.0}, {"level": 95}, {"samples": 0}])
def test_impossible_settings_are_refused(settings: dict[str, float]) -> None:
    with pytest.raises(InputError):
        bootstrap_interval([0.5], np.random.default_rng(0), **settings)  # type: ignore[arg-type]


def test_a_pair_of_runs_that_differ_alike_on_every_query_leaves_no_doubt() -> None:
    interval = paired_interval([0.2, 0.7, 1.0], [0.1, 0.6, 0.9], np.random.default_rng(0))
    assert interval == pytest.approx((0.1, 0.1))


def test_the_paired_interval_is_that_of_the_differences() -> None:
    first, second = np.array([1.0, 0.0, 1.0, 1.0]), np.array([0.0, 0.0, 1.0, math.nan])
    paired = paired_interval(first, second, np.random.default_rng(5))
    assert paired == bootstrap_interval([1.0, 0.0, 0.0], np.random.default_rng(5))


def test_runs_of_different_queries_cannot_be_paired() -> None:
    with pytest.raises(InputError, match="pair"):
        paired_interval([1.0, 0.0], [1.0], np.random.default_rng(0))
