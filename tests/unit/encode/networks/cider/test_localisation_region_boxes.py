import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from resight.boxes import iou
from resight.encode.descriptors.regions import grid
from resight.encode.regions import (
    Proposals,
    choose_regions,
    join_proposals,
    keep_best,
    make_proposals,
    suppress_overlaps,
    to_pixels,
)

SIZE = (100, 80)


def choose(boxes: list[tuple[float, ...]], scores: list[float] | None = None, **settings: float) -> list[list[float]]:
    found = make_proposals(boxes, [1.0] * len(boxes) if scores is None else scores)
    return choose_regions(found, SIZE, **settings).tolist()  # type: ignore[arg-type]


def test_overlap_is_the_shared_area_over_the_joint_area():
    boxes = np.array([[0, 0, 10, 10], [5, 0, 15, 10], [20, 20, 30, 30], [3, 3, 3, 9]], np.float32)
    expected = [[1, 50 / 150, 0, 0], [50 / 150, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 0]]
    np.testing.assert_allclose(iou(boxes[:, None], boxes), expected, atol=1e-6)


def test_boxes_are_clipped_to_the_image():
    assert choose([(-20, 10, 50, 200)]) == [[0, 10, 50, 80]]


@pytest.mark.parametrize(
    "box",
    [
        (200, 0, 300, 50),
        (0, -50, 50, -1),
        (50, 10, 20, 40),
        (10, 10, 10, 10),
        (10, 10, 17.9, 60),
        (float("nan"), 0, 50, 50),
        (20, 20, float("inf"), float("inf")),
    ],
    ids=["right of it", "above it", "inside out", "a point", "too thin", "not a number", "without end"],
)
def test_useless_boxes_are_dropped(box: tuple[float, ...]):
    assert choose([box, (10, 10, 40, 40)]) == [[10, 10, 40, 40]]
    assert choose([box]) == [[0, 0, 100, 80]]


def test_no_proposal_means_the_whole_image():
    assert choose([]) == [[0, 0, 100, 80]]
    assert choose_regions(make_proposals([], []), (1, 1)).tolist() == [[0, 0, 1, 1]]


def test_of_near_duplicates_the_better_scored_stays():
    twins = [(0, 0, 50, 50), (0, 0, 50, 51), (50, 0, 100, 50)]
    assert choose(twins, [0.2, 0.9, 0.5]) == [[0, 0, 50, 51], [50, 0, 100, 50]]
    assert choose(twins, [0.9, 0.2, 0.5]) == [[0, 0, 50, 50], [50, 0, 100, 50]]
    assert choose(twins, [0.5, 0.5, 0.5]) == [[0, 0, 50, 50], [50, 0, 100, 50]]
    assert len(choose(twins, overlap=0.99)) == 3


def test_boxes_that_are_twins_only_inside_the_image_are_merged():
    assert choose([(0, 0, 100, 80), (-500, -500, 500, 500)]) == [[0, 0, 100, 80]]


def test_the_best_are_kept_in_the_order_of_the_proposals():
    boxes = [(0, 0, 20, 20), (20, 0, 40, 20), (40, 0, 60, 20), (60, 0, 80, 20)]
    assert choose(boxes, [0.1, 0.9, float("nan"), 0.8], most=2) == [list(boxes[1]), list(boxes[3])]
    assert choose(boxes, most=3) == [list(box) for box in boxes[:3]]


def test_the_smallest_side_is_a_setting():
    assert choose([(0, 0, 4, 4)], smallest=2) == [[0, 0, 4, 4]]
    assert choose([(0, 0, 8, 8)]) == [[0, 0, 8, 8]]


@pytest.mark.parametrize("level", [0, 1, 2, 3, 8])
def test_grids_come_out_as_they_are(level: int):
    boxes = grid(640, 480, level)
    assert np.array_equal(choose_regions(Proposals(boxes, np.ones(len(boxes), np.float32)), (640, 480)), boxes)


@given(
    st.lists(st.tuples(*[st.floats(-300, 300, width=32)] * 4), max_size=12),
    st.integers(1, 200),
    st.integers(1, 200),
    st.integers(1, 5),
)
def test_whatever_is_proposed_something_inside_the_image_comes_out(
    boxes: list[tuple[float, ...]], width: int, height: int, most: int
):
    chosen = choose_regions(make_proposals(boxes, [1.0] * len(boxes)), (width, height), most)
    assert 1 <= len(chosen) <= most and chosen.dtype == np.float32
    assert (chosen[:, :2] >= 0).all() and (chosen[:, 2:] <= [width, height]).all()
    assert (chosen[:, 2:] > chosen[:, :2]).all()
    overlaps = iou(chosen[:, None], chosen)
    assert (overlaps[~np.eye(len(chosen), dtype=bool)] <= 0.9 + 1e-6).all()


def test_a_source_keeps_its_best_and_the_arguments_as_they_were():
    given_boxes = make_proposals([(0, 0, 9, 9), (0, 0, 9, 9), (5, 5, 9, 9)], [1, 2, 3])
    kept = keep_best(given_boxes, 5)
    assert kept.boxes.tolist() == [[0, 0, 9, 9], [5, 5, 9, 9]] and kept.scores.tolist() == [2, 3]
    assert given_boxes.scores.tolist() == [1, 2, 3]
    assert suppress_overlaps(given_boxes.boxes, given_boxes.scores, 1, 0.9).tolist() == [2]


def test_a_source_never_proposes_what_is_not_finite():
    wild = make_proposals([(0, 0, 9, 9), (0, 0, np.inf, 9), (np.nan, 0, 1, 1), (1, 1, 4, 4)], [1, 2, 3, np.nan])
    assert keep_best(wild, None).boxes.tolist() == [[0, 0, 9, 9]]


def test_shares_are_placed_on_the_part_of_the_image_that_they_speak_of():
    assert to_pixels(np.float32([[0, 0.5, 1, 1]]), "corners", (10, 20, 30, 40)).tolist() == [[10, 30, 30, 40]]
    assert to_pixels(np.float32([[0.5, 0.5, 0.5, 1]]), "centre", (0, 0, 8, 4)).tolist() == [[2, 0, 6, 4]]
    assert to_pixels(np.zeros((0, 4), np.float32), "centre", (0, 0, 8, 4)).shape == (0, 4)


def test_proposals_of_several_sources_follow_each_other():
    both = join_proposals(
        [make_proposals([(0, 0, 1, 1)], [1]), make_proposals([], []), make_proposals([(0, 0, 2, 2)], [3])]
    )
    assert both.boxes.tolist() == [[0, 0, 1, 1], [0, 0, 2, 2]] and both.scores.tolist() == [1, 3]
