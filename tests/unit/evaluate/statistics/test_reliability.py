"""AUC, calibration error and Brier score, worked by hand."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resight.errors import InputError
from resight.evaluate.statistics.reliability import auc, brier, expected_calibration_error


def test_auc_counts_pairs_in_order_and_ties_half() -> None:
    # 3 beats 1 and 2 and ties 3; 1 ties 1 only: (1 + 1 + ½ + ½) of 6 pairs
    assert auc([3, 1], [1, 2, 3]) == 3 / 6


def test_auc_of_separated_scores_is_1_and_reversed_0() -> None:
    assert auc([2, 3], [0, 1]) == 1.0
    assert auc([0, 1], [2, 3]) == 0.0


@settings(deadline=None)
@given(st.lists(st.integers(0, 5), min_size=1), st.lists(st.integers(0, 5), min_size=1))
def test_auc_agrees_with_all_pairs_compared(positives: list[int], negatives: list[int]) -> None:
    wins = sum((p > n) + (p == n) / 2 for p in positives for n in negatives)
    assert auc(positives, negatives) == pytest.approx(wins / (len(positives) * len(negatives)))


def test_calibration_error_weighs_the_gap_of_each_bin() -> None:
    # two bins of two: |0.15 − 0.5| and |0.85 − 1|, each with half the weight
    error = expected_calibration_error([0.9, 0.1, 0.8, 0.2], [True, False, True, True], bins=2)
    assert error == pytest.approx((0.35 + 0.15) / 2)


def test_bins_hold_equal_counts_whatever_the_values() -> None:
    # By count: {0.01, 0.02} and {0.03, 0.99}. By width 0.5 the gap of the first bin would differ.
    error = expected_calibration_error([0.01, 0.02, 0.03, 0.99], [0, 0, 1, 1], bins=2)
    assert error == pytest.approx((0.03 + 0.98) / 4)


def test_equal_probabilities_share_a_bin_in_any_order() -> None:
    assert expected_calibration_error([0.5] * 4, [0, 0, 1, 1]) == 0.0
    assert expected_calibration_error([0.5] * 4, [1, 0, 1, 0]) == 0.0


def test_equal_probabilities_go_to_the_bin_of_their_middle_rank() -> None:
    # Three at 0.5 have middle rank 2 of 4: the lower bin, and 0.9 is alone in the upper one.
    error = expected_calibration_error([0.5, 0.5, 0.5, 0.9], [1, 0, 0, 1], bins=2)
    assert error == pytest.approx((0.5 + 0.1) / 4)


def test_more_bins_than_values_compares_each_value() -> None:
    assert expected_calibration_error([0.25, 0.75], [0, 1], bins=10) == pytest.approx(0.25)


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1),
    st.integers(1, 20),
    st.randoms(use_true_random=False),
)
def test_calibration_error_is_bounded_and_blind_to_order(
    pairs: list[tuple[float, bool]], bins: int, random: object
) -> None:
    shuffled = list(pairs)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    error = expected_calibration_error(*zip(*pairs, strict=True), bins=bins)
    assert 0 <= error <= 1
    assert expected_calibration_error(*zip(*shuffled, strict=True), bins=bins) == pytest.approx(error, abs=1e-12)


def test_brier_is_the_mean_squared_gap() -> None:
    assert brier([0.8, 0.3], [1, 0]) == pytest.approx((0.04 + 0.09) / 2)
    assert brier([0.5, 0.5], [True, False]) == 0.25


@pytest.mark.parametrize("measure", [brier, expected_calibration_error])
@pytest.mark.parametrize(
    ("probabilities", "truths"),
    [([], []), ([0.5], [1, 0]), ([1.5], [1]), ([-0.1], [1]), ([np.nan], [1]), ([0.5], [2]), ([[0.5]], [[1]])],
)
def test_unusable_pairs_are_refused(measure, probabilities, truths) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(InputError):
        measure(probabilities, truths)


def test_unusable_scores_and_bins_are_refused() -> None:
    with pytest.raises(InputError, match="negative_scores"):
        auc([1.0], [])
    with pytest.raises(InputError, match="positive_scores"):
        auc([np.nan], [1.0])
    with pytest.raises(InputError, match="bins"):
        expected_calibration_error([0.5], [1], bins=0)
