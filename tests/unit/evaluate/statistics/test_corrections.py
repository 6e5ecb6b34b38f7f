"""Corrections for many comparisons, and many runs against one."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from resight.errors import InputError
from resight.evaluate.statistics.tests import benjamini_hochberg, compare_many, correct, holm, paired_interval, t_test

stats = pytest.importorskip("scipy.stats")
PROBABILITIES = st.lists(st.floats(0, 1), min_size=1, max_size=12)


def test_holm_as_worked_by_hand() -> None:
    # In order .01 × 4, .02 × 3, .025 × 2, .5 × 1, never below the one before.
    assert holm([0.02, 0.5, 0.01, 0.025]) == pytest.approx([0.06, 0.5, 0.04, 0.06])


def test_benjamini_hochberg_as_worked_by_hand() -> None:
    # In order .01 × 4, .02 × 2, .03 × 4/3, .5 × 1, never above the one after.
    assert benjamini_hochberg([0.02, 0.5, 0.01, 0.03]) == pytest.approx([0.04, 0.5, 0.04, 0.04])


@given(PROBABILITIES)
def test_benjamini_hochberg_agrees_with_scipy(given_: list[float]) -> None:
    assert benjamini_hochberg(given_) == pytest.approx(stats.false_discovery_control(given_), abs=1e-12)


@given(PROBABILITIES)
def test_holm_lies_between_no_correction_and_bonferroni(given_: list[float]) -> None:
    corrected = holm(given_)
    assert (corrected >= np.array(given_)).all()
    assert (corrected <= np.minimum(np.array(given_) * len(given_), 1) + 1e-15).all()
    assert (benjamini_hochberg(given_) <= corrected + 1e-15).all()


def test_test_that_could_not_be_made_does_not_count() -> None:
    assert correct([0.01, math.nan, 0.04], "holm") == pytest.approx([0.02, math.nan, 0.04], nan_ok=True)
    assert correct([0.01, 0.04], "none").tolist() == [0.01, 0.04]


def test_unknown_correction_or_test_is_refused() -> None:
    with pytest.raises(InputError, match="no correction"):
        correct([0.1], "tukey")
    with pytest.raises(InputError, match="no test"):
        compare_many([0.0, 1.0], {"b": [1.0, 1.0]}, np.random.default_rng(0), tests=["wilcoxon"])


def test_many_runs_against_one() -> None:
    random = np.random.default_rng(1)
    reference = random.random(50)
    others = {"better": reference + random.normal(0.2, 0.1, 50), "alike": reference + random.normal(0, 0.1, 50)}
    others["better"][3] = math.nan
    better, alike = compare_many(reference, others, np.random.default_rng(7), tests=["t", "randomisation"])
    assert (better.label, better.queries, alike.queries) == ("better", 49, 50)
    assert better.difference == pytest.approx(np.nanmean(others["better"] - reference))
    assert better.low < better.difference < better.high
    assert better.p["t"] == t_test(others["better"], reference)[1]
    assert better.corrected["t"] == pytest.approx(2 * better.p["t"])
    assert list(better.p) == ["t", "randomisation"]
    assert better.corrected["randomisation"] < 0.05 < alike.corrected["randomisation"]


def test_run_beside_it_changes_only_the_correction() -> None:
    random = np.random.default_rng(2)
    reference, first, second = random.random((3, 30))
    (alone,) = compare_many(reference, {"a": first}, np.random.default_rng(0))
    beside, _ = compare_many(reference, {"a": first, "b": second}, np.random.default_rng(0))
    assert (alone.p, alone.low, alone.high) == (beside.p, beside.low, beside.high)
    assert alone.corrected == alone.p


def test_run_without_common_queries_has_no_difference() -> None:
    (one,) = compare_many([math.nan, 1.0], {"a": [1.0, math.nan]}, np.random.default_rng(0))
    assert one.queries == 0
    assert all(math.isnan(value) for value in (one.difference, one.low, one.high, *one.p.values()))


def test_interval_of_a_pair_still_refuses_other_queries() -> None:
    with pytest.raises(InputError, match="pair"):
        paired_interval([1.0], [1.0, 2.0], np.random.default_rng(0))
