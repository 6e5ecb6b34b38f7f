"""Which entries priors leave as candidates."""

import numpy as np
import pytest

from resight.audit.match.match_entries import MatchEntry
from resight.audit.match.match_priors import Priors, list_allowed, parse_distance
from resight.data.maps.crater_view import CraterView
from resight.errors import InputError


def crater(lat: float, lon: float, diameter: float = 30.0, radius: float = 1737.4) -> MatchEntry:
    return MatchEntry("x", ("x",), CraterView("x", lat, lon, diameter, 3.0, radius))


def test_distances_are_measured_on_the_globe_across_the_date_line_and_the_pole():
    degree = np.radians(1) * 1737.4  # 30.3 km
    others = [crater(0, -179.6), crater(0, 178.0), crater(89.9, 0), crater(89.7, 180)]
    allowed = list_allowed([crater(0, 179.6), crater(89.9, 90)], others, Priors(within_km=degree))
    assert [rows.tolist() for rows in allowed] == [[0], [2, 3]]


def test_a_ratio_holds_both_ways_and_includes_its_bound():
    others = [crater(0, 0, diameter) for diameter in (10.0, 20.0, 39.0, 40.0)]
    assert [rows.tolist() for rows in list_allowed([crater(0, 0, 30.0)], others, Priors(diameter_ratio=1.3))] == [[2]]
    assert [rows.tolist() for rows in list_allowed([crater(0, 0, 30.0)], others, Priors(diameter_ratio=1.5))] == [
        [1, 2, 3]
    ]


def test_both_priors_at_once():
    others = [crater(0, 0, 30), crater(0, 0, 60), crater(50, 0, 30)]
    assert [rows.tolist() for rows in list_allowed([crater(0, 0.1, 28)], others, Priors(20, 1.2))] == [[0]]


def test_photos_are_placed_on_the_earth():
    here, near, far = (
        MatchEntry(name, (name,), position=(52.5, lon)) for name, lon in zip("abc", (13, 13.001, 14), strict=True)
    )
    assert [rows.tolist() for rows in list_allowed([here], [near, far], Priors(within_km=0.1))] == [[0]]


def test_a_prior_is_never_silently_ignored():
    bare = MatchEntry("bare", ("bare.jpg",))
    with pytest.raises(InputError, match="1 of 2 entries have no position") as caught:
        list_allowed([crater(0, 0)], [bare], Priors(within_km=30))
    assert "bare.jpg" in str(caught.value)
    with pytest.raises(InputError, match="no diameter"):
        list_allowed([bare], [crater(0, 0)], Priors(diameter_ratio=1.3))
    with pytest.raises(InputError, match="no such prior"):
        list_allowed([crater(0, 0)], [crater(0, 0, radius=3389.5)], Priors(within_km=30))


def test_distances_need_a_unit():
    assert (parse_distance("30km"), parse_distance("500 m")) == (30.0, 0.5)
    for text in ("30", "km", "-1km", "30 miles"):
        with pytest.raises(InputError):
            parse_distance(text)


def test_priors_that_allow_nothing_are_refused():
    for within, ratio in ((0.0, None), (None, 0.9)):
        with pytest.raises(InputError):
            Priors(within, ratio)
