import numpy as np
import pytest
from support.builders import detect, draw_texture, tilt, turn_about, warp

from resight.search.homography_checks import corners, map_points
from resight.search.matchers import LocalFeatures
from resight.search.verification import Settings, verify
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
