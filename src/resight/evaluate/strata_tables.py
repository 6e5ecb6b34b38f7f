"""Tables and charts of quality by a property of the positives, or by a setting of the recipes.

In: evaluated rows on the same data. Out: for each property that positives were broken down by, a Table and a Chart of
quality against its bins (`tabulate_strata`); for each number in which recipes differ (K, S, the level, a weight …), a
Chart of quality against it (`chart_settings`). Rows that agree in everything but the number make one line; a line has
at least two points, and a chart at least one line of three.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from resight.evaluate.evaluation import Row
from resight.evaluate.summary import BreakdownSummary
from resight.evaluate.table import MOST_LINES, Chart, Line, Table

BINS_NOTE = "positives are split into bins of about equal count; a bin leaves out queries without a positive in it"
Settings = dict[str, Any]


@dataclass(frozen=True)
class Stratum:
    table: Table
    chart: Chart


def tabulate_strata(rows: Sequence[Row], metric: str) -> list[Stratum]:
    """Rows on the same data. One row shows all its metrics, several show `metric`."""
    names = dict.fromkeys(part.name for row in rows for part in row.summary.breakdowns)
    return [_tabulate_stratum(name, rows, metric) for name in names]


def chart_settings(rows: Sequence[Row], metric: str) -> tuple[Chart, ...]:
    """Rows on the same data; empty if their recipes differ in no number."""
    settings = [flatten(row.summary.recipe) for row in rows]
    keys = sorted({key for one in settings for key in one})
    differing = [key for key in keys if len({repr(one.get(key)) for one in settings}) > 1 and key != "name"]
    charts = [
        _chart_setting(rows, settings, key, [other for other in differing if other != key], metric) for key in differing
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


def _tabulate_stratum(name: str, rows: Sequence[Row], metric: str) -> Stratum:
    found = {row.label: part for row in rows for part in row.summary.breakdowns if part.name == name}
    means = {row.label: row.summary.figures[metric].mean for row in rows}
    best = sorted(found, key=lambda label: -means[label])[:MOST_LINES]
    first = next(iter(found.values()))
    labels = [one.label for one in first.bins]
    if len(found) == 1:
        metrics = list(first.bins[0].figures) if first.bins else []
        cells = tuple(
            (one.label, f"{one.positives:,}", f"{one.queries:,}", *(str(one.figures[m]) for m in metrics))
            for one in first.bins
        )
        table = Table(f"By {name}", (name, "positives", "queries", *metrics), cells, _explain(first))
        lines = tuple(_draw_bins(m, first, m) for m in metrics[:MOST_LINES])
    else:
        cells = tuple((label, *(str(one.figures[metric]) for one in part.bins)) for label, part in found.items())
        table = Table(f"{metric} by {name}", ("configuration", *labels), cells, _explain(first))
        lines = tuple(_draw_bins(label, found[label], metric) for label in best)
    title = f"{'Quality' if len(found) == 1 else metric} by {name}"
    return Stratum(table, Chart(title, name, tuple(range(len(labels))), tuple(labels), lines, inset=True))


def _draw_bins(name: str, part: BreakdownSummary, metric: str) -> Line:
    figures = [one.figures[metric] for one in part.bins]
    return Line(name, tuple(figure.mean for figure in figures), tuple((figure.low, figure.high) for figure in figures))


def _explain(part: BreakdownSummary) -> tuple[str, ...]:
    return (
        f"{part.name}: {part.convention}",
        BINS_NOTE,
        *([f"{part.left_out:,} positives are in no bin: their value is unknown"] if part.left_out else []),
    )


def _chart_setting(
    rows: Sequence[Row], settings: Sequence[Settings], key: str, others: Sequence[str], metric: str
) -> Chart | None:
    lines: dict[str, dict[float, Row]] = {}
    for row, one in zip(rows, settings, strict=True):
        value = one.get(key)
        if isinstance(value, bool) or not isinstance(value, (int, float)) or metric not in row.summary.figures:
            continue
        kind = ", ".join(_format_setting(other, one[other]) for other in others if one.get(other) not in (None, ""))
        lines.setdefault(kind, {})[float(value)] = row
    drawn = [kind for kind in lines if len(lines[kind]) > 1]
    best = {kind: max(row.summary.figures[metric].mean for row in lines[kind].values()) for kind in drawn}
    longest = sorted(drawn, key=lambda kind: (-len(lines[kind]), -best[kind]))[:MOST_LINES]
    if not longest or len(lines[longest[0]]) < 3:
        return None
    values = sorted({value for kind in longest for value in lines[kind]})
    logarithmic = values[0] > 0 and values[-1] > 10 * values[0]
    name = key.rpartition(".")[2]
    return Chart(
        f"{metric} against {name}",
        f"{name}, logarithmic" if logarithmic else name,
        tuple(math.log10(value) if logarithmic else value for value in values),
        tuple(f"{value:g}" for value in values),
        tuple(_draw_setting(kind or metric, [lines[kind].get(value) for value in values], metric) for kind in longest),
    )


def _draw_setting(name: str, rows: Sequence[Row | None], metric: str) -> Line:
    figures = [None if row is None else row.summary.figures[metric] for row in rows]
    return Line(
        name,
        tuple(math.nan if figure is None else figure.mean for figure in figures),
        tuple((math.nan, math.nan) if figure is None else (figure.low, figure.high) for figure in figures),
    )


def _format_setting(key: str, value: Any) -> str:
    name = key.rpartition(".")[2]
    return str(value) if name == "name" else f"{name}={value}"
