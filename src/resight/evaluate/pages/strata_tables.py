"""Records whose positives were broken down → for each property a Table and a Chart of quality against its bins.

Records that differ by one number (K, S, the level, a weight …) → for each such number a Chart of quality against it.

Settings are those of the recipes. Records that agree in everything but the number make one line; a line has at least
two points, and a chart at least one line of three.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from resight.evaluate.pages.charts import DASHES, Chart, Line
from resight.evaluate.records import Record
from resight.evaluate.table import Table

NO_BINS = "positives are cut into bins of about equal count; a query without a positive in a bin is left out of it"


@dataclass(frozen=True)
class Stratum:
    table: Table
    chart: Chart


def draw_strata(records: Sequence[Record], metric: str) -> list[Stratum]:
    """Records of the same data. One record shows all its metrics, several show `metric`."""
    names = dict.fromkeys(part["name"] for record in records for part in record.evaluation.get("breakdowns", ()))
    return [_draw(name, records, metric) for name in names]


def _draw(name: str, records: Sequence[Record], metric: str) -> Stratum:
    found = {
        record.label: part for record in records for part in record.evaluation["breakdowns"] if part["name"] == name
    }
    best = sorted(found, key=lambda label: -_mean_of(records, label, metric))[: len(DASHES)]
    first = next(iter(found.values()))
    bins = [one["label"] for one in first["bins"]]
    if len(found) == 1:
        metrics = list(first["bins"][0]["metrics"]) if first["bins"] else []
        rows = tuple(
            (one["label"], f"{one['positives']:,}", f"{one['queries']:,}", *(_say(one["metrics"][m]) for m in metrics))
            for one in first["bins"]
        )
        table = Table(f"By {name}", (name, "positives", "queries", *metrics), rows, _explain(first))
        lines = tuple(_line(m, first, m) for m in metrics[: len(DASHES)])
    else:
        rows = tuple((label, *(_say(one["metrics"][metric]) for one in part["bins"])) for label, part in found.items())
        table = Table(f"{metric} by {name}", ("configuration", *bins), rows, _explain(first))
        lines = tuple(_line(label, found[label], metric) for label in best)
    title = f"{'Quality' if len(found) == 1 else metric} by {name}"
    return Stratum(table, Chart(title, name, tuple(range(len(bins))), tuple(bins), lines, inset=True))


def _line(name: str, part: Mapping[str, Any], metric: str) -> Line:
    figures = [one["metrics"][metric] for one in part["bins"]]
    return Line(
        name,
        tuple(_number(figure["mean"]) for figure in figures),
        tuple((_number(figure["low"]), _number(figure["high"])) for figure in figures),
    )


def _mean_of(records: Sequence[Record], label: str, metric: str) -> float:
    return next(record.figures[metric].mean for record in records if record.label == label)


def _explain(part: Mapping[str, Any]) -> tuple[str, ...]:
    left = part.get("positives_left_out", 0)
    return (
        f"{part['name']}: {part['convention']}",
        NO_BINS,
        *([f"{left:,} positives are in no bin: it is not known of them"] if left else []),
    )


def _say(figure: Mapping[str, Any]) -> str:
    mean, low, high = (_number(figure[key]) for key in ("mean", "low", "high"))
    return "–" if math.isnan(mean) else f"{mean:.4f} ±{(high - low) / 2:.3f}"


def _number(value: Any) -> float:
    return math.nan if value is None else float(value)


MOST_LINES = len(DASHES)  # that can be told apart
Settings = dict[str, Any]


def draw_sweeps(records: Sequence[Record], metric: str) -> tuple[Chart, ...]:
    """Records of the same data."""
    settings = [flatten(record.recipe) for record in records]
    keys = sorted({key for one in settings for key in one})
    differing = [key for key in keys if len({repr(one.get(key)) for one in settings}) > 1 and key != "name"]
    charts = [
        _draw_sweeps(records, settings, key, [other for other in differing if other != key], metric)
        for key in differing
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


def _draw_sweeps(
    records: Sequence[Record], settings: Sequence[Settings], key: str, others: Sequence[str], metric: str
) -> Chart | None:
    lines: dict[str, dict[float, Record]] = {}
    for record, one in zip(records, settings, strict=True):
        value = one.get(key)
        if isinstance(value, bool) or not isinstance(value, (int, float)) or metric not in record.figures:
            continue
        kind = ", ".join(_say_sweeps(other, one[other]) for other in others if one.get(other) not in (None, ""))
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
        tuple(_line_sweeps(kind or metric, [lines[kind].get(place) for place in places], metric) for kind in long),
    )


def _line_sweeps(name: str, rows: Sequence[Record | None], metric: str) -> Line:
    figures = [None if row is None else row.figures[metric] for row in rows]
    return Line(
        name,
        tuple(math.nan if figure is None else figure.mean for figure in figures),
        tuple((math.nan, math.nan) if figure is None else (figure.low, figure.high) for figure in figures),
    )


def _say_sweeps(key: str, value: Any) -> str:
    name = key.rpartition(".")[2]
    return str(value) if name == "name" else f"{name}={value}"
