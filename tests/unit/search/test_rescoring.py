import numpy as np
import pytest

from resight.errors import RecipeError
from resight.search import rerankers
from resight.search.rescoring import blend, choose_temperature, find_scores, remember_scores, rescore
from resight.types import Descriptors, Ranking

RANKING = Ranking("q", ("a", "b", "c", "d"), np.array([0.8, 0.6, 0.5, 0.1], np.float32))
LOCAL = {"a": 0.2, "b": 0.4, "c": 0.9}


def test_without_balance_and_temperature_the_local_score_is_the_score():
    found = rescore(RANKING, LOCAL, "late")
    assert found.ids == ("c", "b", "a", "d")
    assert found.scores[:3] == pytest.approx([0.9, 0.4, 0.2])


def test_the_balance_is_the_say_of_the_score_that_was_there():
    # a: .5 · .8 + .5 · .2 = .5; b: .5 · .6 + .5 · .4 = .5; c: .5 · .5 + .5 · .9 = .7
    found = rescore(RANKING, LOCAL, "late", balance=0.5)
    assert found.ids == ("c", "a", "b", "d")
    assert found.scores[:3] == pytest.approx([0.7, 0.5, 0.5])


def test_a_balance_of_one_keeps_the_order():
    found = rescore(RANKING, LOCAL, "late", balance=1, temperature=0.3)
    assert found.ids == RANKING.ids
    assert found.scores[:3] == pytest.approx(RANKING.scores[:3])


def test_the_temperature_sends_the_local_score_through_the_logistic_function():
    # σ(0.2 / 0.1) = 1 / (1 + e^-2) = .880797; blended with .8 at .25: .25 · .8 + .75 · .880797 = .860598
    local = np.array([0.2], np.float32)
    assert blend(np.array([0.8], np.float32), local, 0.0, 0.1) == pytest.approx([0.880797])
    assert blend(np.array([0.8], np.float32), local, 0.25, 0.1) == pytest.approx([0.860598])


def test_gamma_multiplies_what_a_temperature_divides():
    # σ(0.5 · 0.2) = 1 / (1 + e^-0.1) = .524979
    local = np.array([0.2], np.float32)
    assert blend(np.zeros(1, np.float32), local, 0.0, choose_temperature(0, 0.5)) == pytest.approx([0.524979])
    assert choose_temperature(0.3, None) == 0.3


def test_a_gamma_of_zero_keeps_the_order():
    found = rescore(RANKING, LOCAL, "late", balance=0.5, temperature=choose_temperature(0, 0.0))
    assert found.ids == RANKING.ids
    assert found.scores[:2] == pytest.approx([0.5 * 0.8 + 0.25, 0.5 * 0.6 + 0.25])


@pytest.mark.parametrize("name", ["late", "pair_transformer"])
def test_a_temperature_is_given_once(name: str):
    with pytest.raises(RecipeError, match="given twice"):
        rerankers.build(name, temperature=0.5, gamma=0.5)
    with pytest.raises(RecipeError, match="gamma"):
        rerankers.build(name, gamma=-1)


def make_query(name: str) -> Descriptors:
    return Descriptors((name,), np.zeros((1, 2), np.float32), np.zeros(1, np.int32))


def test_scores_are_computed_once_for_the_latest_query():
    asked: list[tuple[str, ...]] = []

    def compute(names):
        asked.append(tuple(names))
        return {name: float(ord(name)) for name in names if name != "z"}

    one, other = make_query("q"), make_query("q")
    with remember_scores():
        assert find_scores("late", one, ("a", "b"), compute) == {"a": 97.0, "b": 98.0}
        assert find_scores("late", one, ("b", "c"), compute) == {"b": 98.0, "c": 99.0}
        assert find_scores("late", one, ("c",), compute) == {"c": 99.0}
        find_scores("ames", one, ("a",), compute)
        find_scores("late", other, ("a",), compute)
        assert find_scores("late", other, ("a", "z"), compute) == {"a": 97.0}
    assert asked == [("a", "b"), ("c",), ("a",), ("a",), ("z",)]
    find_scores("late", other, ("a",), compute)
    find_scores("late", other, ("a",), compute)
    assert asked[5:] == [("a",), ("a",)]  # nothing is remembered outside


def test_the_smallest_temperature_overflows_nothing():
    assert blend(np.zeros(2, np.float32), np.array([-1, 1], np.float32), 0.0, 1e-9) == pytest.approx([0, 1])


def test_the_rest_keeps_its_order_below_the_lowest_blended_score():
    found = rescore(RANKING, {"a": -3.0, "b": -2.0}, "late", balance=0.5)
    assert found.ids == ("b", "a", "c", "d")
    assert np.all(np.diff(found.scores) < 0)
    assert "late" not in found.signals["c"]


def test_the_signal_is_the_local_score_and_not_the_blend():
    assert rescore(RANKING, LOCAL, "late", balance=0.5, temperature=0.2).signals["c"] == {"late": 0.9}


def test_nothing_looked_at_changes_nothing():
    assert rescore(RANKING, {}, "late", balance=0.5) is RANKING


@pytest.mark.parametrize("name", ["late", "layout", "geometry", "expansion", "diffusion"])
def test_no_candidates_are_allowed(name: str):
    assert rerankers.build(name, candidates=0).candidates == 0


@pytest.mark.parametrize("wrong", [{"balance": -0.1}, {"balance": 1.1}, {"temperature": -1}, {"candidates": -1}])
@pytest.mark.parametrize("name", ["late", "layout"])
def test_settings_out_of_range_are_refused(name: str, wrong: dict):
    with pytest.raises(RecipeError, match="out of range"):
        rerankers.build(name, **wrong)
