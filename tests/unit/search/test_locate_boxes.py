from collections.abc import Iterator, Sequence

import numpy as np
import pytest
from support.builders import global_rows, turn_about

from resight.index import Searcher
from resight.search.locate_boxes import (
    BY_TOKENS,
    find_box,
    find_densest,
    find_supported_box,
    find_token_branch,
    heat_image,
    heat_query,
    locate,
    match_tokens,
    spread,
)
from resight.types import Choice, Descriptors, FloatArray, Match, Query, Ranking, TokenMatches

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


# Two query tokens and an image of 2 × 3 patches, 20 pixels wide and 10 high each, whose tokens are unit vectors.
# Query token 0 is 0.8 of patch 1 and 0.6 of patch 2; query token 1 is patch 4 itself.
GRID_SIZE = (60, 20)
GRID = np.array([[x, y, x + 20, y + 10] for y in (0, 10) for x in (0, 20, 40)], np.float32)
HALVES = np.array([[0, 0, 5, 10], [5, 0, 10, 10]], np.float32)


def rows(vectors: object, boxes: FloatArray, seeds: FloatArray | None = None, id: str = "a") -> Descriptors:
    array = np.asarray(vectors, np.float32)
    return Descriptors((id,), array, np.zeros(len(array), np.int32), boxes=boxes, seeds=seeds)


def match() -> TokenMatches:
    query = rows([[0, 0.8, 0.6, 0, 0, 0], [0, 0, 0, 0, 1, 0]], HALVES, id="q")
    found = match_tokens(query, rows(np.eye(6), GRID))
    assert found is not None
    return found


def test_each_query_token_is_paired_with_the_image_token_most_like_it():
    found = match()
    assert (found.query_id, found.image_id) == ("q", "a")
    assert found.pairs.tolist() == [[0, 1], [1, 4]]
    assert found.similarities.tolist() == pytest.approx([0.8, 1])


def test_support_is_what_lies_above_the_usual_token_of_the_image():
    # Similarities 0.9, 0.8, 0.7 and 0.5: the median is 0.75.
    query = rows([[0.9, 0.8, 0.7, 0.5]], HALVES[:1])
    found = match_tokens(query, rows(np.eye(4), GRID[:4]))
    assert found.support.tolist() == pytest.approx([0.15])


def test_a_token_that_likes_all_alike_supports_nothing():
    found = match_tokens(rows([[0.9] * 6], HALVES[:1]), rows(np.eye(6), GRID))
    assert found.support.tolist() == [0]
    assert find_supported_box(found, GRID_SIZE) is None
    assert not heat_image(found, GRID_SIZE).any()


@pytest.mark.parametrize(("queries", "images"), [(0, 2), (2, 0)])
def test_without_tokens_on_a_side_there_are_no_pairs(queries: int, images: int):
    assert match_tokens(rows(np.eye(2)[:queries], HALVES), rows(np.eye(2)[:images], HALVES)) is None


def test_heat_lies_where_the_tokens_are_and_is_1_at_the_best():
    np.testing.assert_allclose(heat_image(match(), GRID_SIZE), [[0, 0.8, 0], [0, 1, 0]], atol=1e-6)
    np.testing.assert_allclose(heat_query(match(), (10, 10)), [[0.8, 1]], atol=1e-6)


def test_a_part_that_two_chose_is_as_hot_as_the_better_of_them_and_has_both_votes():
    query = rows([[1, 0, 0], [0.8, 0, 0], [0, 0, 0.9]], GRID[:3], id="q")
    found = match_tokens(query, rows(np.eye(3), GRID[:3]))
    np.testing.assert_allclose(heat_image(found, (60, 10)), [[1, 0, 0.9]], atol=1e-6)
    # Votes 1.8, 0, 0.9 with the mean 0.9 and the floor 0.315: the middle costs less than the right brings.
    assert find_supported_box(found, (60, 10)) == (0, 0, 60, 10)
    fewer = match_tokens(rows([[1, 0, 0], [0.8, 0, 0]], GRID[:2]), rows(np.eye(3), GRID[:3]))
    assert find_supported_box(fewer, (60, 10)) == (0, 0, 20, 10)


def test_a_token_of_many_patches_is_shown_at_its_seed():
    wide = np.array([[0, 0, 60, 20], [0, 0, 60, 20]], np.float32)
    found = match_tokens(rows([[0, 1]], HALVES[:1]), rows(np.eye(2), wide, seeds=GRID[[0, 5]]))
    assert found.image_boxes.tolist() == wide.tolist()
    assert heat_image(found, GRID_SIZE).tolist() == [[0, 0, 0], [0, 0, 1]]


def test_a_weight_is_shared_by_area_where_patches_and_cells_do_not_agree():
    # Two patches of 20 pixels from 10 to 50 in an image of 60: three cells, the middle one has half of each.
    places = np.array([[10, 0, 30, 10], [30, 0, 50, 10]], np.float32)
    np.testing.assert_allclose(spread(np.array([1, 3], np.float32), places, (60, 10)), [[0.5, 2, 1.5]], atol=1e-6)


def test_the_densest_rectangle_by_hand():
    votes = np.array([[0, 0, 0, 0], [0, 4, 2, 0], [0, 3, 0, 0], [0, 0, 0, 1]], np.float32)
    # Mean 0.625, floor 0.21875: the square of 4, 2, 3 and 0 has 9 − 4 · 0.21875; to take in the 1 as well costs
    # five cells for it.
    assert find_densest(votes, (80, 40)) == (20, 10, 60, 30)


def test_the_densest_rectangle_is_the_best_of_all():
    generator = np.random.default_rng(3)
    for _ in range(20):
        votes = (generator.random((5, 4)) ** 4).astype(np.float32)
        gains = votes - 0.35 * votes.mean()
        best = max(
            (float(gains[y0:y1, x0:x1].sum()), (x0, y0, x1, y1))
            for y0 in range(5)
            for y1 in range(y0 + 1, 6)
            for x0 in range(4)
            for x1 in range(x0 + 1, 5)
        )
        assert find_densest(votes, (4, 5)) == pytest.approx(best[1])


def test_the_token_branch_has_boxes_and_no_key_points():
    plain = Descriptors(("q",), np.ones((1, 2), np.float32), np.zeros(1, np.int32))
    points = Descriptors(("q",), plain.vectors, plain.owners, boxes=HALVES[:1], points=HALVES[:1])
    tokens = rows([[1, 0]], HALVES[:1])
    assert find_token_branch(Query("q", (1, 1), (0, 0, 1, 1), (plain, points, tokens))) == 2
    assert find_token_branch(Query("q", (1, 1), (0, 0, 1, 1), (plain, points))) is None
