"""Points and ceilings → an SVG: rate against arithmetic intensity, both logarithmic (Williams et al., CACM 2009).

A point below the slanted ceiling waits for memory, one below a level ceiling for the arithmetic units.
"""

import math
from collections.abc import Sequence
from html import escape

from speed_parts.results import Point

WIDTH, HEIGHT = 960, 540
LEFT, RIGHT, TOP, BOTTOM = 70, 24, 56, 62
INTENSITIES = (0.125, 64.0)
RATES = (0.5, 256.0)
SPACING = 15  # between two labels
LABEL_GAP = 22  # between a mark and its label
STYLE = """
  text { font: 12px system-ui, sans-serif; fill: #24292f }
  .title { font-size: 15px; font-weight: 600 }
  .faint { fill: #57606a }
  .grid { stroke: #d0d7de; stroke-width: 1 }
  .ceiling { stroke: #57606a; stroke-width: 2; fill: none }
  .lead { stroke: #8c959f; stroke-width: 1 }
  .ours { fill: #0969da } .peer { fill: #ffffff; stroke: #bc4c00; stroke-width: 2 }
  text.ours { font-weight: 600 }
  .paper { fill: #ffffff }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3 } .faint { fill: #9198a1 } .grid { stroke: #30363d } .ceiling { stroke: #9198a1 }
    .lead { stroke: #6e7681 } .ours { fill: #58a6ff } .peer { fill: #0d1117; stroke: #f0883e } .paper { fill: #0d1117 }
  }
"""


def draw(machine: dict[str, float], points: Sequence[Point]) -> str:
    """machine: GMAC/s in "fp32" and "int8", GB/s in "read"; empty where it is not known."""
    shapes = [
        f'<rect class="paper" width="{WIDTH}" height="{HEIGHT}"/>',
        write(LEFT, 26, "One core: multiply-adds a second against multiply-adds a byte read", "title"),
        f'<circle class="ours" cx="{WIDTH - 150}" cy="22" r="5"/>',
        write(WIDTH - 138, 26, "resight", "ours"),
        f'<circle class="peer" cx="{WIDTH - 74}" cy="22" r="5"/>',
        write(WIDTH - 62, 26, "peers"),
        *draw_grid(),
        *draw_ceilings(machine),
    ]
    for column in sorted({point.intensity for point in points}):
        shapes += label_column([point for point in points if point.intensity == column])
    shapes += [mark(point) for point in points]
    label = "Roofline of the kernels and their peers"
    opening = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{label}">'
    return "\n".join([opening, f"<style>{STYLE}</style>", *shapes, "</svg>", ""])


def draw_grid() -> list[str]:
    shapes = []
    for intensity in powers(INTENSITIES):
        x = across(intensity)
        shapes += [
            line(x, TOP, x, HEIGHT - BOTTOM, "grid"),
            write(x, HEIGHT - BOTTOM + 18, name(intensity), "", "middle"),
        ]
    for rate in powers(RATES):
        y = up(rate)
        shapes += [line(LEFT, y, WIDTH - RIGHT, y, "grid"), write(LEFT - 8, y + 4, name(rate), "", "end")]
    middle = (LEFT + WIDTH - RIGHT) / 2
    shapes.append(write(middle, HEIGHT - 18, "multiply-adds a byte read from memory", "faint", "middle"))
    shapes.append(write(LEFT, TOP - 10, "GMAC/s", "faint", "end"))
    return shapes


def draw_ceilings(machine: dict[str, float]) -> list[str]:
    """Each level line begins where the slanted one reaches it."""
    if not machine:
        return []
    read, highest = machine["read"], max(machine["fp32"], machine["int8"])
    start, end = RATES[0] / read, highest / read
    start = max(start, INTENSITIES[0])
    shapes = [line(across(start), up(start * read), across(end), up(highest), "ceiling")]
    for kind in ("fp32", "int8"):
        y = up(machine[kind])
        shapes.append(line(across(machine[kind] / read), y, WIDTH - RIGHT, y, "ceiling"))
        shapes.append(write(WIDTH - RIGHT, y - 7, f"{kind} {machine[kind]:.0f} GMAC/s", "faint", "end"))
    x, y = across(start), up(start * read)
    slope = math.degrees(math.atan2(up(highest) - y, across(end) - x))
    shapes.append(
        f'<text class="faint" transform="translate({x + 46:.1f} {y - 44:.1f}) rotate({slope:.1f})">'
        f"memory {read:.0f} GB/s</text>"
    )
    return shapes


def label_column(points: Sequence[Point]) -> list[str]:
    """Labels of marks that stand above each other, moved apart."""
    shapes = []
    ordered = sorted(points, key=lambda point: -point.rate)
    for point, spot in zip(ordered, spread([up(point.rate) for point in ordered]), strict=True):
        x = across(point.intensity)
        shapes.append(line(x, up(point.rate), x + LABEL_GAP - 4, spot, "lead"))
        text = f"{point.name} {point.rate:.0f}" if point.rate >= 10 else f"{point.name} {point.rate:.1f}"
        shapes.append(write(x + LABEL_GAP, spot + 4, text, "ours" if point.ours else ""))
    return shapes


def spread(heights: Sequence[float]) -> list[float]:
    """Places at least SPACING apart, from ascending heights; those that are too close are centred together."""
    groups: list[list[float]] = []
    for height in heights:
        groups.append([height])
        while len(groups) > 1 and place(groups[-1])[0] - place(groups[-2])[-1] < SPACING:
            last = groups.pop()
            groups[-1] = groups[-1] + last
    return [spot for group in groups for spot in place(group)]


def place(group: list[float]) -> list[float]:
    top = sum(group) / len(group) - SPACING * (len(group) - 1) / 2
    return [top + SPACING * number for number in range(len(group))]


def mark(point: Point) -> str:
    kind = "ours" if point.ours else "peer"
    return f'<circle class="{kind}" cx="{across(point.intensity):.1f}" cy="{up(point.rate):.1f}" r="5"/>'


def across(intensity: float) -> float:
    share = math.log(intensity / INTENSITIES[0]) / math.log(INTENSITIES[1] / INTENSITIES[0])
    return LEFT + share * (WIDTH - LEFT - RIGHT)


def up(rate: float) -> float:
    share = math.log(rate / RATES[0]) / math.log(RATES[1] / RATES[0])
    return HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM)


def powers(ends: tuple[float, float]) -> list[float]:
    return [2.0**power for power in range(round(math.log2(ends[0])), round(math.log2(ends[1])) + 1)]


def name(value: float) -> str:
    return f"{value:g}" if value >= 1 else f"1/{round(1 / value)}"


def line(x0: float, y0: float, x1: float, y1: float, kind: str) -> str:
    return f'<line class="{kind}" x1="{x0:.1f}" y1="{y0:.1f}" x2="{x1:.1f}" y2="{y1:.1f}"/>'


def write(x: float, y: float, text: str, kind: str = "", where: str = "start") -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{where}">{escape(text)}</text>'
