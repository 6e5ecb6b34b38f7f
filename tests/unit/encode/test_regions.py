"""Which boxes are cropped, and boxes from saliency maps."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from resight.boxes import iou
from resight.encode.descriptors.regions.grid import grid
from resight.encode.regions import (
    Proposals,
    box_saliency,
    choose_regions,
    join_proposals,
    keep_best,
    make_proposals,
    space_thresholds,
    suppress_overlaps,
    to_pixels,
)

WHOLE = (0, 0, 200, 100)


def draw_map(*parts: tuple[slice, slice, float], size: int = 200) -> np.ndarray:
    values = np.zeros((size, size), np.float32)
    for rows, columns, value in parts:
        values[rows, columns] = value
    return values


def test_each_connected_part_gets_a_box_on_the_original():
    values = draw_map((slice(0, 50), slice(0, 100), 1.0), (slice(100, 200), slice(150, 200), 1.0))
    found = box_saliency(values, WHOLE, (0.5,), 0.01)
    assert sorted(found.boxes.tolist()) == [[0, 0, 100, 25], [150, 50, 200, 100]]


def test_the_score_is_mean_times_share_filled_times_relative_side():
    values = draw_map((slice(0, 100), slice(0, 100), 1.0), (slice(100, 150), slice(150, 200), 0.5))
    found = box_saliency(values, WHOLE, (0.4,), 0.01)
    assert found.boxes.tolist() == [[0, 0, 100, 50], [150, 50, 200, 75]]
    np.testing.assert_allclose(found.scores, [1.0 * 0.5, 0.5 * 0.25], rtol=1e-5)


def test_ragged_parts_score_less():
    frame = draw_map((slice(0, 100), slice(0, 100), 1.0), (slice(10, 90), slice(10, 90), 0.0))
    (score,) = box_saliency(frame, WHOLE, (0.5,), 0.01).scores
    share = (100**2 - 80**2) / 100**2
    assert score == pytest.approx(share * share * 0.5, rel=1e-4)


def test_higher_thresholds_find_parts_inside_parts():
    values = draw_map((slice(0, 160), slice(0, 160), 0.5), (slice(40, 80), slice(40, 80), 1.0))
    found = box_saliency(values, (0, 0, 200, 200), (0.25, 0.75), 0.01)
    assert found.boxes.tolist() == [[0, 0, 160, 160], [40, 40, 80, 80]]


def test_the_same_box_at_many_thresholds_comes_once():
    values = draw_map((slice(20, 80), slice(20, 80), 1.0))
    assert len(box_saliency(values, WHOLE, space_thresholds(9), 0.001).boxes) == 1


def test_small_parts_are_left_out_and_the_best_kept():
    values = draw_map(
        (slice(0, 4), slice(0, 4), 1.0), (slice(50, 100), slice(50, 100), 0.9), (slice(150, 190), slice(0, 40), 0.9)
    )
    assert len(box_saliency(values, WHOLE, (0.5,), 0.003).boxes) == 2
    assert box_saliency(values, WHOLE, (0.5,), 0.003, most=1).boxes.tolist() == [[50, 25, 100, 50]]
    assert len(box_saliency(values, WHOLE, (0.5,), 0).boxes) == 3


def test_only_the_order_and_spacing_of_the_values_matter():
    values = np.random.default_rng(0).random((30, 20)).astype(np.float32)
    one = box_saliency(values, WHOLE, (0.5,), 0)
    two = box_saliency(100 * values - 7, WHOLE, (0.5,), 0)
    np.testing.assert_allclose(one.boxes, two.boxes)
    np.testing.assert_allclose(one.scores, two.scores, atol=1e-4)


@pytest.mark.parametrize("values", [np.zeros((7, 7)), np.full((3, 5), 4.2), np.full((2, 2), np.nan), np.ones((1, 1))])
def test_a_flat_map_gives_nothing(values: np.ndarray):
    found = box_saliency(values, WHOLE, space_thresholds(5), 0)
    assert found.boxes.shape == (0, 4) and found.scores.shape == (0,)


def test_coarse_maps_are_not_snapped_to_their_cells():
    values = np.zeros((7, 7), np.float32)
    values[3, 3] = 1
    low, high = box_saliency(values, (0, 0, 70, 70), (0.1,), 0), box_saliency(values, (0, 0, 70, 70), (0.9,), 0)
    assert low.boxes[0, 0] < 28 < high.boxes[0, 0] < 35


def test_what_is_not_finite_counts_as_nothing():
    values = draw_map((slice(0, 100), slice(0, 100), 1.0))
    values[150, 150] = np.nan
    values[160, 160] = np.inf
    assert box_saliency(values, WHOLE, (0.5,), 0).boxes.tolist() == [[0, 0, 100, 50]]


def test_thresholds_leave_the_ends_out():
    assert space_thresholds(3) == (0.25, 0.5, 0.75)


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
