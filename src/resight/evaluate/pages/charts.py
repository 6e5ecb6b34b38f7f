"""Charts as SVG, for pages without script: lines over shared x positions, and quality against cost.

In: a Chart or a Scatter. Out: a <figure> for a page that has `STYLE`. Colours follow the page, light or dark; lines
differ in dashes and marks as well as in colour. In a Scatter (one point per row), the x axis is logarithmic if costs
span more than a factor of ten; a line joins the points that nothing cheaper beats, named if there is room. Every point
shows its label on hover. Drawn here rather than by a plotting library: the pages must work without script or server.
"""

import html
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from resight.evaluate.table import MOST_LINES, Chart, Line

WIDTH, HEIGHT = 460, 290
LEFT, RIGHT, TOP, BOTTOM = 50, 30, 16, 46  # room around the plot
DIGIT_WIDTH = 7.6  # of an axis label, about
NAME_WIDTH = 6.2  # of a letter of a point's name, about
DASHES = ("none", "7 4", "2 4", "9 3 2 3")  # MOST_LINES of them
STYLE = """
.charts{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(24rem,100%),1fr));gap:1rem 2rem;margin:1.5rem 0;
 align-items:end}
figure{margin:0;min-width:0}
figcaption{font-weight:600}
.key{display:flex;flex-wrap:wrap;gap:.1rem 1.1rem;font-size:.86rem;color:var(--soft);min-height:1.4rem}
.key svg{width:34px;height:12px;vertical-align:-1px;margin-right:.35rem}
.chart{width:100%;height:auto;max-width:38rem;display:block;font:12px system-ui,sans-serif;--line-0:#0068ad;
 --line-1:#c14d00;--line-2:#00795a;--line-3:#a8478a}
.key{--line-0:#0068ad;--line-1:#c14d00;--line-2:#00795a;--line-3:#a8478a}
@media(prefers-color-scheme:dark){.chart,.key{--line-0:#63b8f2;--line-1:#f0a04b;--line-2:#3fcf9f;--line-3:#eb9fd2}}
.chart text{fill:var(--soft)}
.chart .grid{stroke:var(--line)}
.chart .span{stroke-width:1.5;opacity:.45}
.chart .chosen{stroke:var(--ink);stroke-width:1.2;opacity:.55}
.chart .floor,.key .floor{stroke:var(--ink);stroke-dasharray:3 3;opacity:.7}
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


def draw_chart(chart: Chart) -> str:
    lowest, highest, step = choose_scale(chart)
    span = max(chart.positions[-1] - chart.positions[0], 1e-9)

    def x(position: float) -> float:
        middle = (LEFT + WIDTH - RIGHT) / 2
        if len(chart.positions) == 1:
            return middle
        room = (WIDTH - LEFT - RIGHT) / (2 * len(chart.positions)) if chart.inset else 0
        return LEFT + room + (WIDTH - LEFT - RIGHT - 2 * room) * (position - chart.positions[0]) / span

    def y(value: float) -> float:
        return HEIGHT - BOTTOM - (HEIGHT - BOTTOM - TOP) * (value - lowest) / (highest - lowest)

    columns = [x(position) for position in chart.positions]
    parts = list(_draw_chart_axes(chart, columns, [(value, y(value)) for value in _count(lowest, highest, step)], step))
    if chart.chosen is not None:
        at = columns[chart.chosen]
        parts.append(f'<path class="chosen" d="M{at:.1f} {TOP}V{HEIGHT - BOTTOM}"/>')
    if chart.floor is not None and not math.isnan(chart.floor[0]):
        parts.append(f'<path class="floor" d="M{LEFT} {y(chart.floor[0]):.1f}H{WIDTH - RIGHT}"/>')
    for number, line in enumerate(chart.lines):
        points = [
            (column, y(value), f"{tick}: {line.name} {value:.4g}")
            for column, value, tick in zip(columns, line.values, chart.ticks, strict=True)
            if not math.isnan(value)
        ]
        parts += [
            f'<path class="span" d="M{column:.1f} {y(low):.1f}V{y(high):.1f}" style="stroke:{_colour(number)}"/>'
            for column, (low, high) in zip(columns, line.intervals, strict=False)
            if not (math.isnan(low) or math.isnan(high))
        ]
        parts += _draw_line(points, number)
    title, below = html.escape(chart.title), html.escape(chart.x_label)
    return (
        f"<figure><figcaption>{title}</figcaption><div class=key>{_draw_key(chart)}</div>"
        f'<svg class="chart" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{title} against {below}">'
        f"{''.join(parts)}</svg></figure>"
    )


def draw_scatter(scatter: Scatter) -> str:
    costs = [dot.cost for dot in scatter.dots]
    scale, ticks = _choose_axis(min(costs), max(costs))
    values = tuple(dot.value for dot in scatter.dots)
    lowest, highest, step = choose_scale(Chart("", "", tuple(range(len(values))), (), (Line("", values),)))
    left, right = scale(ticks[0]), scale(ticks[-1])

    def locate(cost: float, value: float) -> tuple[float, float]:
        across = (scale(cost) - left) / max(right - left, 1e-9)
        return (
            LEFT + (WIDTH - LEFT - RIGHT) * across,
            HEIGHT - BOTTOM - (HEIGHT - BOTTOM - TOP) * (value - lowest) / (highest - lowest),
        )

    front = find_front(scatter.dots)
    parts = [*_draw_scatter_axes(scatter, ticks, [locate(tick, lowest)[0] for tick in ticks], lowest, highest, step)]
    corners = [locate(dot.cost, dot.value) for dot in (scatter.dots[number] for number in front)]
    if len(corners) > 1:
        stairs = "".join(f"H{x:.1f}V{y:.1f}" for x, y in corners[1:])
        parts.append(f'<path class="staircase" d="M{corners[0][0]:.1f} {corners[0][1]:.1f}{stairs}"/>')
    others = [number for number in range(len(scatter.dots)) if number not in front]
    parts += [
        _draw_dot(scatter, number, *locate(scatter.dots[number].cost, scatter.dots[number].value)) for number in others
    ]
    parts.append('<g class="front">')
    parts += [_draw_dot(scatter, number, x, y) for number, (x, y) in zip(front, corners, strict=True)]
    parts.append("</g>")
    everywhere = [locate(dot.cost, dot.value) for dot in scatter.dots]
    parts += _name_front([scatter.dots[number].name for number in front], corners, everywhere)
    title = html.escape(scatter.title)
    return (
        f"<figure><figcaption>{title}</figcaption><div class=key><span>filled: nothing cheaper is as good</span></div>"
        f'<svg class="chart" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{title}, '
        f'{len(scatter.dots)} configurations">{"".join(parts)}</svg></figure>'
    )


def choose_scale(chart: Chart) -> tuple[float, float, float]:
    """Lowest and highest value of the y axis, and the step of its numbers: 1, 2 or 5 times a power of 10."""
    values = [value for line in chart.lines for value in line.values if not math.isnan(value)]
    values += [end for line in chart.lines for interval in line.intervals for end in interval if not math.isnan(end)]
    values += [chart.floor[0]] if chart.floor is not None and not math.isnan(chart.floor[0]) else []
    lowest = 0.0 if chart.from_zero else min(values, default=0.0)
    highest = max(values, default=1.0)
    if highest - lowest < 1e-9:
        highest = lowest + (abs(lowest) or 1.0) * 0.1
    power = 10.0 ** math.floor(math.log10((highest - lowest) / 2))
    step = next(factor * power for factor in (10, 5, 2, 1) if (highest - lowest) / (factor * power) >= 2 or factor == 1)
    return math.floor(lowest / step + 1e-9) * step, math.ceil(highest / step - 1e-9) * step, step


def _draw_chart_axes(
    chart: Chart, columns: list[float], levels: list[tuple[float, float]], step: float
) -> Iterator[str]:
    digits = max(0, -math.floor(math.log10(step) + 1e-9))
    for value, at in levels:
        yield f'<path class="grid" d="M{LEFT} {at:.1f}H{WIDTH - RIGHT}"/>'
        yield f'<text x="{LEFT - 8}" y="{at + 4:.1f}" text-anchor="end">{value:,.{digits}f}</text>'
    centres = [min(at, WIDTH - DIGIT_WIDTH * len(tick) / 2) for at, tick in zip(columns, chart.ticks, strict=True)]
    for number in choose_labels(centres, chart.ticks, chart.chosen):
        words = html.escape(chart.ticks[number])
        yield f'<path class="grid" d="M{columns[number]:.1f} {HEIGHT - BOTTOM}v5"/>'
        yield f'<text x="{centres[number]:.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{words}</text>'
    middle = (LEFT + WIDTH - RIGHT) / 2
    yield f'<text x="{middle:.1f}" y="{HEIGHT - 8}" text-anchor="middle">{html.escape(chart.x_label)}</text>'


def choose_labels(columns: list[float], ticks: tuple[str, ...], chosen: int | None) -> list[int]:
    """The ticks that fit: the marked one, the last, then the others from the left."""
    shown: list[int] = []
    for number in [*([] if chosen is None else [chosen]), len(columns) - 1, *range(len(columns))]:
        half = DIGIT_WIDTH * len(ticks[number]) / 2
        if all(
            abs(columns[number] - columns[other]) > half + DIGIT_WIDTH * (len(ticks[other]) / 2 + 1) for other in shown
        ):
            shown.append(number)
    return sorted(shown)


def _draw_line(points: list[tuple[float, float, str]], number: int) -> Iterator[str]:
    if not points:
        return
    path = "L".join(f"{x:.1f} {y:.1f}" for x, y, _ in points)
    yield f'<path d="M{path}" {_stroke(number)}/>'
    for x, y, words in points:
        yield f'<g transform="translate({x:.1f} {y:.1f})">{_draw_mark(number)}<title>{html.escape(words)}</title></g>'


def _draw_mark(number: int) -> str:
    shape = (
        '<circle r="4"',
        '<path d="M-4-4h8v8h-8z"',
        '<path d="M0-5.2L5 4H-5z"',
        '<path d="M0-5.4L5.4 0L0 5.4L-5.4 0z"',
    )[number % MOST_LINES]
    return f'{shape} style="fill:{_colour(number)}"/>'


def _stroke(number: int) -> str:
    dashes = DASHES[number % MOST_LINES]
    return f'fill="none" stroke-width="2" stroke-dasharray="{dashes}" style="stroke:{_colour(number)}"'


def _colour(number: int) -> str:
    return f"var(--line-{number % MOST_LINES})"


def _draw_key(chart: Chart) -> str:
    samples = [
        (f'<path d="M0 6H34" {_stroke(number)}/><g transform="translate(17 6)">{_draw_mark(number)}</g>', line.name)
        for number, line in enumerate(chart.lines)
        if len(chart.lines) > 1
    ]
    samples += [('<path class="floor" d="M0 6H34"/>', chart.floor[1])] if chart.floor is not None else []
    return "".join(
        f'<span><svg viewBox="0 0 34 12" aria-hidden="true">{sample}</svg>{html.escape(name)}</span>'
        for sample, name in samples
    )


def _count(lowest: float, highest: float, step: float) -> Iterator[float]:
    for number in range(round((highest - lowest) / step) + 1):
        yield lowest + number * step


def find_front(dots: Sequence[Dot]) -> list[int]:
    """Numbers of the dots that are better than all dots of the same or a lower cost, cheapest first."""
    front: list[int] = []
    for number in sorted(range(len(dots)), key=lambda number: (dots[number].cost, -dots[number].value)):
        if not front or dots[number].value > dots[front[-1]].value:
            front.append(number)
    return front


def format_number(value: float) -> str:
    """Short, for an axis: 1, 2.5, 40, 3k, 1.2M."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:.3g}{letter}"
    return f"{value:.3g}"


