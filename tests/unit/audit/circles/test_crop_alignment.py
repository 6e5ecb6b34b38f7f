"""Crops of one drawn ground, with known circles."""

import cv2
import numpy as np
import pytest
from support.builders import Pixels, draw_texture

from resight.audit.circles.crop_alignment import align, prepare_crop
from resight.data.maps.crater_view import Circle

VIEW = 3.0


@pytest.fixture(scope="module")
def ground() -> Pixels:
    return draw_texture(np.random.default_rng(3), 900, 900)


def cut(ground: Pixels, x: float, y: float, diameter: float) -> Pixels:
    """A crop of three diameters around a crater, in pixels of the ground."""
    side = VIEW * diameter
    onto = np.array([[128 / side, 0, 64 - 128 * x / side], [0, 128 / side, 64 - 128 * y / side]])
    return np.asarray(cv2.warpAffine(ground, onto, (128, 128), flags=cv2.INTER_AREA))


@pytest.mark.parametrize(("east", "south", "ratio"), [(0, 0, 1.0), (6, -4, 1.0), (-8, 5, 1.1), (0, 9, 0.9)])
def test_the_circle_of_one_crop_is_found_in_the_other(ground: Pixels, east: float, south: float, ratio: float):
    one, two = cut(ground, 450, 430, 80), cut(ground, 450 + east, 430 + south, 80 * ratio)
    found = align(prepare_crop(one), prepare_crop(two), VIEW, VIEW)
    assert found is not None
    assert found.iou == pytest.approx(Circle(0, 0, 40).iou(Circle(east, south, 40 * ratio)), abs=0.02)
    assert found.scale_ratio == pytest.approx(ratio, abs=0.01)
    assert found.offset == pytest.approx(np.hypot(east, south) / (80 * max(ratio, 1)), abs=0.01)
    assert found.agreement > 0.9


def test_a_crop_of_another_side_in_diameters_shows_another_circle(ground: Pixels):
    crop = prepare_crop(cut(ground, 450, 430, 80))
    found = align(crop, crop, 3.0, 2.0)  # the same ground, a circle half as large again
    assert found is not None
    assert found.scale_ratio == pytest.approx(1.5, abs=0.01)
    assert found.iou == pytest.approx(4 / 9, abs=0.01)


def test_other_ground_does_not_agree(ground: Pixels):
    one, two = prepare_crop(cut(ground, 300, 300, 60)), prepare_crop(cut(ground, 620, 600, 60))
    found = align(one, two, VIEW, VIEW)
    assert found is None or found.agreement < 0.7
