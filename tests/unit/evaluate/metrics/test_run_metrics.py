"""uap and calibration_error: hand-worked values, a second implementation, and what they are told."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from resight.errors import InputError, RecipeError
from resight.evaluate import judge
from resight.evaluate.metrics import Pairs, RunMetric, build
from resight.types import Judgement


def query(scores: list[float], hits: list[int], positives: int) -> Pairs:
    return Pairs(np.array(scores), np.array(hits, dtype=np.int64), positives)


def value(name: str, queries: list[Pairs]) -> float:
    metric = build(name)
    assert isinstance(metric, RunMetric)
    (figure,) = metric.score_run(queries, np.ones((1, len(queries)), dtype=np.int64))
    return float(figure)


def test_uap_puts_the_pairs_of_all_queries_in_one_list() -> None:
    # In order: .9 hit, .8 miss, .7 hit, .6 miss, .5 miss; one more positive was not found.
    queries = [query([0.9, 0.6], [0], 1), query([0.8, 0.7, 0.5], [1], 2)]
    assert value("uap", queries) == pytest.approx((1 + 2 / 3) / 3, abs=1e-15)


def test_query_without_positives_takes_part_in_uap() -> None:
    assert value("uap", [query([0.5], [0], 1), query([0.9], [], 0)]) == 1 / 2


def test_pairs_of_the_same_score_enter_uap_together() -> None:
    assert value("uap", [query([0.5, 0.5], [0], 1)]) == value("uap", [query([0.5, 0.5], [1], 1)]) == 1 / 2


def test_run_without_positives_has_no_uap() -> None:
    assert np.isnan(value("uap", [query([0.5], [], 0)]))


def test_positives_that_are_not_found_give_uap_0() -> None:
    assert value("uap", [query([], [], 2), query([0.4], [], 0)]) == 0.0


@st.composite
def runs(draw: st.DrawFn) -> list[Pairs]:
    queries = []
    for _ in range(draw(st.integers(1, 5))):
        scores = sorted(draw(st.lists(st.integers(0, 9), max_size=8)), reverse=True)
        hits = sorted(draw(st.sets(st.integers(0, max(len(scores) - 1, 0)))))[: len(scores)]
        queries.append(query([score / 10 for score in scores], hits, len(hits) + draw(st.integers(0, 2))))
    return queries


@given(runs(), st.data())
def test_uap_of_queries_taken_several_times_is_that_of_the_longer_list(run: list[Pairs], data: st.DataObject) -> None:
    times = [data.draw(st.integers(0, 3)) for _ in run]
    metric = build("uap")
    assert isinstance(metric, RunMetric)
    found = metric.score_run(run, np.array([times, [1] * len(run)]))
    repeated = [one for one, count in zip(run, times, strict=True) for _ in range(count)]
    assert found == pytest.approx([walk(repeated), walk(run)], abs=1e-12, nan_ok=True)


def test_many_queries_are_counted_in_blocks() -> None:
    generator = np.random.default_rng(0)
    run = [query(sorted(generator.random(5), reverse=True), [int(generator.integers(5))], 1) for _ in range(75)]
    assert value("uap", run) == pytest.approx(walk(run), abs=1e-12)


def walk(queries: list[Pairs]) -> float:
    """One list of (score, hit), looked at score by score."""
    pairs = [(score, place in one.hits) for one in queries for place, score in enumerate(one.scores.tolist())]
    wanted = sum(one.positives for one in queries)
    if wanted == 0:
        return float("nan")
    area = 0.0
    for score, hit in pairs:
        if hit:
            upper = [truth for other, truth in pairs if other >= score]
            area += sum(upper) / len(upper)
    return area / wanted


def test_calibration_error_is_the_gap_of_each_bin() -> None:
    # Two levels of five pairs each: 0.8 is right 3 times of 5, 0.2 once: gaps 0.2 and 0.
    queries = [query([0.8] * 5, [0, 1, 2], 3), query([0.2] * 5, [4], 1)]
    assert value("calibration_error", queries) == pytest.approx(0.5 * 0.2)


def test_calibration_error_at_k_takes_the_first_k_of_each_query() -> None:
    queries = [query([0.9, 0.1], [0], 1), query([0.7, 0.2], [], 0)]
    assert value("calibration_error@1", queries) == pytest.approx((0.1 + 0.7) / 2)


def test_calibration_error_of_queries_taken_several_times() -> None:
    once = [query([0.9, 0.3], [0], 1), query([0.6], [], 0)]
    metric = build("calibration_error")
    assert isinstance(metric, RunMetric)
    repeated = [once[0], once[0], once[1], once[1], once[1]]
    assert metric.score_run(once, np.array([[2, 3]]))[0] == pytest.approx(value("calibration_error", repeated))


def test_scores_that_are_no_probabilities_are_refused() -> None:
    with pytest.raises(InputError, match="probability outside"):
        value("calibration_error", [query([12.0, 3.0], [0], 1)])


@pytest.mark.parametrize("name", ["uap", "calibration_error", "easy/uap"])
def test_figure_of_a_run_is_refused_for_one_query(name: str) -> None:
    with pytest.raises(RecipeError, match="whole run"):
        judge(["a"], Judgement({"a": 1}), [name])


@pytest.mark.parametrize("name", ["uap@5", "calibration_error@0"])
def test_impossible_number_is_refused(name: str) -> None:
    with pytest.raises(RecipeError):
        build(name)
