import pytest

from resight.audit.review.votes import Verdict, Vote, compute_cohen, compute_fleiss, measure_agreement


def cast(reviewer: str, *verdicts: Verdict) -> list[Vote]:
    """Votes on the pairs (0, x), (1, x), …"""
    return [Vote(reviewer, str(number), "x", verdict) for number, verdict in enumerate(verdicts)]


def test_cohens_kappa_of_a_worked_example() -> None:
    # 50 pairs: both same 20, kim same and lee different 5, the other way round 10, both different 15.
    # p_o = 35/50 = .7; p_e = .5 · .6 + .5 · .4 = .5; κ = .2 / .5 = .4
    kim = ["same"] * 25 + ["different"] * 25
    lee = ["same"] * 20 + ["different"] * 5 + ["same"] * 10 + ["different"] * 15
    assert compute_cohen(kim, lee) == pytest.approx(0.4)


def test_cohens_kappa_is_negative_where_reviewers_contradict_each_other() -> None:
    # p_o = 0; p_e = 2 · .5 · .5 = .5; κ = -1
    assert compute_cohen(["same", "different"], ["different", "same"]) == pytest.approx(-1.0)


def test_fleiss_kappa_of_the_published_example() -> None:
    # Fleiss 1971's layout, 14 raters, 10 subjects, 5 categories; the sums worked by hand give P = .378, P_e = .213.
    table = [
        [0, 0, 0, 0, 14],
        [0, 2, 6, 4, 2],
        [0, 0, 3, 5, 6],
        [0, 3, 9, 2, 0],
        [2, 2, 8, 1, 1],
        [7, 7, 0, 0, 0],
        [3, 2, 6, 3, 0],
        [2, 5, 3, 2, 2],
        [6, 5, 2, 1, 0],
        [0, 2, 2, 3, 7],
    ]
    rows = [[str(category) for category, count in enumerate(row) for _ in range(count)] for row in table]
    assert compute_fleiss(rows) == pytest.approx(0.210, abs=5e-4)


def test_fleiss_kappa_of_three_reviewers_by_hand() -> None:
    # Pair 1: s s s → 1; pair 2: s d d → (0 + 2) / 6 = 1/3; P = 2/3. s 4/6, d 2/6: P_e = 5/9. κ = (1/9) / (4/9) = 1/4
    assert compute_fleiss([["s", "s", "s"], ["s", "d", "d"]]) == pytest.approx(0.25)


def test_kappa_is_undefined_where_all_votes_are_alike() -> None:
    assert compute_cohen(["same"] * 3, ["same"] * 3) is None
    assert compute_fleiss([["same", "same"]] * 3) is None


def test_kappa_is_undefined_without_common_pairs() -> None:
    assert compute_cohen([], []) is None
    assert compute_fleiss([]) is None
    assert compute_fleiss([["same"], ["different"]]) is None  # one reviewer agrees with nobody


def test_a_skipped_pair_is_no_vote_and_unsure_is_one() -> None:
    votes = [*cast("kim", "same", "different", "unsure", "same"), *cast("lee", "same", "different", "unsure", "skip")]
    found = measure_agreement(votes)
    assert found.reviewers == {"kim": 4, "lee": 3}
    (two,) = found.two
    assert (two.pairs, two.agreed, two.kappa) == (3, 3, pytest.approx(1.0))


def test_fleiss_counts_the_pairs_that_all_voted_on() -> None:
    votes = [*cast("a", "same", "different", "same"), *cast("b", "same", "different"), *cast("c", "same", "same")]
    found = measure_agreement(votes)
    assert found.pairs == 2
    # rows: s s s and d d s: as in the example by hand, with the letters exchanged on the second.
    assert found.fleiss == pytest.approx(0.25)
    assert [(two.first, two.second) for two in found.two] == [("a", "b"), ("a", "c"), ("b", "c")]


def test_no_votes_give_no_agreement() -> None:
    found = measure_agreement([])
    assert (found.reviewers, found.two, found.pairs, found.fleiss) == ({}, (), 0, None)
