"""Charts: scales, labels and marks at their places."""

import math
import re
from xml.etree import ElementTree

import pytest

from resight.evaluate.pages.charts import (
    BOTTOM,
    HEIGHT,
    LEFT,
    RIGHT,
    TOP,
    WIDTH,
    choose_labels,
    choose_scale,
    draw_chart,
)
from resight.evaluate.table import Chart, Line


def make(*values: float, **more: object) -> Chart:
    places = tuple(float(number) for number in range(len(values)))
    settings = {
        "title": "Quality",
        "x_label": "S",
        "positions": places,
        "ticks": tuple(f"t{n}" for n in range(len(values))),
    }
    return Chart(**(settings | {"lines": (Line("ap", values),)} | more))  # type: ignore[arg-type]


def read(chart: Chart) -> ElementTree.Element:
    """The drawing itself, which has to be well-formed."""
    return ElementTree.fromstring(re.findall(r'<svg class="chart".*</svg>', draw_chart(chart), re.DOTALL)[-1])


def places(chart: Chart) -> list[tuple[float, float]]:
    found = re.findall(r'<g transform="translate\(([\d.]+) ([\d.]+)\)"><circle', draw_chart(chart))
    return [(float(x), float(y)) for x, y in found]


@pytest.mark.parametrize(
    ("values", "from_zero", "scale"),
    [
        ((0.62, 0.84), False, (0.6, 0.9, 0.1)),
        ((0.83, 0.85), False, (0.83, 0.85, 0.01)),
        ((1.5, 23.0), True, (0, 30, 10)),
        ((0.5, 0.5), False, (0.5, 0.56, 0.02)),
    ],
)
def test_the_axis_goes_from_a_round_number_to_a_round_number(
    values: tuple[float, ...], from_zero: bool, scale: tuple[float, float, float]
) -> None:
    assert choose_scale(make(*values, from_zero=from_zero)) == pytest.approx(scale)


def test_values_lie_where_the_axes_say() -> None:
    points = places(make(0.0, 1.0, 0.5))
    low, high = HEIGHT - BOTTOM, TOP
    assert points == [(LEFT, low), ((LEFT + WIDTH - RIGHT) / 2, high), (WIDTH - RIGHT, (low + high) / 2)]


def test_a_single_place_is_in_the_middle() -> None:
    assert places(make(0.5))[0][0] == (LEFT + WIDTH - RIGHT) / 2


def test_a_value_that_is_missing_leaves_a_gap() -> None:
    assert len(places(make(0.1, math.nan, 0.3))) == 2
    assert places(make(math.nan)) == []


def test_the_marked_place_and_the_floor_are_drawn() -> None:
    drawing = draw_chart(make(0.2, 0.4, chosen=1, floor=(0.3, "94% of ap")))
    assert f'class="chosen" d="M{WIDTH - RIGHT:.1f} {TOP}V{HEIGHT - BOTTOM}"' in drawing
    assert "94% of ap" in drawing
    assert 'class="chosen"' not in draw_chart(make(0.2, 0.4))


def test_each_line_has_its_own_dashes_and_mark_and_a_key() -> None:
    drawing = draw_chart(make(0.1, lines=tuple(Line(name, (0.1,)) for name in "abcd")))
    assert len(set(re.findall(r'stroke-dasharray="([^"]+)"', drawing))) == 4
    assert all(f"</svg>{name}</span>" in drawing for name in "abcd")
    assert "<span>" not in draw_chart(make(0.1))


def test_a_point_tells_its_value() -> None:
    assert [title.text for title in read(make(0.125, 0.5)).iter("title")] == ["t0: ap 0.125", "t1: ap 0.5"]


def test_names_are_text_and_never_markup() -> None:
    drawing = draw_chart(make(0.1, title="<b>", x_label="<i>", ticks=("<u>",), lines=(Line("<s>", (0.1,)),)))
    assert not re.search("<[bius]>", drawing)


def test_labels_without_room_are_left_out_but_never_the_marked_or_the_last() -> None:
    assert choose_labels([50.0, 60.0, 200.0, 210.0], ("10", "11", "100", "110"), None) == [0, 3]
    assert choose_labels([50.0, 60.0, 200.0, 210.0], ("10", "11", "100", "110"), 1) == [1, 3]
