import math

import pytest

from resight.explain.format import (
    format_box,
    format_metres,
    format_position,
    format_score,
    format_time,
    format_value,
    measure_distance,
)
from resight.geodesy import find_number, find_position
from resight.probability_words import format_probability, format_verdict


@pytest.mark.parametrize(
    ("probability", "text"),
    [(0, "<1%"), (0.004, "<1%"), (0.006, "1%"), (0.62, "62%"), (0.994, "99%"), (0.996, ">99%"), (1, ">99%")],
)
def test_a_percentage_never_claims_certainty(probability, text):
    assert format_probability(probability) == text


@pytest.mark.parametrize(
    ("probability", "verdict"),
    [
        (1, "very likely"),
        (0.9, "very likely"),
        (0.89, "likely"),
        (0.5, "likely"),
        (0.49, "unlikely"),
        (0, "very unlikely"),
    ],
)
def test_the_verdict_follows_the_probability(probability, verdict):
    assert format_verdict(probability) == verdict


@pytest.mark.parametrize(
    ("score", "text"),
    [(0.91, "0.910"), (-0.5, "-0.500"), (14.25, "14.2"), (90.0, "90"), (297, "297"), (12345.6, "12346"), (None, "–")],
)
def test_small_scores_keep_decimals_and_counts_have_none(score, text):
    assert format_score(score) == text


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.0031, "3.1 ms"), (0.412, "412 ms"), (1.26, "1.3 s"), (75, "75.0 s"), (None, "–")]
)
def test_times_are_in_the_unit_that_fits(seconds, text):
    assert format_time(seconds) == text


def test_a_box_is_said_by_its_range_and_its_size():
    assert format_box((3.6, 4.2, 634, 337)).replace("\u00a0", " ") == "x 4–634, y 4–337 (630 × 333 px)"


@pytest.mark.parametrize(
    ("value", "text"), [(True, "yes"), (False, "no"), (1, "1"), (51.507351, "51.507351"), (0.5, "0.5"), ("a", "a")]
)
def test_attributes_are_said_plainly(value, text):
    assert format_value(value) == text


@pytest.mark.parametrize(
    ("metres", "words"),
    [(0, "0 m"), (4.23, "4.2 m"), (25.4, "25.4 m"), (93.4, "93 m"), (500, "500 m"), (999.6, "1 km"), (1234, "1.2 km"),
     (12_000, "12 km"), (99_960, "100 km"), (1_234_567, "1,235 km")],
)  # fmt: skip
def test_metres_are_written_as_exactly_as_a_reader_wants_them(metres, words):
    assert format_metres(metres).replace("\u00a0", " ") == words


def test_a_position_is_written_with_its_hemispheres():
    assert format_position((52.509891, 13.281715)) == "52.50989° N, 13.28172° E"
    assert format_position((-33.5, -70.25)) == "33.50000° S, 70.25000° W"


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
    assert measure_distance((0.0, 179.5), (0.0, -179.5)) == pytest.approx(111_195, abs=1)
