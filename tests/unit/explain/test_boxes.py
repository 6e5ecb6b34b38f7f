import numpy as np
import pytest

from resight.errors import BoxError
from resight.explain.draw import CASING, MINT, draw_box, draw_quadrilateral, stroke

RED = (255, 0, 0)


def grey(height: int, width: int) -> np.ndarray:
    return np.full((height, width, 3), 128, np.uint8)


def near(pixels: np.ndarray, colour: tuple[int, int, int]) -> np.ndarray:
    """Which pixels have a colour, but for what anti-aliasing takes."""
    return np.abs(pixels.astype(int) - colour).max(axis=-1) < 30


def test_the_line_runs_along_the_box_with_a_dark_casing_beside_it():
    drawn = draw_box(grey(200, 250), (50, 40, 200, 160), RED)
    assert near(drawn[100, 50], RED)
    assert near(drawn[100, 200], RED)
    assert near(drawn[40, 120], RED)
    assert near(drawn[160, 120], RED)
    assert near(drawn[100, 48], CASING)
    assert near(drawn[100, 52], CASING)


def test_inside_and_outside_keep_their_pixels():
    drawn = draw_box(grey(200, 250), (50, 40, 200, 160), RED)
    assert (drawn[60:140, 70:180] == 128).all()
    assert (drawn[:30] == 128).all()


def test_the_argument_is_left_alone():
    pixels = grey(60, 60)
    draw_box(pixels, (10, 10, 40, 40))
    assert (pixels == 128).all()


def test_a_read_only_view_can_be_drawn_on():
    pixels = grey(60, 120)[:, ::2]
    pixels.setflags(write=False)
    assert draw_box(pixels, (10, 10, 40, 40)).shape == (60, 60, 3)


def test_a_box_of_the_whole_image_shows_its_line_on_all_four_sides():
    drawn = draw_box(grey(100, 100), (0, 0, 100, 100), RED)
    for side in (drawn[50, :3], drawn[50, -3:], drawn[:3, 50], drawn[-3:, 50]):
        assert near(side, RED).any()


@pytest.mark.parametrize("box", [(40, 10, 10, 40), (10, 40, 40, 10), (10, 10, 10, 40)])
def test_a_box_inside_out_is_refused(box):
    with pytest.raises(BoxError, match="x0 < x1"):
        draw_box(grey(60, 60), box)


def test_a_quadrilateral_passes_through_the_middle_of_its_slanted_side():
    corners = np.array([(20, 20), (120, 60), (120, 160), (20, 180)], np.float32)
    drawn = draw_quadrilateral(grey(200, 200), corners)
    assert np.abs(drawn[40, 70].astype(int) - MINT).max() < 60
    assert (drawn[100, 70] == 128).all()


def test_a_corner_near_infinity_does_not_break_the_drawing():
    corners = np.array([(20, 20), (1e12, 60), (120, 160), (20, 180)], np.float32)
    assert near(draw_quadrilateral(grey(200, 200), corners, RED)[100, 20], RED)


@pytest.mark.parametrize(("side", "thickness"), [(10, 1), (250, 1), (640, 3), (4000, 16)])
def test_thickness_grows_with_the_image(side, thickness):
    assert stroke(grey(5, side)) == thickness
