"""Circles that coincide on a globe, beside measuring all pairs."""

import numpy as np
import pytest

from resight.audit.circles.circle_overlap import farthest, find_overlaps, measure_ious
from resight.data.maps.crater_view import Circle, CraterView
from resight.errors import InputError


def draw(count: int, radius_km: float = 1737.4) -> list[CraterView]:
    """Crowded at a pole and on both sides of the date line."""
    generator = np.random.default_rng(1)
    lats = np.concatenate([90 - generator.gamma(2, 3, count // 2), generator.normal(0, 10, count - count // 2)])
    lons = np.concatenate([generator.uniform(-180, 180, count // 2), 180 + generator.normal(0, 10, count - count // 2)])
    diameters = np.exp(generator.uniform(np.log(20), np.log(400), count))
    places = zip(lats.tolist(), ((lons + 180) % 360 - 180).tolist(), diameters.tolist(), strict=True)
    return [CraterView("", lat, lon, diameter, 3.0, radius_km) for lat, lon, diameter in places]


@pytest.mark.parametrize("least", [0.1, 0.35, 0.7])
def test_all_pairs_that_coincide_are_found_and_no_others(least: float):
    craters = draw(160)
    expected = {
        (a, b): iou
        for a in range(len(craters))
        for b in range(a + 1, len(craters))
        if (iou := craters[a].circle_iou(craters[b])) >= least
    }
    found = {(one.a, one.b): one.iou for one in find_overlaps(craters, least)}
    assert len(expected) > 1
    assert found == pytest.approx(expected)


def test_offset_and_ratio_of_a_pair():
    first = CraterView("1", 0.0, 179.99, 40.0, 3.0, 1000.0)
    second = CraterView("2", 0.0, -179.99, 50.0, 3.0, 1000.0)
    (found,) = find_overlaps([first, second], 0.3)
    apart = 1000 * np.radians(0.02)
    assert found.offset_km == pytest.approx(apart)
    assert found.offset == pytest.approx(apart / 50)
    assert found.scale_ratio == pytest.approx(1.25)
    assert found.iou == pytest.approx(16 / 25)  # one lies in the other


def test_craters_of_two_globes_and_of_one_side_are_no_pairs():
    crater = CraterView("1", 0.0, 0.0, 40.0, 3.0, 1000.0)
    assert not find_overlaps([crater, CraterView("1", 0.0, 0.0, 40.0, 3.0, 1001.0)], 0.3)
    assert [(one.a, one.b) for one in find_overlaps([crater] * 4, 0.3, split=3)] == [(0, 3), (1, 3), (2, 3)]


def test_discs_that_lie_in_each_other_or_apart():
    ious = measure_ious(np.array([0.0, 1.0, 3.0, 1.0]), np.array([1.0, 3.0, 1.0, 1.0]), np.array([1.0, 1.0, 2.0, 1.0]))
    assert ious == pytest.approx([1, 1 / 9, 0, Circle(0, 0, 1).iou(Circle(1, 0, 1))])


def test_the_farthest_equal_discs_share_just_so_much():
    assert Circle(0, 0, 1).iou(Circle(farthest(0.4), 0, 1)) == pytest.approx(0.4)


def test_circles_that_hardly_touch_are_not_listed():
    with pytest.raises(InputError, match="hardly overlap"):
        find_overlaps([], 0.0)
