"""Records that differ by one number (K, S, the level, a weight …) → for each such number a Chart of quality against it.

Settings are those of the recipes. Records that agree in everything but the number make one line; a line has at least
two points, and a chart at least one line of three.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from resight.evaluate.pages.chart import DASHES, Chart, Line
from resight.evaluate.records import Record

MOST_LINES = len(DASHES)  # that can be told apart
Settings = dict[str, Any]


def draw_sweeps(records: Sequence[Record], metric: str) -> tuple[Chart, ...]:
    """Records of the same data."""
    settings = [flatten(record.recipe) for record in records]
    keys = sorted({key for one in settings for key in one})
    differing = [key for key in keys if len({repr(one.get(key)) for one in settings}) > 1 and key != "name"]
    charts = [
        _draw(records, settings, key, [other for other in differing if other != key], metric) for key in differing
    ]
    return tuple(chart for chart in charts if chart is not None)


def flatten(value: Any, before: str = "") -> Settings:
    """{"branches": [{"descriptor": {"k": 32}}]} → {"branches.0.descriptor.k": 32}."""
    if isinstance(value, Mapping):
        parts: Sequence[tuple[Any, Any]] = list(value.items())
    elif isinstance(value, (list, tuple)):
        parts = list(enumerate(value))
    else:
        return {before: value}
    found: Settings = {}
    for name, part in parts:
        found |= flatten(part, f"{before}.{name}" if before else str(name))
    return found


def _draw(
    records: Sequence[Record], settings: Sequence[Settings], key: str, others: Sequence[str], metric: str
) -> Chart | None:
    lines: dict[str, dict[float, Record]] = {}
    for record, one in zip(records, settings, strict=True):
        value = one.get(key)
        if isinstance(value, bool) or not isinstance(value, (int, float)) or metric not in record.figures:
            continue
        kind = ", ".join(_say(other, one[other]) for other in others if one.get(other) not in (None, ""))
        lines.setdefault(kind, {})[float(value)] = record
    drawn = [kind for kind in lines if len(lines[kind]) > 1]
    best = {kind: max(record.figures[metric].mean for record in lines[kind].values()) for kind in drawn}
    long = sorted(drawn, key=lambda kind: (-len(lines[kind]), -best[kind]))[:MOST_LINES]
    if not long or len(lines[long[0]]) < 3:
        return None
    places = sorted({value for kind in long for value in lines[kind]})
    stretched = places[0] > 0 and places[-1] > 10 * places[0]
    name = key.rpartition(".")[2]
    return Chart(
        f"{metric} against {name}",
        f"{name}, logarithmic" if stretched else name,
        tuple(math.log10(place) if stretched else place for place in places),
        tuple(f"{place:g}" for place in places),
        tuple(_line(kind or metric, [lines[kind].get(place) for place in places], metric) for kind in long),
    )


def _line(name: str, rows: Sequence[Record | None], metric: str) -> Line:
    figures = [None if row is None else row.figures[metric] for row in rows]
    return Line(
        name,
        tuple(math.nan if figure is None else figure.mean for figure in figures),
        tuple((math.nan, math.nan) if figure is None else (figure.low, figure.high) for figure in figures),
    )


def _say(key: str, value: Any) -> str:
    name = key.rpartition(".")[2]
    return str(value) if name == "name" else f"{name}={value}"
