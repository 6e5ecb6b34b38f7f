"""Records whose positives were broken down → for each property a Table and a Chart of quality against its bins."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from resight.evaluate.pages.chart import DASHES, Chart, Line
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
