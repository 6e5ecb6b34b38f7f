import numpy as np
import pytest
from support.builders import detect, draw_texture, tilt, turn_about, warp

from resight.search.verification import (
    LocalFeatures,
    Settings,
    agree_in_shape,
    corners,
    count_distinct,
    is_plausible,
    local_similarity,
    map_points,
    match,
    verify,
)
from resight.types import Box

OUTLINE: Box = (0.0, 0.0, 320.0, 240.0)
HOMOGRAPHY, FUNDAMENTAL = Settings(), Settings(model="fundamental")


def make_local(points: np.ndarray, id: str) -> LocalFeatures:
    """Key points of size 10 and angle 0; the n-th of one image matches the n-th of another and no other."""
    shaped = np.column_stack([points, np.full(len(points), 10), np.zeros(len(points))])
    return LocalFeatures(id, np.eye(64, dtype=np.float32)[: len(points)], shaped.astype(np.float32))


def spread(rng: np.random.Generator, count: int) -> np.ndarray:
    return rng.uniform((0, 0), OUTLINE[2:], (count, 2))


def corner_errors(found: np.ndarray, true: np.ndarray) -> np.ndarray:
    return np.linalg.norm(map_points(found, corners(OUTLINE)) - map_points(true, corners(OUTLINE)), axis=1)


@pytest.mark.parametrize(
    "transform",
    [np.eye(3), turn_about(160, 120, 25, 0.9), turn_about(160, 120, 180), turn_about(160, 120, -80, 0.7), tilt()],
    ids=["the same", "turned", "upside down", "on its side and smaller", "tilted"],
)
def test_the_transform_between_two_views_is_recovered_to_two_pixels_at_the_corners(transform: np.ndarray):
    pixels = draw_texture(np.random.default_rng(1))
    match = verify(detect(pixels, "q"), detect(warp(pixels, transform), "x"), OUTLINE, HOMOGRAPHY)
    assert match is not None
    assert (match.query_id, match.image_id, match.model) == ("q", "x", "homography")
    assert corner_errors(match.transform, transform).max() < 2
    assert 50 <= match.inliers <= len(match.points) <= match.tentative


def test_the_matched_points_lie_where_the_transform_says():
    pixels, transform = draw_texture(np.random.default_rng(2)), tilt()
    match = verify(detect(pixels), detect(warp(pixels, transform)), OUTLINE, HOMOGRAPHY)
    assert match is not None
    errors = np.linalg.norm(map_points(transform, match.points[:, :2]) - match.points[:, 2:], axis=1)
    assert np.median(errors) < 1
    assert errors.max() < 2 * HOMOGRAPHY.tolerance


def test_a_part_is_found_in_a_larger_scene():
    rng = np.random.default_rng(3)
    part, scene = draw_texture(rng, 160, 120), draw_texture(rng, 480, 360)
    scene[200:320, 250:410] = part
    match = verify(detect(part), detect(scene), (0, 0, 160, 120), HOMOGRAPHY)
    assert match is not None
    np.testing.assert_allclose(match.transform, [[1, 0, 250], [0, 1, 200], [0, 0, 1]], atol=1)


@pytest.mark.parametrize("settings", [HOMOGRAPHY, FUNDAMENTAL], ids=["homography", "fundamental"])
@pytest.mark.parametrize("seed", range(4))
def test_two_unrelated_textures_do_not_match(seed: int, settings: Settings):
    rng = np.random.default_rng(100 + seed)
    assert verify(detect(draw_texture(rng)), detect(draw_texture(rng)), OUTLINE, settings) is None


def test_the_model_is_found_among_as_many_wrong_matches():
    rng = np.random.default_rng(4)
    points, transform = spread(rng, 50), np.array([[1.1, 0, 5], [0, 1.1, -3], [0, 0, 1]])
    moved = map_points(transform, points)
    moved[25:] = spread(rng, 25)
    match = verify(make_local(points, "q"), make_local(moved, "x"), OUTLINE, HOMOGRAPHY)
    assert match is not None
    assert match.tentative == 50
    assert 25 <= match.inliers <= 28
    assert corner_errors(match.transform, transform).max() < 2


def test_matches_whose_key_points_turn_the_wrong_way_do_not_count():
    points = spread(np.random.default_rng(5), 20)
    query, image = make_local(points, "q"), make_local(points, "x")
    image.points[12:, 3] = 90
    match = verify(query, image, OUTLINE, HOMOGRAPHY)
    assert match is not None
    assert match.inliers == len(match.points) == 12
    image.points[:, 3] = 90
    assert verify(query, image, OUTLINE, HOMOGRAPHY) is None


