"""Whole runs: figures with intervals, which queries are in them, and what is refused."""

import math
from collections.abc import Iterator

import numpy as np
import pytest

from resight.errors import InputError, RecipeError
from resight.evaluate.judge_runs import JudgedRun, ScoredRanking, compare_runs, judge_rankings, pair
from resight.evaluate.statistics.tests import bootstrap_interval
from resight.types import Judgement

TRUTH = {"p": Judgement({"a": 2, "b": 1}), "q": Judgement({"b": 2}), "none": Judgement({"a": 0})}
RUN: list[ScoredRanking] = [
    ("p", ["a", "c", "b"], [0.9, 0.6, 0.3]),
    ("none", ["a", "b"], [0.8, 0.1]),
    ("stranger", ["a"], [1.0]),
    ("q", ["c", "b"], [0.7, 0.2]),
]


def judge_run(rankings: object = RUN, names: tuple[str, ...] = ("ap",), **how: object) -> JudgedRun:
    return judge_rankings(rankings, TRUTH, names, np.random.default_rng(0), **how)  # type: ignore[arg-type]


def test_figure_is_the_mean_over_judged_queries_with_its_interval() -> None:
    run = judge_run()
    figure = run.figures["ap"]
    assert {query: values["ap"] for query, values in run.values.items()} == {"p": (1 + 2 / 3) / 2, "q": 1 / 2}
    assert figure.value == pytest.approx(((1 + 2 / 3) / 2 + 1 / 2) / 2)
    assert (figure.low, figure.high) == (0.5, pytest.approx((1 + 2 / 3) / 2))
    assert (figure.queries, figure.left_out) == (2, 0)


def test_what_is_not_in_the_figures_is_listed() -> None:
    run = judge_run()
    assert (run.unjudged, run.without_positives, run.missing, run.not_found) == (("stranger",), ("none",), (), 0)


def test_query_without_a_value_under_a_protocol_is_counted() -> None:
    figure = judge_run(names=("hard/ap",)).figures["hard/ap"]  # q has only an easy positive
    assert (figure.value, figure.queries, figure.left_out) == (1 / 2, 1, 1)


def test_protocol_that_no_query_has_gives_nan_and_no_zero() -> None:
    truth = {"p": Judgement({"a": 2})}
    run = judge_rankings([("p", ["a"], None)], truth, ["hard/ap"], np.random.default_rng(0))
    assert math.isnan(run.figures["hard/ap"].value)
    assert run.figures["hard/ap"].left_out == 1


def test_uap_takes_queries_without_positives_and_leaves_unjudged_ones() -> None:
    # .9 hit, .8 miss (none), .7, .6 miss, .3 hit, .2 hit, .1: precisions 1, 2/5, 3/6.
    figure = judge_run(names=("uap",)).figures["uap"]
    assert figure.value == pytest.approx((1 + 2 / 5 + 3 / 6) / 3)
    assert figure.queries == 3
    assert 0 <= figure.low <= figure.value <= figure.high <= 1


def test_protocol_of_uap_takes_ignored_pairs_out() -> None:
    # Hard: b of p is the positive (.3); a of p and b of q leave: .8, .7, .6, .3 → 1/4.
    assert judge_run(names=("hard/uap",)).figures["hard/uap"].value == pytest.approx(1 / 4)


def test_ignored_images_leave_the_pairs() -> None:
    pairs = pair("q", ["j", "a", "k", "b"], [4, 3, 2, 1], Judgement({"b": 1}, frozenset({"j", "k"})))
    assert (pairs.scores.tolist(), pairs.hits.tolist(), pairs.positives) == ([3, 1], [1], 1)


def test_run_is_read_one_ranking_at_a_time() -> None:
    held: list[str] = []

    def draw() -> Iterator[ScoredRanking]:
        for query, ids, scores in RUN:
            held.append(query)
            yield query, ids, scores

    assert judge_run(draw()).figures == judge_run().figures
    assert len(held) == len(RUN)


def test_figure_of_the_whole_run_needs_rankings_that_can_be_read_again() -> None:
    with pytest.raises(InputError, match="read only once"):
        judge_run(iter(RUN), ("ap", "uap"))


