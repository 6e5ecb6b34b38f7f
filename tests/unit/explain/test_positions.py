import math

import pytest

from resight.explain.format import measure, say_metres, say_position
from resight.geodesy import find_number, find_position


@pytest.mark.parametrize(
    ("metres", "words"),
    [(0, "0 m"), (4.23, "4.2 m"), (25.4, "25.4 m"), (93.4, "93 m"), (500, "500 m"), (999.6, "1 km"), (1234, "1.2 km"),
     (12_000, "12 km"), (99_960, "100 km"), (1_234_567, "1,235 km")],
)  # fmt: skip
def test_metres_are_written_as_exactly_as_a_reader_wants_them(metres, words):
    assert say_metres(metres).replace("\u00a0", " ") == words


def test_a_position_is_written_with_its_hemispheres():
    assert say_position((52.509891, 13.281715)) == "52.50989° N, 13.28172° E"
    assert say_position((-33.5, -70.25)) == "33.50000° S, 70.25000° W"


@pytest.mark.parametrize(
    "attributes",
    [{}, {"lat": 1.0}, {"lat": "1", "lon": 2.0}, {"lat": True, "lon": 2.0}, {"lat": math.nan, "lon": 2.0},
     {"lat": 91.0, "lon": 2.0}, {"lat": 1.0, "lon": -180.5}],
)  # fmt: skip
def test_what_is_no_position_on_the_earth_is_none(attributes):
    assert find_position(attributes) is None


def test_whole_numbers_are_positions_too():
    assert find_position({"lat": 52, "lon": 13}) == (52.0, 13.0)
    assert find_number({"heading": 247}, "heading") == 247.0
    assert find_number({"heading": "north"}, "heading") is None


def test_distances_are_those_of_the_sphere():
    assert measure((0.0, 179.5), (0.0, -179.5)) == pytest.approx(111_195, abs=1)
