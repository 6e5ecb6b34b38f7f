import itertools
import math

from resight.explain.projection import spread

SIZE = (350.0, 260.0)


def test_marks_that_are_apart_stay():
    assert spread([(50, 50), (100, 50)], 10, SIZE) == [(0, 0), (0, 0)]


def test_of_two_at_one_place_the_first_stays_and_the_second_goes_aside():
    first, second = spread([(100, 100), (100, 100)], 10, SIZE)
    assert first == (0, 0)
    assert math.hypot(*second) >= 20


def test_ten_at_one_place_all_come_apart_inside_the_frame():
    points = [(20.0, 20.0)] * 10
    seats = [(x + dx, y + dy) for (x, y), (dx, dy) in zip(points, spread(points, 10.5, SIZE), strict=True)]
    assert all(math.dist(*pair) >= 21 for pair in itertools.combinations(seats, 2))
    assert all(10.5 <= x <= SIZE[0] - 10.5 and 10.5 <= y <= SIZE[1] - 10.5 for x, y in seats)


def test_nothing_is_put_over_a_fixed_point():
    (offset,) = spread([(100, 100)], 10, SIZE, fixed=[(105, 100)])
    assert math.dist((100 + offset[0], 100 + offset[1]), (105, 100)) >= 20


def test_where_there_is_no_room_a_mark_stays():
    assert spread([(10, 10)] * 3, 10, (20, 20)) == [(0, 0)] * 3
