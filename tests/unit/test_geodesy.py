import numpy as np
import pytest

from resight.geodesy import RADIUS, metres_between


def test_one_degree_along_a_meridian_is_a_360th_of_the_circumference():
    expected = 2 * np.pi * RADIUS / 360
    assert metres_between(50, 8, [51], [8]) == pytest.approx([expected])


def test_the_poles_are_half_a_circumference_apart():
    assert metres_between(90, 0, [-90], [123]) == pytest.approx([np.pi * RADIUS])


def test_the_date_line_is_no_border():
    assert metres_between(0, 179.9999, [0], [-179.9999]) == pytest.approx([0.0002 * 2 * np.pi * RADIUS / 360])


def test_a_degree_of_longitude_at_60_north_is_half_of_one_at_the_equator():
    north, equator = metres_between(60, 0, [60], [0.01]), metres_between(0, 0, [0], [0.01])
    assert north / equator == pytest.approx([0.5], rel=1e-6)


def test_one_point_is_measured_to_many():
    distances = metres_between(0, 0, np.zeros(3), [0, 1, 2])
    assert distances.shape == (3,)
    assert distances[0] == 0
    assert distances[2] == pytest.approx(2 * distances[1])
