"""Positions and circles of craters, with numbers worked out by hand."""

from math import pi, sqrt

import pytest

from resight.data.maps.crater_view import Circle, CraterView, overlap_area, read_crater_view

ATTRIBUTES = {"label": "7", "crater_lat": 10.0, "crater_lon": 350.0, "diameter_km": 40.0, "view": "2.5x"}


def test_attributes_of_a_crop_are_read():
    assert read_crater_view(ATTRIBUTES) == CraterView("7", 10.0, 350.0, 40.0, 2.5, 1737.4)
    assert read_crater_view({**ATTRIBUTES, "radius_km": 3389.5}) == CraterView("7", 10.0, 350.0, 40.0, 2.5, 3389.5)


@pytest.mark.parametrize(
    "odd", [{"crater_lat": 91}, {"crater_lon": "east"}, {"diameter_km": 0}, {"diameter_km": float("nan")}]
)
def test_without_a_valid_position_there_is_no_view(odd: dict[str, float | str]):
    assert read_crater_view({**ATTRIBUTES, **odd}) is None


def test_the_outline_lies_in_the_middle_of_the_crop():
    view = read_crater_view(ATTRIBUTES)
    assert view is not None
    assert view.outline((250, 250)) == Circle(125, 125, 50)
    for side in ("", "x", "wide", "-2x", "nanx"):
        unknown = read_crater_view({**ATTRIBUTES, "view": side})
        assert unknown is not None
        assert unknown.outline((250, 250)) is None


def test_distances_cross_the_date_line_and_ignore_the_convention_of_longitudes():
    one, two = (CraterView("", 0, lon, 10, 2, 1737.4) for lon in (-179.5, 179.5))
    assert one.distance_km(two) == pytest.approx(2 * pi * 1737.4 / 360)
    assert CraterView("", 5, 350, 10, 2).distance_km(CraterView("", 5, -10, 10, 2)) == pytest.approx(0, abs=1e-9)


def test_iou_of_circles():
    assert Circle(0, 0, 1).iou(Circle(0, 0, 1)) == pytest.approx(1)
    assert Circle(0, 0, 1).iou(Circle(0, 0, 2)) == pytest.approx(1 / 4)
    assert Circle(0, 0, 1).iou(Circle(2, 0, 1)) == 0
    # Two unit circles at distance 1 share 2π/3 - √3/2.
    shared = 2 * pi / 3 - sqrt(3) / 2
    assert overlap_area(1, 1, 1) == pytest.approx(shared)
    assert Circle(0, 0, 1).iou(Circle(1, 0, 1)) == pytest.approx(shared / (2 * pi - shared))


def test_craters_on_a_globe_overlap_like_their_circles():
    one = CraterView("a", 0, 0, 20, 2, 1737.4)
    ten_km = 10 / 1737.4 * 180 / pi
    shared = 2 * pi / 3 - sqrt(3) / 2
    assert one.circle_iou(CraterView("b", ten_km, 0, 20, 2)) == pytest.approx(shared / (2 * pi - shared), rel=1e-6)
    assert one.circle_iou(one) == pytest.approx(1)
