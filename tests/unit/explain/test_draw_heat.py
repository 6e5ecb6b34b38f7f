import numpy as np
import pytest

from resight.errors import InputError
from resight.explain.draw import overlay_heat


def lightness(pixels: np.ndarray) -> np.ndarray:
    return pixels.astype(float) @ (0.299, 0.587, 0.114)


def test_lightness_rises_with_heat():
    heat = np.linspace(0, 1, 40, dtype=np.float32)[None].repeat(2, axis=0)
    row = lightness(overlay_heat(np.full((8, 40, 3), 90, np.uint8), heat))[4]
    assert (np.diff(row) > -1).all()
    assert row[-1] - row[0] > 80


def test_heat_of_two_cells_is_enlarged_bilinearly():
    drawn = overlay_heat(np.zeros((2, 8, 3), np.uint8), np.array([[0, 1]], np.float32))
    same = overlay_heat(
        np.zeros((2, 8, 3), np.uint8),
        np.array([[0, 0, 0.125, 0.375, 0.625, 0.875, 1, 1]], np.float32).repeat(2, axis=0),
    )
    assert np.array_equal(drawn, same)


def test_where_it_is_cold_the_image_still_shows():
    pixels = np.zeros((20, 20, 3), np.uint8)
    pixels[:, 10:] = 255
    drawn = overlay_heat(pixels, np.zeros((2, 2), np.float32))
    assert lightness(drawn)[10, 15] - lightness(drawn)[10, 5] > 100


def test_values_outside_the_range_are_cut_off():
    pixels = np.full((4, 4, 3), 50, np.uint8)
    wild = overlay_heat(pixels, np.array([[-3, 7]], np.float32))
    assert np.array_equal(wild, overlay_heat(pixels, np.array([[0, 1]], np.float32)))


def test_the_arguments_are_left_alone():
    pixels, heat = np.full((4, 4, 3), 50, np.uint8), np.array([[-3, 7]], np.float32)
    overlay_heat(pixels, heat)
    assert (pixels == 50).all()
    assert heat.tolist() == [[-3, 7]]


@pytest.mark.parametrize("shape", [(4,), (2, 2, 1), (0, 3)])
def test_a_heat_map_of_another_shape_is_refused(shape):
    with pytest.raises(InputError, match="h, w"):
        overlay_heat(np.zeros((4, 4, 3), np.uint8), np.zeros(shape, np.float32))
