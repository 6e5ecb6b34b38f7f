import math

from resight.audit.dedup.pairs import Judged, choose, find_cut
from resight.audit.dedup.verify import Finding, Registration

WHOLE = (0.0, 0.0, 1.0, 1.0)


def judge(a: int, b: int, probability: float, agreement: float = 0.9) -> tuple[tuple[int, int], Judged]:
    """A near copy, or with little agreement another view."""
    laid = Registration(agreement, 1.0, 1.0, WHOLE, WHOLE)
    return (a, b), Judged(Finding(a, b, False, 50, 80, 1.0, laid), probability)


def test_only_kinds_and_probabilities_that_are_asked_for_are_chosen() -> None:
    judged = dict([judge(0, 1, 0.9), judge(0, 2, 0.9, agreement=0.2), judge(0, 3, 0.4)])
    assert list(choose(judged, ["copy", "near_copy"], 0.5)) == [(0, 1)]
    assert list(choose(judged, ["same"], 0.0)) == [(0, 2)]


def test_the_rate_of_false_alarms_cuts_the_list() -> None:
    # 1 - p: 0, 0.1, 0.3; of one pair 0, of two 0.05, of three 0.133.
    chances = [0.7, 1.0, 0.9]
    assert find_cut(chances, 0.05) == 0.9
    assert find_cut(chances, 0.14) == 0.7
    assert find_cut(chances, 0.0) == 1.0


def test_equally_likely_pairs_are_listed_together_or_not_at_all() -> None:
    # The first 0.9 alone would do (0.05 of two), both do not (0.067 of three).
    assert find_cut([1.0, 0.9, 0.9], 0.06) == 1.0


def test_nothing_is_listed_where_even_the_likeliest_pair_is_too_doubtful() -> None:
    assert find_cut([0.9], 0.05) == math.inf
    assert find_cut([], 0.05) == math.inf
