import numpy as np
import pytest

from resight.data.maps.terrain import shade


def draw_slope(rise_east: float, rise_north: float) -> np.ndarray:
    """A plane that rises by so many metres a metre; the steps are 10 metres east and 20 metres south."""
    rows, columns = np.mgrid[:5, :7]
    return (columns * 10 * rise_east - rows * 20 * rise_north).astype(np.float32)


def test_flat_ground_has_the_sine_of_the_lights_altitude():
    assert shade(np.zeros((4, 5), np.float32), 10, 20, azimuth=123, altitude=30) == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("azimuth", "rise_east", "rise_north"),
    [(270, 1, 0), (90, -1, 0), (0, 0, -1), (180, 0, 1), (315, 0.5**0.5, -(0.5**0.5))],
)
def test_a_slope_of_45_degrees_that_faces_the_light_is_as_bright_as_can_be(azimuth, rise_east, rise_north):
    slope = draw_slope(rise_east, rise_north)
    assert shade(slope, 10, 20, azimuth, altitude=45) == pytest.approx(1)
    assert shade(slope, 10, 20, azimuth + 180, altitude=45) == pytest.approx(0, abs=1e-6)
    assert shade(slope, 10, 20, azimuth + 90, altitude=45) == pytest.approx(0.5)  # sin 45° · cos 45°


def test_what_faces_away_is_black_and_not_negative():
    assert shade(draw_slope(-2, 0), 10, 20, azimuth=270, altitude=20).max() == 0


def test_exaggeration_multiplies_the_heights():
    gentle, steep = draw_slope(0.1, 0.2), draw_slope(0.3, 0.6)
    assert shade(gentle, 10, 20, 300, 40, exaggeration=3) == pytest.approx(shade(steep, 10, 20, 300, 40), abs=1e-5)


def test_each_row_may_have_a_step_of_its_own():
    heights = draw_slope(1, 0)
    steps = np.array([[10], [10], [1e9], [10], [10]])
    bright = shade(heights, steps, 20, azimuth=270, altitude=45)
    assert bright[1] == pytest.approx(1)
    assert bright[2] == pytest.approx(0.5**0.5)  # so wide a step makes the row flat
