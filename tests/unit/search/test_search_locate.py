import numpy as np
import pytest
from builders import turn_about

from resight.search.locate import find_box, locate
from resight.types import Match, Query, Ranking

SIZE = (200, 100)


def make_match(transform: object, model: str = "homography", points: object = ((0, 0, 0, 0),)) -> Match:
    return Match("q", "x", 1, np.array(transform, np.float64), np.array(points, np.float32), model)


def shift(x: float, y: float) -> list[list[float]]:
    return [[1, 0, x], [0, 1, y], [0, 0, 1]]


def test_the_identity_gives_the_outline_itself():
    assert find_box(make_match(np.eye(3)), (10, 20, 60, 70), SIZE) == (10, 20, 60, 70)


def test_the_box_is_clipped_to_the_image():
    assert find_box(make_match(shift(-30, 50)), (10, 20, 60, 70), SIZE) == (0, 70, 30, 100)


@pytest.mark.parametrize("transform", [shift(-100, 0), shift(300, 0), shift(0, 80), shift(0, -70)])
def test_what_lies_outside_the_image_has_no_box(transform: list):
    assert find_box(make_match(transform), (10, 20, 60, 70), SIZE) is None


def test_a_turned_outline_gives_the_box_around_it():
    box = find_box(make_match(turn_about(50, 50, 45)), (40, 40, 60, 60), SIZE)
    assert box == pytest.approx((50 - 200**0.5, 50 - 200**0.5, 50 + 200**0.5, 50 + 200**0.5))
    assert all(type(side) is float for side in box or ())


def test_perspective_is_divided_out():
    assert find_box(make_match([[1, 0, 0], [0, 1, 0], [0.01, 0, 1]]), (0, 0, 100, 50), SIZE) == (0, 0, 50, 50)


def test_with_a_fundamental_matrix_the_box_is_around_the_matched_points():
    match = make_match(np.zeros((3, 3)), "fundamental", [(0, 0, 30, 40), (5, 5, 90, 20), (9, 9, 50, 130)])
    assert find_box(match, (0, 0, 10, 10), SIZE) == (30, 20, 90, 100)


def test_images_with_a_match_get_a_box_and_the_others_keep_theirs():
    query = Query("q", (50, 50), (0, 0, 50, 50), ())
    ranking = Ranking(
        "q",
        ("a", "b", "c", "d"),
        np.arange(4, 0, -1, dtype=np.float32),
        boxes={"a": (1, 1, 2, 2), "b": (3, 3, 4, 4)},
        matches={"a": make_match(shift(5, 5)), "c": make_match(shift(500, 0)), "d": make_match(np.eye(3))},
    )
    located = locate(query, ranking, {"a": SIZE, "b": SIZE, "c": SIZE})
    assert located.boxes == {"a": (5, 5, 55, 55), "b": (3, 3, 4, 4)}
    assert located.ids == ranking.ids
    assert ranking.boxes["a"] == (1, 1, 2, 2)
