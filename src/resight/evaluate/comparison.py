"""Several RunResults of the same queries, side by side: what each costs, and what it loses against one of them.

In: rows, made by a curve or by the rows and alternatives of recipes. Out: a Table for people, plain values for
programs. Where rows compete, the best figures of each metric are marked; a row that could not be measured says why.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from resight.errors import InputError
from resight.evaluate.pages.charts import Chart
from resight.evaluate.results import RunResult
from resight.evaluate.statistics.tests import paired_interval
from resight.evaluate.summary import SEED, describe_cache, describe_interval, describe_metrics, say_figure, summarise
from resight.evaluate.table import Mark, Table
from resight.types import Recipe


@dataclass(frozen=True)
class Fact:
    """A number, and how it is written."""

    value: float
    text: str


@dataclass(frozen=True)
class Row:
    label: str
    facts: Mapping[str, Fact]  # column → what the row is or costs
    result: RunResult


@dataclass(frozen=True)
class Absent:
    """A row that could not be measured."""

    label: str
    place: int  # how many of the measured rows stand before it
    reason: str


@dataclass(frozen=True)
class Comparison:
    title: str
    heading: str  # of the column of labels
    rows: tuple[Row, ...]
    reference: int  # the row that the others are compared with
    metric: str  # of the difference to the reference
    cells: Literal["interval", "share", "loss"]  # what stands beside a metric's mean
    notes: tuple[str, ...] = ()
    answer: str = ""  # in one sentence
    chosen: int | None = None  # the row that the answer names
    charts: tuple[Chart, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    reference_name: str = ""  # what the reference is called, where that is not its label
    absent: tuple[Absent, ...] = ()  # in the order of the table
    ranked: bool = False  # whether the best of each metric are marked

    @property
    def against(self) -> str:
        return self.reference_name or self.rows[self.reference].label


def tabulate(comparison: Comparison) -> Table:
    reference = comparison.rows[comparison.reference]
    names = reference.result.metrics
    columns = (
        comparison.heading,
        *reference.facts,
        *names,
        f"{comparison.metric} against {comparison.against}",
        "ms a query",
    )
    measured = [
        (
            row.label,
            *(fact.text for fact in row.facts.values()),
            *(_say_metric(row.result, reference.result, name, comparison.cells) for name in names),
            "" if row is reference else _say_difference(row.result, reference.result, comparison.metric),
            say_milliseconds(median_seconds(row.result)),
        )
        for row in comparison.rows
    ]
    rows, places = _add_absent(comparison, measured, len(columns))
    offset = 1 + len(reference.facts)
    marks = {
        (places[number], offset + column): mark
        for column, name in enumerate(names)
        for number, mark in _mark(comparison, name).items()
    }
    return Table(
        comparison.title,
        columns,
        rows,
        (
            *comparison.notes,
            *_explain(comparison),
            *describe_metrics(reference.result),
            *describe_cache([row.result for row in comparison.rows]),
        ),
        comparison.answer,
        comparison.charts,
        None if comparison.chosen is None else places[comparison.chosen],
        marks,
        {row.label: row.reason for row in comparison.absent},
    )


def summarise_all(comparison: Comparison) -> dict[str, Any]:
    """Everything, as plain values; each row has all that the evaluation of a single recipe has."""
    reference = comparison.rows[comparison.reference]
    marks = {name: _mark(comparison, name) for name in reference.result.metrics}
    return {
        "title": comparison.title,
        "answer": comparison.answer,
        "chosen": None if comparison.chosen is None else comparison.rows[comparison.chosen].label,
        "reference": reference.label,
        "metric": comparison.metric,
        **comparison.settings,
        "rows": [
            {
                "label": row.label,
                **{name: fact.value for name, fact in row.facts.items()},
                "rank_seconds_a_query": median_seconds(row.result),
                "against_reference": {
                    name: compare_pairs(row.result, reference.result, name) for name in row.result.metrics
                },
                "evaluation": _summarise_marked(row.result, {name: marks[name].get(number) for name in marks}),
            }
            for number, row in enumerate(comparison.rows)
        ],
        "missing": {row.label: row.reason for row in comparison.absent},
        "notes": list(tabulate(comparison).notes),
    }


def rank_best(values: Sequence[float]) -> dict[int, Mark]:
    """Number → mark, of the highest values and of the second highest; values that are written alike share a mark."""
    written = [None if math.isnan(value) else round(value, 4) for value in values]
    distinct = sorted({value for value in written if value is not None}, reverse=True)
    marks: dict[float, Mark] = dict(zip(distinct, ("best", "second"), strict=False))
    return {number: marks[value] for number, value in enumerate(written) if value is not None and value in marks}


def choose_metric(recipe: Recipe, name: str) -> str:
    """The metric called `name`, or the recipe's first."""
    if name and name not in recipe.metrics:
        raise InputError(
            f"the recipe does not measure {name!r}",
            expected=f"one of {', '.join(recipe.metrics)}",
            actual=name,
            fix="choose one of them, or add it to the recipe's metrics",
        )
    return name or next(iter(recipe.metrics), "")


