"""What quality costs, as SVG: one point a row, and the line of those that nothing cheaper beats.

In: a Scatter. Out: a <figure> for a page that has the style of chart.py and `STYLE`. The x axis is logarithmic where
costs span more than a factor of ten. Points on the front are named where there is room; every point says on hover what
it is.
"""

import html
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from resight.evaluate.pages.chart import BOTTOM, HEIGHT, LEFT, LETTER, RIGHT, TOP, WIDTH, Chart, Line, choose_scale

SMALL = 6.2  # width of a letter of a name, about
STYLE = """
.chart .dot{fill:var(--line-0);fill-opacity:.28;stroke:var(--line-0);stroke-opacity:.75}
.chart .front .dot{fill-opacity:1;stroke:var(--paper);stroke-opacity:1;stroke-width:1.5}
.chart .staircase{fill:none;stroke:var(--line-0);stroke-width:1.5;stroke-dasharray:4 3;opacity:.75}
.chart .name{font-size:11px;fill:var(--ink)}
.chart .dot:hover{fill-opacity:1}
"""


@dataclass(frozen=True)
class Dot:
    name: str
    cost: float  # above 0
    value: float


@dataclass(frozen=True)
class Scatter:
    title: str
    x_label: str
    y_label: str
    dots: tuple[Dot, ...]


def draw_scatter(scatter: Scatter) -> str:
    costs = [dot.cost for dot in scatter.dots]
    scale, ticks = _choose_axis(min(costs), max(costs))
    values = tuple(dot.value for dot in scatter.dots)
    lowest, highest, step = choose_scale(Chart("", "", tuple(range(len(values))), (), (Line("", values),)))
    left, right = scale(ticks[0]), scale(ticks[-1])

    def place(cost: float, value: float) -> tuple[float, float]:
        across = (scale(cost) - left) / max(right - left, 1e-9)
        return (
            LEFT + (WIDTH - LEFT - RIGHT) * across,
            HEIGHT - BOTTOM - (HEIGHT - BOTTOM - TOP) * (value - lowest) / (highest - lowest),
        )

    front = find_front(scatter.dots)
    parts = [*_draw_axes(scatter, ticks, [place(tick, lowest)[0] for tick in ticks], lowest, highest, step)]
    corners = [place(dot.cost, dot.value) for dot in (scatter.dots[number] for number in front)]
    if len(corners) > 1:
        stairs = "".join(f"H{x:.1f}V{y:.1f}" for x, y in corners[1:])
        parts.append(f'<path class="staircase" d="M{corners[0][0]:.1f} {corners[0][1]:.1f}{stairs}"/>')
    others = [number for number in range(len(scatter.dots)) if number not in front]
    parts += [
        _draw_dot(scatter, number, *place(scatter.dots[number].cost, scatter.dots[number].value)) for number in others
    ]
    parts.append('<g class="front">')
    parts += [_draw_dot(scatter, number, x, y) for number, (x, y) in zip(front, corners, strict=True)]
    parts.append("</g>")
    everywhere = [place(dot.cost, dot.value) for dot in scatter.dots]
    parts += _name_front([scatter.dots[number].name for number in front], corners, everywhere)
    title = html.escape(scatter.title)
    return (
        f"<figure><figcaption>{title}</figcaption><div class=key><span>filled: nothing cheaper is as good</span></div>"
        f'<svg class="chart" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{title}, '
        f'{len(scatter.dots)} configurations">{"".join(parts)}</svg></figure>'
    )


def find_front(dots: Sequence[Dot]) -> list[int]:
    """Numbers of the dots that are better than all that cost no more, from the cheapest."""
    front: list[int] = []
    for number in sorted(range(len(dots)), key=lambda number: (dots[number].cost, -dots[number].value)):
        if not front or dots[number].value > dots[front[-1]].value:
            front.append(number)
    return front


