"""Conditions on many images at once: the same as one by one."""

from hypothesis import given
from hypothesis import strategies as some

from resight.search.filters import OPERATORS, Circle, Condition, make_column, make_places
from resight.types import Attribute

VALUES = some.one_of(
    some.booleans(),
    some.integers(-3, 3),
    some.floats(),
    some.sampled_from(["", "a", "B", "True", "true", "1", "1.0", " 2 ", "nan", "inf", "é"]),
)


@given(
    some.lists(some.dictionaries(some.sampled_from(["x", "y"]), VALUES)),
    some.sampled_from(sorted(OPERATORS)),
    some.one_of(VALUES.map(str), some.sampled_from(["TRUE", "False", "b", "1e0"])),
)
def test_a_column_meets_a_condition_where_its_images_do(rows: list[dict[str, Attribute]], sign: str, value: str):
    condition = Condition("x", sign, value)
    assert make_column(rows, "x").meet(condition).tolist() == [condition.holds(row) for row in rows]


@given(some.lists(some.dictionaries(some.sampled_from(["lat", "lon"]), some.one_of(VALUES, some.floats(-200, 200)))))
def test_places_lie_in_a_circle_where_their_images_do(rows: list[dict[str, Attribute]]):
    circle = Circle(10, 20, 5_000_000)
    assert make_places(rows).meet(circle).tolist() == [circle.holds(row) for row in rows]