def choose_cheapest(values: Sequence[float], costs: Sequence[float], reference: float, loss: float) -> int | None:
    """The cheapest of those that keep at least (1 - loss) of the reference; the better one at equal cost."""
    kept = [number for number, value in enumerate(values) if value >= (1 - loss) * reference - 1e-12]
    return min(kept, key=lambda number: (costs[number], -values[number]), default=None)


def average(result: RunResult, metric: str) -> float:
    """The mean over the queries that the metric says something about; NaN when there are none."""
    known = [value for value in result.values(metric) if not math.isnan(value)]
    return float(np.mean(known)) if known else math.nan


def median_seconds(result: RunResult) -> float:
    """Until the order of the images is known: boxes take the same time, however little was spent before."""
    return float(np.median([query.rank_seconds for query in result.queries]))


def compare_pairs(result: RunResult, reference: RunResult, metric: str) -> dict[str, float | None]:
    """Mean difference with its paired interval, and the share of the reference's mean that is kept."""
    first, second = average(result, metric), average(reference, metric)
    low, high = paired_interval(result.values(metric), reference.values(metric), np.random.default_rng(SEED))
    share = first / second if second > 0 else None
    return {"difference": first - second, "low": low, "high": high, "share": share}


def say_milliseconds(seconds: float) -> str:
    return f"{1000 * seconds:.1f}" if seconds < 0.1 else f"{1000 * seconds:,.0f}"


def say_share(share: float, digits: int = 1) -> str:
    return f"{100 * share:.{digits}f} %"


def _mark(comparison: Comparison, metric: str) -> dict[int, Mark]:
    """Number of a measured row → its mark; nothing where rows do not compete."""
    if not comparison.ranked or len(comparison.rows) < 2:
        return {}
    return rank_best([average(row.result, metric) for row in comparison.rows])


def _add_absent(
    comparison: Comparison, measured: Sequence[tuple[str, ...]], columns: int
) -> tuple[tuple[tuple[str, ...], ...], list[int]]:
    """All rows in their order, and where the measured ones have come to stand."""
    rows: list[tuple[str, ...]] = []
    places: list[int] = []
    for number in range(len(measured) + 1):
        rows += [(row.label, *["–"] * (columns - 1)) for row in comparison.absent if row.place == number]
        if number < len(measured):
            places.append(len(rows))
            rows.append(measured[number])
    return tuple(rows), places


def _summarise_marked(result: RunResult, marks: Mapping[str, Mark | None]) -> dict[str, Any]:
    whole = summarise(result)
    return whole | {
        "metrics": {
            name: figure | ({mark: True} if (mark := marks[name]) else {}) for name, figure in whole["metrics"].items()
        }
    }


def _say_metric(result: RunResult, reference: RunResult, metric: str, cells: str) -> str:
    if cells == "interval":
        return say_figure(result.values(metric))
    value, whole = average(result, metric), average(reference, metric)
    if math.isnan(value):
        return "–"
    if cells == "share":
        return f"{value:.4f} ({say_share(value / whole)})" if whole > 0 else f"{value:.4f}"
    return f"{value:.4f}" if result is reference else f"{value:.4f} {value - whole:+.4f}"


def _say_difference(result: RunResult, reference: RunResult, metric: str) -> str:
    pair = compare_pairs(result, reference, metric)
    return f"{pair['difference']:+.4f} [{pair['low']:+.4f}, {pair['high']:+.4f}]"


def _explain(comparison: Comparison) -> list[str]:
    beside = {
        "interval": describe_interval(),
        "share": f"% is the share of the value of {comparison.against}",
        "loss": f"signed: the difference to {comparison.against}",
    }[comparison.cells]
    results = [row.result for row in comparison.rows]
    queries = results[comparison.reference].queries
    encodings = {tuple(query.encode_seconds for query in result.queries) for result in results}
    encoding = 1000 * float(np.median([query.encode_seconds for query in queries]))
    showing = 1000 * float(np.median([query.seconds - query.rank_seconds for query in queries]))
    around = (
        f"before it, encoding a query took {encoding:.0f} ms, once for all rows; after it, finding the boxes of the "
        f"best took {showing:.0f} ms"
        if len(encodings) == 1
        else "the query is encoded before it, and the boxes of the best are found after it"
    )
    return [
        beside,
        f"{comparison.metric} against {comparison.against}: mean difference and its 95 % interval, a bootstrap over "
        "the pairs of the same query (1,000 samples, seed 0)",
        f"ms a query: median time until all images are in order; {around}",
    ]