def _choose_axis(low: float, high: float) -> tuple["_Scale", list[float]]:
    """How a cost becomes a position, and ticks that enclose the lowest and the highest cost."""
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


def _draw_scatter_axes(
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
        words = format_number(tick)
        if at - DIGIT_WIDTH * len(words) / 2 > ends:
            yield f'<text x="{at:.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{words}</text>'
            ends = at + DIGIT_WIDTH * (len(words) / 2 + 1)
    middle = (LEFT + WIDTH - RIGHT) / 2
    yield f'<text x="{middle:.1f}" y="{HEIGHT - 8}" text-anchor="middle">{html.escape(scatter.x_label)}</text>'


def _draw_dot(scatter: Scatter, number: int, x: float, y: float) -> str:
    dot = scatter.dots[number]
    words = html.escape(f"{dot.name}: {scatter.y_label} {dot.value:.4f}, {scatter.x_label} {format_number(dot.cost)}")
    return f'<circle class="dot" cx="{x:.1f}" cy="{y:.1f}" r="5"><title>{words}</title></circle>'


def _name_front(
    names: Sequence[str], corners: Sequence[tuple[float, float]], dots: Sequence[tuple[float, float]]
) -> Iterator[str]:
    """Names beside their points, best first, unless they would cover another name or a point.

    The area above and left of the front is empty, so that side is tried first.
    """
    taken: list[tuple[float, float, float, float]] = [(x - 5, y - 5, x + 5, y + 5) for x, y in dots]
    for name, (x, y) in reversed(list(zip(names, corners, strict=True))):
        words = name if len(name) <= 34 else f"{name[:33]}…"
        width = NAME_WIDTH * len(words)
        for left, top in ((x - width - 8, y - 13), (x - width - 8, y - 5), (x + 8, y + 4), (x + 8, y - 5)):
            box = (left, top, left + width, top + 13)
            inside = left >= LEFT and box[2] <= WIDTH and top >= 0 and box[3] <= HEIGHT - BOTTOM
            if inside and not any(
                box[0] < other[2] and other[0] < box[2] and box[1] < other[3] and other[1] < box[3] for other in taken
            ):
                taken.append(box)
                yield f'<text class="name" x="{left:.1f}" y="{top + 10:.1f}">{html.escape(words)}</text>'
                break
