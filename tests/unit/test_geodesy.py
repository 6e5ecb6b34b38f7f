import numpy as np
import pytest

from resight.geodesy import RADIUS, metres_apart, metres_between, to_degrees, to_vectors, turn_between


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


def test_distances_by_vectors_are_those_by_degrees():
    rng = np.random.default_rng(0)
    lats, lons = rng.uniform(-90, 90, 50), rng.uniform(-180, 180, 50)
    vectors = to_vectors(lats, lons)
    np.testing.assert_allclose(metres_apart(vectors[:1], vectors)[0], metres_between(lats[0], lons[0], lats, lons))


def test_a_centimetre_is_not_lost_between_vectors():
    vectors = to_vectors([50.0, 50.0 + 0.01 * 360 / (2 * np.pi * RADIUS)], [8.0, 8.0])
    assert metres_apart(vectors[:1], vectors[1:])[0, 0] == pytest.approx(0.01, rel=1e-3)


def test_vectors_of_any_length_have_their_place():
    lats, lons = to_degrees(np.array([[0, 0, 2.0], [0, -3.0, 0], [-1, 0, 0]]))
    assert lats == pytest.approx([90, 0, 0])
    assert lons[1:] == pytest.approx([-90, 180])


@pytest.mark.parametrize(("heading", "other", "turn"), [(350, 10, 20), (10, 350, 20), (0, 180, 180), (90, 90, 0)])
def test_a_turn_is_the_shorter_way_round(heading, other, turn):
    assert turn_between(heading, [other]) == pytest.approx([turn])


def test_a_turn_from_or_to_an_unknown_heading_is_not_known():
    assert np.isnan(turn_between(np.nan, [10])).all() and np.isnan(turn_between(10, [np.nan])).all()
