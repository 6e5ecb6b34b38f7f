"""Two query tokens and an image of 2 × 3 patches, 20 pixels wide and 10 high each, whose tokens are unit vectors.

Query token 0 is 0.8 of patch 1 and 0.6 of patch 2; query token 1 is patch 4 itself.
"""

import numpy as np
import pytest

from resight.search.locate_boxes import (
    find_densest,
    find_supported_box,
    find_token_branch,
    heat_image,
    heat_query,
    match_tokens,
    spread,
)
from resight.types import Descriptors, FloatArray, Query, TokenMatches

SIZE = (60, 20)
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
    assert find_supported_box(found, SIZE) is None
    assert not heat_image(found, SIZE).any()


@pytest.mark.parametrize(("queries", "images"), [(0, 2), (2, 0)])
def test_without_tokens_on_a_side_there_are_no_pairs(queries: int, images: int):
    assert match_tokens(rows(np.eye(2)[:queries], HALVES), rows(np.eye(2)[:images], HALVES)) is None


def test_heat_lies_where_the_tokens_are_and_is_1_at_the_best():
    np.testing.assert_allclose(heat_image(match(), SIZE), [[0, 0.8, 0], [0, 1, 0]], atol=1e-6)
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
    assert heat_image(found, SIZE).tolist() == [[0, 0, 0], [0, 0, 1]]


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