def test_a_mirrored_image_is_refused():
    points = spread(np.random.default_rng(6), 30)
    assert verify(make_local(points, "q"), make_local((320, 0) + points * (-1, 1), "x"), OUTLINE, HOMOGRAPHY) is None


@pytest.mark.parametrize(("count", "settings"), [(4, HOMOGRAPHY), (8, FUNDAMENTAL), (0, HOMOGRAPHY), (1, FUNDAMENTAL)])
def test_too_few_points_are_no_match(count: int, settings: Settings):
    local = make_local(spread(np.random.default_rng(7), count), "a")
    assert verify(local, local, OUTLINE, settings) is None


def test_one_point_more_than_the_model_needs_is_enough():
    local = make_local(np.array([[0, 0], [300, 10], [290, 220], [20, 230], [150, 100]]), "a")
    match = verify(local, local, OUTLINE, HOMOGRAPHY)
    assert match is not None and match.inliers == 5


@pytest.mark.parametrize("settings", [HOMOGRAPHY, FUNDAMENTAL], ids=["homography", "fundamental"])
def test_many_matches_on_one_spot_are_no_match(settings: Settings):
    local = make_local(np.full((40, 2), 77.0) + np.random.default_rng(8).uniform(0, 0.5, (40, 2)), "a")
    assert verify(local, local, OUTLINE, settings) is None


@pytest.mark.parametrize("seed", range(5))
def test_points_along_one_line_determine_nothing(seed: int):
    rng = np.random.default_rng(seed)
    columns = rng.uniform(0, 300, 30)
    points = np.stack([columns, 0.6 * columns + 5], axis=1)
    moved = points + rng.normal(size=points.shape)
    assert verify(make_local(points, "q"), make_local(moved, "x"), OUTLINE, HOMOGRAPHY) is None


def test_the_same_pair_gives_the_same_answer_again():
    pixels = draw_texture(np.random.default_rng(9))
    query, image = detect(pixels), detect(warp(pixels, tilt()))
    first, second = (verify(query, image, OUTLINE, HOMOGRAPHY) for _ in range(2))
    assert first is not None and second is not None
    assert np.array_equal(first.transform, second.transform)
    assert np.array_equal(first.points, second.points)


def shift_two_planes(pixels: np.ndarray, near: int, far: int) -> np.ndarray:
    """The scene after a step to the side: the left half is near and moves more than the right half."""
    middle = pixels.shape[1] // 2
    moved = np.full_like(pixels, 128)
    moved[:, middle + far :] = pixels[:, middle : pixels.shape[1] - far]
    moved[:, near:middle] = pixels[:, : middle - near]
    return moved


def test_the_fundamental_matrix_explains_two_planes_where_a_homography_explains_one():
    pixels = draw_texture(np.random.default_rng(10), 400, 300)
    query, image = detect(pixels), detect(shift_two_planes(pixels, near=50, far=10))
    outline = (0.0, 0.0, 400.0, 300.0)
    whole, plane = verify(query, image, outline, FUNDAMENTAL), verify(query, image, outline, HOMOGRAPHY)
    assert whole is not None and plane is not None
    assert whole.model == "fundamental"
    moved = whole.points[:, 2] - whole.points[:, 0]
    assert (np.abs(moved - 50) < 2).sum() > 50
    assert (np.abs(moved - 10) < 2).sum() > 50
    assert plane.inliers < 0.8 * whole.inliers


def test_matched_points_lie_on_their_epipolar_lines():
    pixels = draw_texture(np.random.default_rng(11), 400, 300)
    match = verify(detect(pixels), detect(shift_two_planes(pixels, 50, 10)), (0, 0, 400, 300), FUNDAMENTAL)
    assert match is not None
    ones = np.ones((len(match.points), 1))
    lines = np.column_stack([match.points[:, :2], ones]) @ match.transform.T
    distances = np.abs((np.column_stack([match.points[:, 2:], ones]) * lines).sum(axis=1))
    distances /= np.linalg.norm(lines[:, :2], axis=1)
    assert distances.max() < 2 * FUNDAMENTAL.tolerance


