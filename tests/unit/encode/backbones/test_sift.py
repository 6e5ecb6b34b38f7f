import cv2
import numpy as np
import pytest
from support.builders import draw_texture, fill_picture, make_picture

from resight.encode import backbones
from resight.encode.backbones._key_points import reduce_to
from resight.encode.backbones.sift import root_sift
from resight.types import Features, Picture


def extract(picture: Picture, **settings: object) -> Features:
    (features,) = backbones.build("sift", **settings).extract([picture])
    return features


def draw_spot(x: float, y: float, width: int, height: int) -> np.ndarray:
    """One bright round spot on black: a single blob, whose centre is known."""
    columns, rows = np.meshgrid(np.arange(width), np.arange(height))
    glow = 255 * np.exp(-((columns - x) ** 2 + (rows - y) ** 2) / (2 * 12**2))
    return np.repeat(glow[:, :, None], 3, axis=2).astype(np.uint8)


def test_root_sift_is_the_root_of_the_shares():
    rows = root_sift(np.array([[4, 0, 12], [0, 9, 0]], np.float32))
    np.testing.assert_allclose(rows, [[0.5, 0, 0.75**0.5], [0, 1, 0]], rtol=1e-6)
    assert rows.dtype == np.float32


def test_the_root_of_an_empty_histogram_is_zero():
    assert root_sift(np.zeros((1, 4), np.float32)).tolist() == [[0, 0, 0, 0]]


def test_rows_have_unit_length():
    features = extract(make_picture(draw_texture(np.random.default_rng(0))))
    assert features.patches.shape[1] > 100
    np.testing.assert_allclose(np.linalg.norm(features.patches[0], axis=1), 1, atol=1e-5)


def test_shapes_and_types_are_those_of_one_image():
    features = extract(make_picture(draw_texture(np.random.default_rng(0)), "x"))
    count = features.patches.shape[1]
    assert features.ids == ("x",)
    assert features.patches.shape == (1, count, 128) and features.patches.dtype == np.float32
    assert features.points is not None
    assert features.points.shape == (1, count, 4) and features.points.dtype == np.float32
    assert features.sizes.tolist() == [[320, 240]]


@pytest.mark.parametrize("max_side", [640, 320])
@pytest.mark.parametrize("decoded", [1, 2])
def test_points_are_in_pixels_of_the_original_however_it_was_reduced(decoded: int, max_side: int):
    pixels = cv2.resize(draw_spot(400, 150, 640, 480), (640 // decoded, 480 // decoded), interpolation=cv2.INTER_AREA)
    features = extract(make_picture(pixels, size=(640, 480)), max_side=max_side)
    assert features.points is not None
    nearest = min(features.points[0].tolist(), key=lambda point: (point[0] - 400) ** 2 + (point[1] - 150) ** 2)
    assert nearest[:2] == pytest.approx([400, 150], abs=2)
    assert features.sizes.tolist() == [[640, 480]]


def test_the_size_of_a_point_grows_back_with_the_picture():
    full = extract(make_picture(draw_spot(400, 150, 640, 480)), max_side=640)
    half = extract(make_picture(draw_spot(400, 150, 640, 480)), max_side=320)
    assert full.points is not None and half.points is not None
    assert half.points[0, :, 2].max() == pytest.approx(full.points[0, :, 2].max(), rel=0.1)


@pytest.mark.parametrize(("width", "height"), [(64, 48), (1, 1), (1, 300), (300, 2)])
def test_a_blank_picture_of_any_shape_has_no_rows(width: int, height: int):
    features = extract(fill_picture(width, height))
    assert features.patches.shape == (1, 0, 128)
    assert features.points is not None and features.points.shape == (1, 0, 4)


def test_there_are_never_more_rows_than_asked_for():
    picture = make_picture(draw_texture(np.random.default_rng(0)))
    assert extract(picture, features=1000).patches.shape[1] > 40
    limited = extract(picture, features=40)
    assert limited.patches.shape[1] == 40
    assert limited.points is not None and limited.points.shape[1] == 40


def test_a_repeated_pattern_whose_points_tie_keeps_to_the_limit():
    tile = draw_spot(20, 20, 40, 40)
    features = extract(make_picture(np.tile(tile, (5, 5, 1))), features=7)
    assert features.patches.shape[1] == 7


def test_the_same_picture_gives_the_same_rows():
    picture = make_picture(draw_texture(np.random.default_rng(3)))
    first, second = extract(picture), extract(picture)
    assert np.array_equal(first.patches, second.patches)
    assert first.points is not None and second.points is not None
    assert np.array_equal(first.points, second.points)


def test_reducing_keeps_the_proportions_and_never_enlarges():
    assert reduce_to(np.zeros((200, 400, 3), np.uint8), 100).shape == (50, 100, 3)
    assert reduce_to(np.zeros((20, 40, 3), np.uint8), 100).shape == (20, 40, 3)
    assert reduce_to(np.zeros((1, 900), np.uint8), 100).shape == (1, 100)


def test_the_strongest_come_first():
    picture = make_picture(draw_texture(np.random.default_rng(1)))
    (few,) = backbones.build("sift", features=50).extract([picture])
    (many,) = backbones.build("sift", features=500).extract([picture])
    assert np.array_equal(few.points[0], many.points[0][:50])


def test_a_cut_after_the_strongest_still_reaches_across_the_picture():
    noise = cv2.GaussianBlur(np.random.default_rng(1).normal(size=(240, 320, 3)).astype(np.float32), (0, 0), 2)
    picture = make_picture(cv2.normalize(noise, None, 0, 255, cv2.NORM_MINMAX).astype(np.uint8))
    (features,) = backbones.build("sift").extract([picture])
    assert features.points[0][:300, 0].max() > 300
    assert features.points[0][:300, 0].min() < 20