def test_figure_of_the_whole_run_needs_scores_that_do_not_rise() -> None:
    for scores in (None, [0.1], [0.1, 0.2], [0.1, math.nan]):
        with pytest.raises(InputError, match=r"scores"):
            judge_run([*RUN[:3], ("q", ["c", "b"], scores)], ("uap",))


def test_query_that_the_run_lacks_is_refused_unless_one_says_what_it_counts() -> None:
    with pytest.raises(InputError, match="lacks 'q'"):
        judge_run(RUN[:3])
    zero, left = judge_run(RUN[:3], missing="zero"), judge_run(RUN[:3], missing="leave")
    assert zero.figures["ap"].value == pytest.approx((1 + 2 / 3) / 2 / 2)
    assert left.figures["ap"].value == pytest.approx((1 + 2 / 3) / 2)
    assert (zero.missing, left.missing, zero.not_found, left.not_found) == (("q",), ("q",), 1, 0)
    assert judge_run(RUN[:3], ("uap",), missing="zero").figures["uap"].value == pytest.approx((1 + 2 / 4) / 3)


def test_positives_that_are_not_ranked_are_counted() -> None:
    assert judge_run([("p", ["c", "a"], None), ("q", ["b"], None)]).not_found == 1


def test_run_of_other_queries_is_refused() -> None:
    with pytest.raises(InputError, match="no query of the run") as caught:
        judge_run(RUN[1:3])
    assert "'p', 'q'" in caught.value.expected


def test_id_that_the_database_lacks_is_named() -> None:
    assert judge_run(known={"a", "b", "c"}).figures["ap"].queries == 2
    with pytest.raises(InputError, match="database lacks") as caught:
        judge_run(known={"a", "b"})
    assert caught.value.actual == "'c'"


def test_query_that_is_ranked_twice_is_refused() -> None:
    with pytest.raises(InputError, match="ranked twice"):
        judge_run([*RUN, RUN[0]])


def test_image_that_is_ranked_twice_is_refused() -> None:
    with pytest.raises(InputError, match="more than once"):
        judge_run([("p", ["a", "a"], None), RUN[3]])


def test_metrics_that_localise_are_refused_without_boxes() -> None:
    truth = {"p": Judgement({"a": 1}, boxes={"a": (0.0, 0.0, 1.0, 1.0)})}
    with pytest.raises(InputError, match="need the boxes"):
        judge_rankings([("p", ["a"], None)], truth, ["locscore"], np.random.default_rng(0))


def test_unknown_metric_is_refused_before_anything_is_read() -> None:
    with pytest.raises(RecipeError):
        judge_run(iter([]), ("map",))


def test_same_seed_gives_the_same_intervals() -> None:
    assert judge_run(names=("ap", "uap")).figures == judge_run(names=("ap", "uap")).figures


def test_interval_of_uap_covers_what_other_queries_would_give() -> None:
    random = np.random.default_rng(3)
    truth = {str(number): Judgement({"a": 1}) for number in range(60)}
    run = [(str(n), ["a", "b"] if random.random() < 0.7 else ["b", "a"], [0.9, 0.1]) for n in range(60)]
    figure = judge_rankings(run, truth, ["uap"], np.random.default_rng(0)).figures["uap"]
    means = [float(ids[0] == "a") for _, ids, _ in run]
    low, high = bootstrap_interval(means, np.random.default_rng(0))
    assert figure.high - figure.low == pytest.approx(high - low, rel=0.6)
    assert figure.low < figure.value < figure.high


def test_runs_are_compared_on_the_queries_that_both_have() -> None:
    truth = {str(number): Judgement({"a": 1}) for number in range(8)}
    good = [(str(number), ["a", "b"], None) for number in range(8)]
    poor = [(str(number), ["b", "a"], None) for number in range(1, 8)]
    judged = [
        judge_rankings(one, truth, ["ap", "recall@1"], np.random.default_rng(0), missing="leave")
        for one in (good, poor)
    ]
    found = compare_runs(judged[0], {"poor": judged[1]}, np.random.default_rng(0))
    (one,) = found["ap"]
    assert (one.label, one.queries, one.difference) == ("poor", 7, -0.5)
    assert one.p["randomisation"] == 2 / 2**7
    assert one.corrected["randomisation"] == 2 * 2 / 2**7  # two metrics
    assert list(found) == ["ap", "recall@1"]
