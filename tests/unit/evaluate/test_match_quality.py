"""Figures of matches, worked out by hand."""

import pytest

from resight.errors import InputError
from resight.evaluate.match_quality import Outcome, draw_reliability, find_recall, measure_matches

# Six queries: five have a right answer, four of their matches are right; one of them has no match at all.
OUTCOMES = [
    Outcome(0.9, True, True),
    Outcome(0.8, True, True),
    Outcome(0.7, False, False),
    Outcome(0.4, True, True),
    Outcome(0.3, True, True),
    Outcome(0.0, False, True),
]


def test_precision_and_recall_at_a_threshold():
    found = measure_matches(OUTCOMES, 0.5)
    assert (found.queries, found.present, found.listed, found.right) == (6, 5, 3, 2)
    assert (found.precision, found.recall, found.best_right) == (pytest.approx(2 / 3), 0.4, 0.8)
    low, high = found.recall_interval
    assert 0 <= low < 0.4 < high <= 1


def test_the_largest_recall_at_a_precision():
    assert find_recall(OUTCOMES, 1.0) == (0.4, 0.8)
    assert find_recall(OUTCOMES, 0.75) == (0.8, 0.3)  # 4 of 5
    assert find_recall([Outcome(0.9, False, True)], 0.5) == (0.0, 1.0)


def test_equal_probabilities_are_listed_together():
    assert find_recall([Outcome(0.9, True, True), Outcome(0.9, False, True)], 0.99) == (0.0, 1.0)


def test_the_diagram_shows_frequencies_beside_probabilities():
    outcomes = [Outcome(0.25, number < 1, True) for number in range(4)] + [
        Outcome(0.75, number < 3, True) for number in range(4)
    ]
    chart = draw_reliability(outcomes)
    assert chart.positions == (0.25, 0.75)
    assert [line.values for line in chart.lines] == [(0.25, 0.75), (0.25, 0.75)]
    assert measure_matches(outcomes).calibration_error == 0


def test_without_a_right_answer_there_is_nothing_to_measure():
    with pytest.raises(InputError, match="nothing to measure"):
        measure_matches([Outcome(0.9, False, False)])
