import numpy as np
import pytest

from resight.errors import RecipeError
from resight.search import rerankers
from resight.search.rescoring import blend, rescore
from resight.types import Ranking

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
