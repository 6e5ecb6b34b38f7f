"""Which homographies are plausible, and which matches agree with one."""

import numpy as np
import pytest
from support.builders import tilt, turn_about

from resight.search.homography_checks import agree_in_shape, corners, is_plausible, local_similarity, map_points
from resight.search.verification import count_distinct

OUTLINE = (0.0, 0.0, 400.0, 300.0)


def shift(x: float, y: float) -> np.ndarray:
    return np.array([[1, 0, x], [0, 1, y], [0, 0, 1]], dtype=np.float64)


def stretch(x: float, y: float) -> np.ndarray:
    return np.diag([x, y, 1.0])


def test_points_are_divided_by_their_depth():
    transform = np.array([[1, 0, 0], [0, 1, 0], [0.01, 0, 1]])
    assert map_points(transform, np.array([[0, 7], [100, 50]])).tolist() == [[0, 7], [50, 25]]


def test_points_on_the_horizon_come_out_infinite():
    transform = np.array([[1, 0, 0], [0, 1, 0], [-0.01, 0, 1]])
    assert np.isinf(map_points(transform, np.array([[100, 50]]))).all()


def test_the_corners_go_round_clockwise():
    assert corners((1, 2, 5, 9)).tolist() == [[1, 2], [5, 2], [5, 9], [1, 9]]


@pytest.mark.parametrize(
    "transform",
    [
        np.eye(3),
        -np.eye(3),
        1e6 * np.eye(3),
        shift(-1000, 2000),
        stretch(0.1, 0.1),
        stretch(10, 10),
        stretch(1, 0.3),
        tilt(),
        np.array([[1, 0, 0], [0, 1, 0], [0.005, 0, 1]]),
    ],
    ids=[
        "identity",
        "negative",
        "huge factor",
        "shift",
        "small",
        "large",
        "squeezed",
        "tilt",
        "near side 3 times as large",
    ],
)
def test_what_a_camera_can_see_is_believed(transform: np.ndarray):
    assert is_plausible(transform, OUTLINE)


@pytest.mark.parametrize("degrees", range(0, 360, 30))
def test_every_rotation_is_believed(degrees: int):
    assert is_plausible(turn_about(200, 150, degrees, scale=0.7), OUTLINE)


@pytest.mark.parametrize(
    "transform",
    [
        shift(400, 0) @ stretch(-1, 1),
        shift(0, 300) @ stretch(1, -1),
        np.array([[0, 1, 0], [1, 0, 0], [0, 0, 1.0]]),
        stretch(0.01, 0.01),
        np.zeros((3, 3)),
        np.array([[1, 2, 0], [2, 4, 0], [0, 0, 1.0]]),
        stretch(1, 0.05),
        stretch(25, 25),
        np.array([[1, 0, 0], [0, 1, 0], [-0.005, 0, 1]]),
        np.array([[1, 0, 0], [0, 1, 0], [0.02, 0, 1]]),
        np.full((3, 3), np.nan),
    ],
    ids=[
        "mirrored left to right",
        "mirrored top to bottom",
        "transposed",
        "collapsed to a spot",
        "zero",
        "collapsed to a line",
        "needle",
        "enlarged 25 times",
        "crosses the horizon",
        "near side 9 times as large",
        "not a number",
    ],
)
def test_what_no_camera_sees_is_refused(transform: np.ndarray):
    assert not is_plausible(transform, OUTLINE)


def test_the_outline_decides_and_not_the_whole_image():
    # The horizon is at column 200: a box left of it is seen, one across it is not.
    transform = np.array([[1, 0, 0], [0, 1, 0], [-0.005, 0, 1]])
    assert is_plausible(transform, (0, 0, 100, 100))
    assert not is_plausible(transform, (150, 0, 250, 100))


def test_a_similarity_has_its_scale_and_turn_everywhere():
    scale, turn = local_similarity(turn_about(10, 20, 30, scale=1.5), np.array([[0, 0], [300, 100]]))
    np.testing.assert_allclose(scale, [1.5, 1.5])
    np.testing.assert_allclose(turn, [30, 30])


def test_the_scale_of_a_perspective_is_the_root_of_how_a_small_area_grows():
    transform, point, step = tilt(2e-3, 1e-3), np.array([120.0, 80.0]), 1e-3
    patch = map_points(transform, point + step * np.array([[0, 0], [1, 0], [0, 1]]))
    (ax, ay), (bx, by) = (patch[1] - patch[0]) / step, (patch[2] - patch[0]) / step
    scale, turn = local_similarity(transform, point[None])
    assert scale[0] == pytest.approx(np.sqrt(abs(ax * by - ay * bx)), rel=1e-4)
    assert turn[0] == pytest.approx(np.degrees(np.arctan2(ay - bx, ax + by)), abs=1e-3)


def agree(transform: np.ndarray, query: tuple, image: tuple) -> bool:
    (answer,) = agree_in_shape(transform, np.array([query], np.float32), np.array([image], np.float32))
    return bool(answer)


@pytest.mark.parametrize(
    ("size", "angle", "expected"),
    [
        (15, 50, True),
        (29, 50, True),
        (31, 50, False),
        (7.6, 50, True),
        (7.4, 50, False),
        (15, 84, True),
        (15, 86, False),
        (15, 16, True),
        (15, 14, False),
        (15, 230, False),
    ],
)
def test_size_and_angle_must_follow_a_turn_of_30_degrees_and_a_scale_of_one_and_a_half(
    size: float, angle: float, expected: bool
):
    assert agree(turn_about(0, 0, 30, scale=1.5), (40, 50, 10, 20), (0, 0, size, angle)) is expected


@pytest.mark.parametrize(
    ("query", "image", "turn", "expected"),
    [(350, 10, 20, True), (10, 350, -20, True), (0, 180, 180, True), (0, 180, -180, True), (350, 10, -20, False)],
)
def test_angles_are_compared_on_the_circle(query: float, image: float, turn: float, expected: bool):
    assert agree(turn_about(0, 0, turn), (5, 5, 10, query), (0, 0, 10, image)) is expected


def test_a_point_without_size_agrees_with_nothing():
    assert not agree(np.eye(3), (5, 5, 0, 0), (5, 5, 10, 0))
    assert not agree(np.eye(3), (5, 5, 10, 0), (5, 5, 0, 0))


def test_ten_matches_on_one_spot_count_once():
    assert count_distinct(np.tile(np.array([[30, 30, 60, 60]], np.float32), (10, 1))) == 1


def test_many_points_that_all_go_to_one_spot_count_once():
    points = np.array([[10 * number, 0, 60, 60] for number in range(5)], np.float32)
    assert count_distinct(points) == 1
    assert count_distinct(points[:, [2, 3, 0, 1]]) == 1


def test_matches_that_lie_apart_count_each():
    assert count_distinct(np.array([[10 * n, 5 * n, 7 * n, 0] for n in range(6)], np.float32)) == 6


def test_no_matches_count_nothing():
    assert count_distinct(np.zeros((0, 4), np.float32)) == 0
