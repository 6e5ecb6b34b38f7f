"""Several instances of a query in one image, at known places."""

from dataclasses import replace

import numpy as np
import pytest
from support.builders import detect, draw_texture, turn_about

from resight.boxes import iou
from resight.search.further_instances import box_outline
from resight.search.verification import Settings, verify
from resight.types import Box, Match

OUTLINE: Box = (0.0, 0.0, 160.0, 120.0)
PLACES = ((20, 10), (420, 40), (200, 220))  # x, y on the wall
SETTINGS = Settings(model="best", instances=5)


@pytest.fixture(scope="module")
def thing() -> np.ndarray:
    return draw_texture(np.random.default_rng(5), 160, 120)


def paste(thing: np.ndarray, places: tuple[tuple[int, int], ...]) -> np.ndarray:
    wall = draw_texture(np.random.default_rng(6), 640, 400)
    for x, y in places:
        wall[y : y + 120, x : x + 160] = thing
    return wall


def find(thing: np.ndarray, wall: np.ndarray, settings: Settings = SETTINGS) -> Match | None:
    return verify(detect(thing, "thing"), detect(wall, "wall"), OUTLINE, settings)


def test_every_copy_on_a_wall_gets_its_box(thing: np.ndarray):
    match = find(thing, paste(thing, PLACES))
    assert match is not None
    boxes = [box_outline(each, OUTLINE) for each in (match, *match.others)]
    for x, y in PLACES:
        overlaps = [float(iou(np.array(box), np.array([x, y, x + 160, y + 120]))) for box in boxes]
        assert max(overlaps) > 0.9
    assert len(boxes) == 3
    assert sorted(each.significance for each in match.others)[::-1] == [each.significance for each in match.others]


def test_no_more_are_reported_than_asked_for(thing: np.ndarray):
    wall = paste(thing, PLACES)
    two = find(thing, wall, replace(SETTINGS, instances=2))
    assert two is not None and len(two.others) == 1


def test_a_single_copy_has_no_other(thing: np.ndarray):
    wall = paste(thing, PLACES[:1])
    match, plain = find(thing, wall), find(thing, wall, replace(SETTINGS, instances=1))
    assert match is not None and plain is not None and match.others == ()
    np.testing.assert_array_equal(match.points, plain.points)


def test_a_second_plane_of_one_instance_is_not_another_instance(thing: np.ndarray):
    """The right half is shifted by 12 pixels, as of a folded card."""
    wall = paste(thing, ((100, 100),))
    wall[100:220, 192:272] = thing[:, 80:]
    match = find(thing, wall)
    assert match is not None and match.others == ()


def test_the_outline_of_a_turned_copy_is_inside_its_box():
    match = Match("q", "x", 5, turn_about(80, 60, 90), np.zeros((5, 4), np.float32))
    assert box_outline(match, OUTLINE) == pytest.approx((20, -20, 140, 140))
