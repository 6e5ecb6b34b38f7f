import numpy as np
import pytest
from support.builders import fill_picture, make_picture

from resight.encode.preprocess import Statistics, choose_input, crop_centre, prepare

HALVES = Statistics((100, 110, 120), (2, 4, 8))


def test_pixels_are_centred_scaled_and_put_plane_by_plane():
    pixels = np.zeros((2, 3, 3), np.uint8)
    pixels[0, 1] = (102, 118, 152)
    planes, covers = prepare(make_picture(pixels), 3, 2, "squash", HALVES)
    assert planes.shape == (1, 3, 2, 3) and planes.dtype == np.float32
    assert planes[0, :, 0, 1].tolist() == [1, 2, 4]
    assert planes[0, :, 1, 2].tolist() == [-50, -27.5, -15]
    assert covers == (0, 0, 3, 2)


def test_squash_shows_the_whole_of_the_original():
    planes, covers = prepare(make_picture(np.zeros((50, 100, 3), np.uint8), size=(400, 200)), 32, 32, "squash", HALVES)
    assert planes.shape == (1, 3, 32, 32)
    assert covers == (0, 0, 400, 200)


def test_crop_shows_the_middle_in_pixels_of_the_original():
    pixels = np.zeros((50, 100, 3), np.uint8)
    pixels[:, 25:75] = 200
    planes, covers = prepare(make_picture(pixels, size=(400, 200)), 10, 10, "crop", HALVES)
    assert covers == (100, 0, 300, 200)
    assert (planes[0, 0] == 50).all()


@pytest.mark.parametrize(
    ("width", "height", "proportion", "box"),
    [
        (100, 50, 1, (25, 0, 75, 50)),
        (50, 100, 1, (0, 25, 50, 75)),
        (100, 50, 4, (0, 12, 100, 37)),
        (60, 60, 1, (0, 0, 60, 60)),
        (1, 900, 1, (0, 449, 1, 450)),
        (900, 1, 0.1, (449, 0, 450, 1)),
    ],
)
def test_the_crop_is_centred_and_as_large_as_it_can_be(
    width: int, height: int, proportion: float, box: tuple[int, ...]
):
    assert crop_centre(width, height, proportion) == box


@pytest.mark.parametrize(("width", "height"), [(1, 1), (1, 300), (300, 2), (5000, 3)])
@pytest.mark.parametrize("fit", ["squash", "crop"])
def test_a_picture_of_any_shape_fills_the_input(width: int, height: int, fit: str):
    planes, _ = prepare(fill_picture(width, height, grey=110), 24, 16, fit, HALVES)
    assert planes.shape == (1, 3, 16, 24)
    assert (planes[0, 1] == 0).all()


@pytest.mark.parametrize(
    ("width", "height", "size", "cell", "chosen"),
    [
        (100, 100, 224, 32, (224, 224)),
        (300, 100, 224, 32, (384, 128)),  # 224 · √3 = 388, 224 / √3 = 129
        (100, 300, 224, 32, (128, 384)),
        (1600, 900, 224, 14, (294, 168)),  # 224 · 4/3 = 298.7, 224 · 3/4 = 168
        (5000, 1, 224, 14, (3584, 14)),  # one row of as many cells as the square has
        (1, 5000, 32, 32, (32, 32)),
    ],
)
def test_keep_takes_whole_cells_in_the_pictures_proportions(
    width: int, height: int, size: int, cell: int, chosen: tuple[int, int]
):
    assert choose_input(fill_picture(width, height), size, cell, "keep") == chosen


def test_squash_and_crop_take_the_square_whatever_the_picture():
    panorama = fill_picture(300, 100)
    assert choose_input(panorama, 225, 32, "squash") == choose_input(panorama, 225, 32, "crop") == (225, 225)


def test_what_a_panorama_covers_follows_from_the_fit():
    panorama = make_picture(np.zeros((100, 300, 3), np.uint8), size=(1200, 400))
    covered = {fit: prepare(panorama, 30, 30, fit, HALVES)[1] for fit in ("squash", "crop", "keep")}
    assert covered == {"squash": (0, 0, 1200, 400), "crop": (400, 0, 800, 400), "keep": (0, 0, 1200, 400)}
