import numpy as np
import pytest
from builders import fill_picture, make_picture

from resight.encode.preprocess import Statistics, crop, prepare

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
    assert crop(width, height, proportion) == box


@pytest.mark.parametrize(("width", "height"), [(1, 1), (1, 300), (300, 2), (5000, 3)])
@pytest.mark.parametrize("fit", ["squash", "crop"])
def test_a_picture_of_any_shape_fills_the_input(width: int, height: int, fit: str):
    planes, _ = prepare(fill_picture(width, height, grey=110), 24, 16, fit, HALVES)
    assert planes.shape == (1, 3, 16, 24)
    assert (planes[0, 1] == 0).all()
