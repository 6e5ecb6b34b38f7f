"""Significance of matches that agree with a model, against numbers worked out by hand."""

import math

import numpy as np
import pytest

from resight.search.a_contrario import LIKELIEST, Extent, measure


def span(width: float, height: float) -> np.ndarray:
    return np.array([[0, 0, 1, 0], [width, height, 1, 0]], np.float32)


def test_significance_is_the_formula_by_hand():
    # 10 matches, 4 agree with a similarity (1 match) among 10 tried, alpha = 0.01:
    # NFA = 10 · C(10, 4) · C(4, 1) · 0.01³ = 10 · 210 · 4 · 1e-6
    found = measure(np.array([4]), 10, 1, 10, np.array([-2.0]))
    assert found[0] == pytest.approx(-math.log10(10 * 210 * 4 * 1e-6))


def test_a_sample_alone_proves_nothing():
    assert measure(np.array([4]), 10, 4, 10, np.array([-2.0]))[0] == -np.inf


def test_of_several_radii_each_pays_for_the_others():
    once = measure(np.array([[5]]), 10, 1, 10, np.array([-2.0]))
    twice = measure(np.array([[5, 5]]), 10, 1, 10, np.array([-2.0, -2.0]))
    assert twice[0, 0] == pytest.approx(once[0, 0] - math.log10(2))


def test_as_many_agreeing_matches_mean_less_among_more():
    few, many = (measure(np.array([6]), n, 1, n, np.array([-2.0]))[0] for n in (10, 100))
    assert few > 5 > many


def test_a_point_has_a_disc_and_a_line_a_band_of_the_area():
    extent = Extent(span(800, 400))  # radii of 3 pixels and more
    assert extent.around_point(1)[0] == pytest.approx(math.log10(math.pi * 9 / 320_000))
    assert extent.along_line(1)[0] == pytest.approx(math.log10(2 * math.hypot(800, 400) * 3 / 320_000))
    assert extent.around_point(0.1)[0] == pytest.approx(extent.around_point(1)[0] - 1)


def test_radii_grow_with_the_image_and_no_chance_is_above_its_bound():
    assert Extent(span(1600, 100)).radii[0] == 6
    assert (Extent(span(1600, 10)).around_point(1) <= math.log10(LIKELIEST)).all()


def test_no_points_span_a_pixel():
    assert Extent(np.zeros((0, 4), np.float32)).area == 1