def say_number(value: float) -> str:
    """Short, for an axis: 1, 2.5, 40, 3k, 1.2M."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:.3g}{letter}"
    return f"{value:.3g}"


def _choose_axis(low: float, high: float) -> tuple["_Scale", list[float]]:
    """How a cost becomes a place, and the ticks, which reach from at or below the lowest to at or above the highest."""
    if high > 10 * low:
        first, last = math.floor(math.log10(low) + 1e-9), math.ceil(math.log10(high) - 1e-9)
        steps = [10.0**power for power in range(first, last + 1)]
        return _Scale(True), steps if len(steps) > 2 else [steps[0], 3 * steps[0], steps[1]]
    lowest, highest, step = choose_scale(Chart("", "", (0, 1), (), (Line("", (low, high)),)))
    return _Scale(False), [lowest + step * number for number in range(round((highest - lowest) / step) + 1)]


@dataclass(frozen=True)
class _Scale:
    logarithmic: bool

    def __call__(self, value: float) -> float:
        return math.log10(value) if self.logarithmic else value


def _draw_axes(
    scatter: Scatter, ticks: Sequence[float], columns: Sequence[float], lowest: float, highest: float, step: float
) -> Iterator[str]:
    digits = max(0, -math.floor(math.log10(step) + 1e-9))
    for number in range(round((highest - lowest) / step) + 1):
        value = lowest + number * step
        at = HEIGHT - BOTTOM - (HEIGHT - BOTTOM - TOP) * (value - lowest) / (highest - lowest)
        yield f'<path class="grid" d="M{LEFT} {at:.1f}H{WIDTH - RIGHT}"/>'
        yield f'<text x="{LEFT - 8}" y="{at + 4:.1f}" text-anchor="end">{value:,.{digits}f}</text>'
    ends = -math.inf
    for tick, at in zip(ticks, columns, strict=True):
        yield f'<path class="grid" d="M{at:.1f} {HEIGHT - BOTTOM}v5"/>'
        words = say_number(tick)
        if at - LETTER * len(words) / 2 > ends:
            yield f'<text x="{at:.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{words}</text>'
            ends = at + LETTER * (len(words) / 2 + 1)
    middle = (LEFT + WIDTH - RIGHT) / 2
    yield f'<text x="{middle:.1f}" y="{HEIGHT - 8}" text-anchor="middle">{html.escape(scatter.x_label)}</text>'


def _draw_dot(scatter: Scatter, number: int, x: float, y: float) -> str:
    dot = scatter.dots[number]
    words = html.escape(f"{dot.name}: {scatter.y_label} {dot.value:.4f}, {scatter.x_label} {say_number(dot.cost)}")
    return f'<circle class="dot" cx="{x:.1f}" cy="{y:.1f}" r="5"><title>{words}</title></circle>'


def _name_front(
    names: Sequence[str], corners: Sequence[tuple[float, float]], dots: Sequence[tuple[float, float]]
) -> Iterator[str]:
    """Names beside their points, from the best down, where none would lie on another or on a point.

    Above the front and to its left there is nothing, so that this side is tried first.
    """
    taken: list[tuple[float, float, float, float]] = [(x - 5, y - 5, x + 5, y + 5) for x, y in dots]
    for name, (x, y) in reversed(list(zip(names, corners, strict=True))):
        words = name if len(name) <= 34 else f"{name[:33]}…"
        width = SMALL * len(words)
        for left, top in ((x - width - 8, y - 13), (x - width - 8, y - 5), (x + 8, y + 4), (x + 8, y - 5)):
            box = (left, top, left + width, top + 13)
            inside = left >= LEFT and box[2] <= WIDTH and top >= 0 and box[3] <= HEIGHT - BOTTOM
            if inside and not any(
                box[0] < other[2] and other[0] < box[2] and box[1] < other[3] and other[1] < box[3] for other in taken
            ):
                taken.append(box)
                yield f'<text class="name" x="{left:.1f}" y="{top + 10:.1f}">{html.escape(words)}</text>'
                break
