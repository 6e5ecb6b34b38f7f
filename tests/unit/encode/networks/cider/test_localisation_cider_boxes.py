"""Boxes of drawn maps, in pixels of the image under them."""

import numpy as np
import pytest

pytest.importorskip("torch")

from resight.encode.networks.cider.localisation import box_attention


def draw(parts: list[tuple[int, int, int, int, float]], side: int = 120):
    heat = np.zeros((side, side), np.float32)
    for x0, y0, x1, y1, value in parts:
        heat[y0:y1, x0:x1] = value
    return heat


def test_a_drawn_mask_gives_its_box_in_pixels_of_the_original():
    found = box_attention(draw([(30, 60, 60, 90, 1.0)]), (0.5,), (0, 0, 480, 240))
    assert found.boxes.tolist() == [[120, 120, 240, 180]]


def test_the_map_may_lie_on_a_part_of_the_image():
    found = box_attention(draw([(0, 0, 60, 120, 1.0)]), (0.5,), (100, 50, 220, 170))
    assert found.boxes.tolist() == [[100, 50, 160, 170]]


def test_each_threshold_has_its_own_parts_and_the_surest_comes_first():
    heat = draw([(10, 10, 40, 40, 1.0), (60, 60, 110, 110, 0.5)])
    assert box_attention(heat, (0.66,), (0, 0, 120, 120)).boxes.tolist() == [[10, 10, 40, 40]]
    both = box_attention(heat, (0.33, 0.66), (0, 0, 120, 120))
    assert both.boxes.tolist() == [[60, 60, 110, 110], [10, 10, 40, 40]]
    assert both.scores.tolist() == pytest.approx([1250 / 2150, 900 / 2150])  # of the attention: 50² · 0.5 and 30² · 1


def test_of_a_thing_and_its_brightest_spot_the_thing_comes_first():
    heat = draw([(20, 20, 80, 80, 0.5), (30, 30, 60, 60, 1.0)])
    assert box_attention(heat, (1 / 3, 2 / 3), (0, 0, 120, 120)).boxes.tolist() == [[20, 20, 80, 80], [30, 30, 60, 60]]


def test_specks_and_flat_maps_are_no_things():
    assert len(box_attention(draw([(0, 0, 5, 5, 1.0)]), (0.5,), (0, 0, 120, 120)).boxes) == 0
    assert len(box_attention(np.ones((7, 7), np.float32), (0.5,), (0, 0, 120, 120)).boxes) == 0
