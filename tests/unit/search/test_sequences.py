import numpy as np
import pytest

from resight.errors import InputError, RecipeError
from resight.search.sequences import Config, follow, match_sequences, order_scores, shift, standardise
from resight.types import FloatArray, Ranking

ORDER = tuple(f"{number:03}" for number in range(60))


def rank(scores: FloatArray, depth: int = len(ORDER)) -> Ranking:
    best = np.argsort(-scores, kind="stable")[:depth]
    return Ranking("q", tuple(ORDER[row] for row in best), scores[best].astype(np.float32))


def film(speed: float, noise: float, frames: int = 30, start: int = 5) -> tuple[list[FloatArray], list[int]]:
    """Scores of frames that go along the order, each a little above noise; and where each was taken."""
    rng = np.random.default_rng(0)
    places = [round(start + speed * number) for number in range(frames)]
    rows = [rng.normal(0, noise, len(ORDER)).astype(np.float32) for _ in places]
    for row, place in zip(rows, places, strict=True):
        row[place] += 1
    return rows, places


def count_right(rows: list[FloatArray], places: list[int], window: int, depth: int = len(ORDER)) -> int:
    config = Config(window=window, slowest=0.5, fastest=2.0, speeds=7)
    found = match_sequences((rank(row, depth) for row in rows), ORDER, config)
    return sum(ranking.ids[0] == ORDER[place] for ranking, place in zip(found, places, strict=True))


@pytest.mark.parametrize("speed", [0.75, 1.0, 1.5])
def test_a_sequence_is_found_where_single_frames_are_lost(speed):
    rows, places = film(speed, noise=0.6)
    single, long = count_right(rows, places, 1), count_right(rows, places, 12)
    assert single < 20
    assert long >= single + 6


def test_candidates_alone_are_enough():
    rows, places = film(1.0, noise=0.6)
    assert count_right(rows, places, 12, depth=15) > count_right(rows, places, 1, depth=15)


def test_the_best_line_by_hand():
    # Two frames: the older has its peak at place 1, the newer at 2 and, higher, at 4. A speed of 1 joins 1 and 2:
    # (2 + 1) / 2; place 4 has (1.5 + 0) / 2. Nothing lies before place 0.
    older, newer = np.array([0, 2, 0, 0, 0], np.float32), np.array([0.5, 0, 1, 0, 1.5], np.float32)
    assert follow([older, newer], [1.0]).tolist() == [0.25, 0, 1.5, 0, 0.75]
    # At speed 2 the older peak meets place 3.
    assert follow([older, newer], [1.0, 2.0]).tolist() == [0.25, 0, 1.5, 1, 0.75]


def test_the_first_frame_stands_for_itself():
    rows, _ = film(1.0, noise=0.1)
    (found,) = match_sequences([rank(rows[0])], ORDER)
    assert found.ids[0] == ORDER[5]
    assert len(found.ids) == len(ORDER)
    assert found.query_id == "q"


def test_scores_are_counted_in_spreads_above_their_mean():
    # Mean 1, spread √((1 + 4 + 1) / 3).
    assert standardise(np.array([0, 3, 0], np.float32)) == pytest.approx(np.array([-1, 2, -1]) / np.sqrt(2))
    assert standardise(np.array([0.3, 0.3], np.float32)).tolist() == [0, 0]


def test_an_image_that_was_not_found_has_the_lowest_score():
    ranking = Ranking("q", ("b", "x"), np.array([0.9, 0.4], np.float32))
    assert order_scores(ranking, {"a": 0, "b": 1, "x": 2}) == pytest.approx([0.4, 0.9, 0.4])
    assert order_scores(Ranking("q", (), np.zeros(0, np.float32)), {"a": 0}).tolist() == [0]


def test_shifting_brings_in_nothing():
    row = np.array([1, 2, 3], np.float32)
    assert [shift(row, places).tolist() for places in (1, -1, 0, 3, -5)] == [
        [0, 1, 2],
        [2, 3, 0],
        [1, 2, 3],
        [0, 0, 0],
        [0, 0, 0],
    ]


@pytest.mark.parametrize("order", [(), ("a", "a")])
def test_an_order_that_is_none_is_refused(order):
    with pytest.raises(InputError, match="not the order"):
        list(match_sequences([], order))


@pytest.mark.parametrize("wrong", [{"window": 0}, {"slowest": 2.0, "fastest": 1.0}, {"speeds": 0}])
def test_settings_that_mean_nothing_are_refused(wrong):
    with pytest.raises(RecipeError):
        Config(**wrong)
