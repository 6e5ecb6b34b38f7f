import itertools
import math

import pytest

from resight.explain.projection import DEGREE, LEAST_SPAN, MARGIN, declutter, draw_grid, fit, round_down, round_up

HALENSEE = (52.5, 13.28)


def inside(shown, positions) -> bool:
    places = [shown.project(position) for position in positions]
    return all(MARGIN - 1e-9 <= share <= 1 - MARGIN + 1e-9 for place in places for share in place)


def test_a_degree_of_latitude_is_as_long_as_the_equator_says():
    assert pytest.approx(2 * math.pi * 6_371_008.8 / 360) == DEGREE


def test_east_shrinks_with_the_cosine_of_the_latitude_and_north_does_not():
    shown = fit([(59.0, 10.0), (61.0, 10.0), (60.0, 9.0), (60.0, 11.0)], ratio=1.0)
    assert (shown.lat, shown.lon) == pytest.approx((60.0, 10.0))
    x, _ = shown.project((60.0, 11.0))
    _, y = shown.project((61.0, 10.0))
    assert (x - 0.5) * shown.width == pytest.approx(DEGREE / 2)
    assert (0.5 - y) * shown.height == pytest.approx(DEGREE)


def test_north_is_up_and_east_is_right():
    shown = fit([HALENSEE, (52.6, 13.4)], ratio=4 / 3)
    (west, south), (east, north) = shown.project(HALENSEE), shown.project((52.6, 13.4))
    assert west < east
    assert north < south


def test_the_map_is_as_wide_as_its_ratio_says_and_shows_all():
    positions = [(52.50, 13.28), (52.51, 13.281), (52.49, 13.279)]
    shown = fit(positions, ratio=1.5)
    assert shown.width / shown.height == pytest.approx(1.5)
    assert inside(shown, positions)


def test_the_antimeridian_is_no_edge():
    shown = fit([(0.0, 179.9), (0.0, -179.9)], ratio=1.0)
    assert abs(shown.lon) == pytest.approx(180.0)
    assert shown.width == pytest.approx(0.2 * DEGREE / (1 - 2 * MARGIN))
    assert shown.project((0.0, 179.9))[0] == pytest.approx(MARGIN)
    assert shown.project((0.0, -179.9))[0] == pytest.approx(1 - MARGIN)
    assert [words for _, words in draw_grid(shown)[0]] == ["179.9° E", "180.0°", "179.9° W"]


def test_around_a_pole_distances_from_the_middle_are_true():
    ring = [(89.9, lon) for lon in (0.0, 90.0, 180.0, -90.0)]
    shown = fit(ring, ratio=1.0)
    assert shown.lat == pytest.approx(90.0)
    for position in ring:
        x, y = shown.project(position)
        assert math.hypot(x - 0.5, y - 0.5) * shown.width == pytest.approx(0.1 * DEGREE, rel=1e-6)
    assert {words for _, words in draw_grid(shown)[0]} == {"10\u00a0km W", "0", "10\u00a0km E"}


def test_a_single_position_and_equal_ones_give_the_smallest_map():
    for positions in ([HALENSEE], [HALENSEE] * 5, [(90.0, 0.0)], [(0.0, 180.0)]):
        shown = fit(positions, ratio=4 / 3)
        assert shown.width == pytest.approx(LEAST_SPAN / (1 - 2 * MARGIN))
        assert shown.project(positions[0]) == pytest.approx((0.5, 0.5))


def test_opposite_ends_of_the_earth_have_no_middle_and_still_a_map():
    positions = [(0.0, 0.0), (0.0, 180.0), (0.0, 90.0), (0.0, -90.0)]
    assert inside(fit(positions, ratio=2.0), positions)


@pytest.mark.parametrize("positions", [[(60.0, -80.0), (0.0, 80.0), (60.0, 0.0)], [(-70.0, 10.0), (75.0, 170.0)]])
def test_a_wide_map_shows_all(positions):
    assert inside(fit(positions, ratio=4 / 3), positions)


def test_reach_makes_room_around_a_position():
    shown = fit([HALENSEE], ratio=1.0, reach=[500.0])
    assert shown.width == pytest.approx(1000 / (1 - 2 * MARGIN))


@pytest.mark.parametrize(
    ("value", "below", "above"), [(1, 1, 1), (1.9, 1, 2), (49, 20, 50), (51, 50, 100), (0.3, 0.2, 0.5)]
)
def test_steps_are_1_2_or_5_times_a_power_of_ten(value, below, above):
    assert round_down(value) == pytest.approx(below)
    assert round_up(value) == pytest.approx(above)


@pytest.mark.parametrize("span", [0.0003, 0.002, 0.05, 0.7, 3.0, 20.0, 120.0])
def test_a_grid_has_a_few_lines_each_way_that_lie_on_the_map(span):
    shown = fit([(10.0 - span / 4, 20.0 - span / 2), (10.0 + span / 4, 20.0 + span / 2)], ratio=4 / 3)
    for lines in draw_grid(shown):
        assert 1 <= len(lines) <= 5
        assert all(0 <= at <= 1 for at, _ in lines)
        assert len({words for _, words in lines}) == len(lines)


def test_lines_are_named_with_the_digits_of_their_step():
    down, across = draw_grid(fit([(-0.001, -0.001), (0.001, 0.001)], ratio=1.0))
    assert [words for _, words in down] == ["0.001° W", "0.000°", "0.001° E"]
    assert [words for _, words in across] == ["0.001° S", "0.000°", "0.001° N"]
    assert down[1][0] == pytest.approx(0.5)


SIZE = (350.0, 260.0)


def test_marks_that_are_apart_stay():
    assert declutter([(50, 50), (100, 50)], 10, SIZE) == [(0, 0), (0, 0)]


def test_of_two_at_one_place_the_first_stays_and_the_second_goes_aside():
    first, second = declutter([(100, 100), (100, 100)], 10, SIZE)
    assert first == (0, 0)
    assert math.hypot(*second) >= 20


def test_ten_at_one_place_all_come_apart_inside_the_frame():
    points = [(20.0, 20.0)] * 10
    seats = [(x + dx, y + dy) for (x, y), (dx, dy) in zip(points, declutter(points, 10.5, SIZE), strict=True)]
    assert all(math.dist(*pair) >= 21 for pair in itertools.combinations(seats, 2))
    assert all(10.5 <= x <= SIZE[0] - 10.5 and 10.5 <= y <= SIZE[1] - 10.5 for x, y in seats)


def test_nothing_is_put_over_a_fixed_point():
    (offset,) = declutter([(100, 100)], 10, SIZE, fixed=[(105, 100)])
    assert math.dist((100 + offset[0], 100 + offset[1]), (105, 100)) >= 20


def test_where_there_is_no_room_a_mark_stays():
    assert declutter([(10, 10)] * 3, 10, (20, 20)) == [(0, 0)] * 3
