"""Hand-worked values of every metric, and the errors of their names."""

import math
from collections.abc import Sequence

import numpy as np
import pytest

from resight import plugins
from resight.errors import RecipeError
from resight.evaluate import metrics
from resight.evaluate.metrics import RunMetric, build
from resight.evaluate.metrics.locscore import LocScore

# Ranks 1, 3 and 6 are hits; a fourth positive was not found.
RANKS = (1, 3, 6)
POSITIVES = 4
OVERLAPS = (0.35, 0.5, 0.1)


def value(name: str, ranks: Sequence[int] = RANKS, positives: int = POSITIVES) -> float:
    metric = build(name)
    assert not isinstance(metric, RunMetric)
    overlaps = np.array(OVERLAPS) if ranks == RANKS else np.ones(len(ranks))
    return metric.score(np.array(ranks, dtype=np.int64), positives, overlaps)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("ap", (1 + 2 / 3 + 3 / 6) / 4),
        ("ap@1", 1 / 1),
        ("ap@3", (1 + 2 / 3) / 3),
        ("ap@5", (1 + 2 / 3) / 4),
        ("ap@100", (1 + 2 / 3 + 3 / 6) / 4),
        ("ap_trapezoid", ((1 + 1) / 2 + (1 / 2 + 2 / 3) / 2 + (2 / 5 + 3 / 6) / 2) / 4),
        ("recall@1", 1.0),
        ("recall_fraction@1", 1 / 4),
        ("recall_fraction@3", 2 / 4),
        ("recall_fraction@100", 3 / 4),
        ("precision@1", 1.0),
        ("precision@5", 2 / 5),
        ("precision@100", 3 / 100),
        ("precision_revisited@5", 2 / 5),
        ("locscore", (1 * 0.35 + 2 / 3 * 0.5 + 3 / 6 * 0.1) / 4),
        ("locscore@0.3", (1 + 2 / 3) / 4),
        ("locscore@0.4", (2 / 3) / 4),
        ("locscore@0.5", (2 / 3) / 4),
        ("locscore@0.51", 0.0),
        ("mlocscore", (5 / 3 + 2 / 3 + 2 / 3) / 4 / 3),
    ],
)
def test_value_is_the_one_worked_by_hand(name: str, expected: float) -> None:
    assert value(name) == pytest.approx(expected, rel=1e-12)


def test_recall_is_zero_until_the_first_hit() -> None:
    assert value("recall@2", [3], 1) == 0.0
    assert value("recall@3", [3], 1) == 1.0


def test_trapezoid_counts_the_precision_above_a_late_first_hit_as_zero() -> None:
    assert value("ap_trapezoid", [2], 1) == pytest.approx((0 / 1 + 1 / 2) / 2)


def test_revisited_precision_is_capped_at_the_last_positive_when_all_are_found() -> None:
    assert value("precision_revisited@1", [1, 3], 2) == 1.0
    assert value("precision_revisited@2", [1, 3], 2) == 1 / 2
    assert value("precision_revisited@10", [1, 3], 2) == pytest.approx(2 / 3)


def test_revisited_precision_is_not_capped_while_a_positive_is_missing() -> None:
    assert value("precision_revisited@4", [1, 2, 6], 3) == 2 / 4
    assert value("precision_revisited@4", [1, 2], 3) == 2 / 4


@pytest.mark.parametrize("name", ["ap", "ap_trapezoid", "ap@3", "recall@3", "recall_fraction@3", "precision@3"])
def test_nothing_found_is_zero(name: str) -> None:
    assert value(name, [], 2) == 0.0


def test_threshold_that_is_met_exactly_counts() -> None:
    assert LocScore(0.7).score(np.array([1]), 1, np.array([7 / 10])) == 1.0


def test_every_metric_of_the_folder_states_a_convention() -> None:
    needs_rank = {"recall", "recall_fraction", "precision", "precision_revisited"}
    for name in plugins.names("resight.evaluate.metrics"):
        convention = build(f"{name}@10" if name in needs_rank else name).convention
        assert convention.endswith("."), name
        assert "\n" not in convention, name


def test_convention_shows_the_number() -> None:
    assert "17" in build("ap@17").convention
    assert "0.3" in build("locscore@0.3").convention


def test_name_is_split_at_the_number() -> None:
    assert metrics.parse("locscore@0.3") == ("locscore", 0.3)
    assert metrics.parse("ap") == ("ap", None)


@pytest.mark.parametrize("name", ["ap@", "ap@x", "ap@nan", "ap@-1", "ap@1@2", "ap@1e1"])
def test_number_that_cannot_be_read_is_refused(name: str) -> None:
    with pytest.raises(RecipeError, match="cannot read the metric"):
        build(name)


@pytest.mark.parametrize(
    "name",
    ["recall", "recall_fraction", "precision", "precision_revisited", "recall@0", "ap@0", "ap@2.5", "ap@" + "9" * 400],
)
def test_missing_or_impossible_rank_is_refused_with_the_form_that_is_expected(name: str) -> None:
    with pytest.raises(RecipeError) as caught:
        build(name)
    assert f"{name.partition('@')[0]}@k" in caught.value.expected


@pytest.mark.parametrize("name", ["ap_trapezoid@5", "mlocscore@0.3"])
def test_superfluous_number_is_refused(name: str) -> None:
    with pytest.raises(RecipeError, match="takes no number") as caught:
        build(name)
    assert caught.value.actual == name


@pytest.mark.parametrize("name", ["locscore@0", "locscore@1.5"])
def test_threshold_outside_its_range_is_refused(name: str) -> None:
    with pytest.raises(RecipeError, match="threshold"):
        build(name)


def test_unknown_metric_lists_the_known_ones() -> None:
    with pytest.raises(RecipeError) as caught:
        build("map")
    assert "ap_trapezoid" in caught.value.expected


def test_numbers_of_a_result_are_plain_floats() -> None:
    for name in ("ap", "recall@1", "precision_revisited@1", "mlocscore"):
        assert type(value(name)) is float
        assert math.isfinite(value(name))
