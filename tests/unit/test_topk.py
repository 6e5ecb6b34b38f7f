import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from resight.topk import best


def rank(scores: dict[str, float], k: int) -> list[str]:
    return list(best("q", list(scores), np.array(list(scores.values()), np.float32), k).ids)


def test_higher_scores_come_first():
    ranking = best("q", ["a", "b", "c"], np.array([0.25, 0.75, 0.5], np.float32), 3)
    assert ranking.query_id == "q"
    assert ranking.ids == ("b", "c", "a")
    assert ranking.scores.tolist() == [0.75, 0.5, 0.25]
    assert ranking.scores.dtype == np.float32


def test_equal_scores_come_in_the_order_of_their_ids():
    assert rank({"d": 1, "b": 1, "c": 2, "a": 1}, 4) == ["c", "a", "b", "d"]


def test_a_tie_at_the_cut_is_decided_by_the_id_and_not_by_the_position():
    assert rank({"d": 1, "b": 1, "c": 2, "a": 1}, 2) == ["c", "a"]


def test_a_k_beyond_the_collection_gives_all_of_it():
    assert rank({"a": 1, "b": 2}, 10) == ["b", "a"]


def test_a_k_of_zero_gives_nothing():
    ranking = best("q", ["a"], np.ones(1, np.float32), 0)
    assert ranking.ids == ()
    assert ranking.scores.shape == (0,)


def test_no_scores_give_nothing():
    assert best("q", [], np.zeros(0, np.float32), 5).ids == ()


def test_rows_say_whose_score_it_is():
    ranking = best("q", ["a", "b", "c"], np.array([1, 2], np.float32), 2, np.array([2, 0]))
    assert ranking.ids == ("a", "c")
    assert ranking.scores.tolist() == [2, 1]


def test_the_scores_that_were_given_stay_as_they_were():
    scores = np.array([1, 3, 2], np.float32)
    best("q", ["a", "b", "c"], scores, 2)
    assert scores.tolist() == [1, 3, 2]


@given(st.dictionaries(st.text(max_size=3), st.integers(-2, 2), max_size=12), st.integers(0, 15))
def test_it_is_the_head_of_the_full_sort(scores: dict[str, int], k: int):
    expected = sorted(scores, key=lambda name: (-scores[name], name))[:k]
    assert rank({name: float(score) for name, score in scores.items()}, k) == expected
