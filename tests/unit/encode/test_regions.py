import numpy as np
import pytest

from resight.encode.regions import box_saliency, space_thresholds

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
