from collections.abc import Iterator, Sequence

import numpy as np
import pytest
from support.builders import global_rows, turn_about

from resight.index import Searcher
from resight.search.locate_boxes import BY_TOKENS, find_box, locate
from resight.types import Choice, Descriptors, Match, Query, Ranking

SIZE = (200, 100)
EYE = np.eye(3, dtype=np.float32)
# Two columns of one row over an image of 200 × 100, and a third token that nothing is like.
PLACES = np.array([[0, 0, 100, 100], [100, 0, 200, 100], [0, 0, 100, 100]], np.float32)


class FakeGallery:
    """The same three tokens for every image; notes which were read."""

    def __init__(self) -> None:
        self.read: list[str] = []

    def descriptors(self, branch: int, ids: Sequence[str]) -> Iterator[Descriptors]:
        assert branch == 1
        self.read += ids
        for half in (ids[: len(ids) // 2], ids[len(ids) // 2 :]):
            owners = np.repeat(np.arange(len(half), dtype=np.int32), 3)
            count = len(half)
            yield Descriptors(tuple(half), np.tile(EYE, (count, 1)), owners, boxes=np.tile(PLACES, (count, 1)))

    def searcher(self, branch: int, choice: Choice) -> Searcher:  # noqa: ARG002 - as every gallery
        raise AssertionError("an index is not needed to locate")

    def sizes(self, ids: Sequence[str]) -> dict[str, tuple[int, int]]:
        return dict.fromkeys(ids, SIZE)


NO_TOKENS = FakeGallery()  # reading from it would be an error: the query has no branch 1


def make_match(transform: object, model: str = "homography", points: object = ((0, 0, 0, 0),)) -> Match:
    return Match("q", "x", 1, np.array(transform, np.float64), np.array(points, np.float32), model)


def shift(x: float, y: float) -> list[list[float]]:
    return [[1, 0, x], [0, 1, y], [0, 0, 1]]


def test_the_identity_gives_the_outline_itself():
    assert find_box(make_match(np.eye(3)), (10, 20, 60, 70), SIZE) == (10, 20, 60, 70)


def test_the_last_bits_of_a_fit_do_not_show():
    shaken = np.eye(3) + np.random.default_rng(0).normal(scale=1e-15, size=(3, 3))
    assert find_box(make_match(shaken), (10, 20, 60, 70), SIZE) == (10, 20, 60, 70)


def test_the_box_is_clipped_to_the_image():
    assert find_box(make_match(shift(-30, 50)), (10, 20, 60, 70), SIZE) == (0, 70, 30, 100)


@pytest.mark.parametrize("transform", [shift(-100, 0), shift(300, 0), shift(0, 80), shift(0, -70)])
def test_what_lies_outside_the_image_has_no_box(transform: list):
    assert find_box(make_match(transform), (10, 20, 60, 70), SIZE) is None


def test_a_turned_outline_gives_the_box_around_it():
    box = find_box(make_match(turn_about(50, 50, 45)), (40, 40, 60, 60), SIZE)
    assert box == pytest.approx((50 - 200**0.5, 50 - 200**0.5, 50 + 200**0.5, 50 + 200**0.5), abs=1e-3)
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
    located = locate(query, ranking, NO_TOKENS)
    assert located.boxes == {"a": (5, 5, 55, 55), "b": (3, 3, 4, 4), "d": (0, 0, 50, 50)}
    assert located.ids == ranking.ids
    assert ranking.boxes["a"] == (1, 1, 2, 2)


def ask_tokens(ranking: Ranking, gallery: FakeGallery) -> Ranking:
    """A query whose second branch has one token, which is that of the right half of every image."""
    tokens = Descriptors(("q",), EYE[1:2], np.zeros(1, np.int32), boxes=np.array([[0, 0, 50, 50]], np.float32))
    query = Query("q", (50, 50), (0, 0, 50, 50), (global_rows("q", [[1]]), tokens))
    return locate(query, ranking, gallery)


def test_without_a_match_the_box_is_the_area_that_the_tokens_support_best():
    gallery = FakeGallery()
    ranking = Ranking(
        "q",
        ("a", "b", "c"),
        np.arange(3, 0, -1, dtype=np.float32),
        boxes={"c": (1, 1, 2, 2)},
        matches={"a": make_match(shift(5, 5))},
    )
    boxes = ask_tokens(ranking, gallery).boxes
    assert boxes == {"a": (5, 5, 55, 55), "b": (100, 0, 200, 100), "c": (1, 1, 2, 2)}
    assert gallery.read == ["b"]


def test_a_match_that_leads_out_of_the_image_leaves_the_box_to_the_tokens():
    ranking = Ranking("q", ("a",), np.ones(1, np.float32), matches={"a": make_match(shift(500, 0))})
    assert ask_tokens(ranking, FakeGallery()).boxes == {"a": (100, 0, 200, 100)}


def test_tokens_are_read_for_the_first_answers_only():
    gallery = FakeGallery()
    ids = tuple(f"{number:03}" for number in range(BY_TOKENS + 5))
    boxes = ask_tokens(Ranking("q", ids, np.ones(len(ids), np.float32)), gallery).boxes
    assert tuple(gallery.read) == tuple(boxes) == ids[:BY_TOKENS]