def test_turns_are_averaged_on_the_circle():
    rng, odd = np.random.default_rng(0), np.arange(20) % 2
    places = rng.uniform(0, 300, (20, 2))

    def features(name, points, angles):
        table = np.column_stack([points, np.full(20, 10), angles]).astype(np.float32)
        return LocalFeatures(name, np.eye(20, dtype=np.float32), table)

    moved = (320, 240) - places - np.column_stack([np.where(odd, 10, 50), 0 * odd])  # upside down, two depths
    query = features("q", places, np.zeros(20))
    found = verify(
        query, features("x", moved, np.where(odd, 179, 181)), (0, 0, 320, 240), Settings(model="fundamental")
    )
    assert found is not None
    assert found.inliers >= 18


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


def unit(rows: object) -> np.ndarray:
    vectors = np.array(rows, np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def match_by_distances(query: np.ndarray, image: np.ndarray, ratio: float, mutual: bool) -> list[list[int]]:
    """Every distance, one pair at a time."""
    found = []
    for row, vector in enumerate(query.astype(np.float64)):
        distances = np.linalg.norm(image - vector, axis=1)
        nearest, second = np.argsort(distances)[:2]
        back = np.linalg.norm(query - image[nearest], axis=1).argmin()
        if distances[nearest] <= ratio * distances[second] and (back == row or not mutual):
            found.append((distances[nearest], [row, int(nearest)]))
    return [pair for _, pair in sorted(found)]


def test_nearest_neighbours_that_choose_each_other_are_a_pair():
    query = unit([[1, 0, 0], [0, 1, 0.1]])
    image = unit([[0, 1, 0], [0, 0, 1], [1, 0.05, 0]])
    assert match(query, image).tolist() == [[0, 2], [1, 0]]


def test_pairs_come_best_first():
    query = unit([[1, 0.3, 0], [0, 0.1, 1]])
    image = unit([[1, 0, 0], [0, 0, 1]])
    assert match(query, image).tolist() == [[1, 1], [0, 0]]


def test_of_two_that_choose_the_same_only_the_nearer_is_kept():
    query = unit([[1, 0.2, 0], [1, 0.1, 0]])
    image = unit([[1, 0, 0], [0, 0, 1]])
    assert match(query, image).tolist() == [[1, 0]]
    assert match(query, image, mutual=False).tolist() == [[1, 0], [0, 0]]


def test_a_neighbour_that_is_hardly_nearer_than_the_second_is_dropped():
    # Squared distances of 45° and 60°: 2 - 2·0.7071 = 0.5858 and 2 - 2·0.5 = 1, so that the ratio is 0.765.
    query = unit([[1, 0], [-1, 0]])
    image = unit([[np.cos(np.pi / 4), np.sin(np.pi / 4)], [np.cos(np.pi / 3), -np.sin(np.pi / 3)]])
    assert [0, 0] in match(query, image, ratio=0.77).tolist()
    assert [0, 0] not in match(query, image, ratio=0.76).tolist()


@pytest.mark.parametrize("mutual", [True, False])
@pytest.mark.parametrize("ratio", [0.8, 0.95, 1.0])
@pytest.mark.parametrize(("n", "m"), [(40, 60), (60, 40), (2, 2), (2, 50)])
def test_it_equals_the_comparison_of_all_distances(n: int, m: int, ratio: float, mutual: bool):
    rng = np.random.default_rng(n * m)
    query = unit(rng.normal(size=(n, 6)))
    copies = query[: m // 2] + rng.normal(scale=0.1, size=query[: m // 2].shape)
    image = unit(np.concatenate([copies, rng.normal(size=(m, 6))])[:m])
    assert match(query, image, ratio, mutual).tolist() == match_by_distances(query, image, ratio, mutual)


@pytest.mark.parametrize(("n", "m"), [(0, 5), (5, 0), (0, 0), (1, 5), (5, 1)])
def test_without_a_second_neighbour_nothing_can_be_told_apart(n: int, m: int):
    pairs = match(np.ones((n, 3), np.float32), np.ones((m, 3), np.float32))
    assert pairs.shape == (0, 2)
    assert pairs.dtype == np.int64


def test_zero_rows_match_nothing():
    assert len(match(np.zeros((3, 4), np.float32), unit(np.eye(4)))) == 0


def test_the_rows_that_were_given_stay_as_they_were():
    query, image = unit(np.eye(3)), unit(np.eye(3))
    match(query, image)
    assert query.tolist() == image.tolist() == np.eye(3).tolist()


def test_two_equal_neighbours_are_ambiguous():
    image = np.array([[1, 0, 0], [1, 0, 0], [0, 1, 0]], np.float32)
    assert match(np.eye(3, dtype=np.float32)[:2], image).tolist() == [[1, 2]]
