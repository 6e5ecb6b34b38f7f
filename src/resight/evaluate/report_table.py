"""The table of a report: a row per configuration, a group of columns per data set.

In: rows by data set. Out: one Table. It marks the best figure of each column. Beside the figures is the paired
difference of one metric to the first row on the data set, over the same queries, with a star if it is significant
after Holm's correction for the number of rows.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from resight.evaluate.evaluation import BYTES, HEADINGS, Row, format_milliseconds, rank_best
from resight.evaluate.statistics.tests import Compared, compare_many
from resight.evaluate.summary import INTERVAL_NOTE, SEED
from resight.evaluate.table import Mark, Table

SIGNIFICANT = 0.05


@dataclass(frozen=True)
class DataSetRows:
    """The rows on one data set, and the metrics to show of them."""

    name: str
    rows: tuple[Row, ...]
    metrics: tuple[str, ...]
    metric: str  # of the differences

    @property
    def reference(self) -> Row:
        return self.rows[0]

    @cached_property
    def differences(self) -> dict[str, Compared]:
        """Label → the difference to the first row, over the same queries."""
        first = self.reference.summary.values(self.metric)
        others = {row.label: row.summary.values(self.metric) for row in self.rows[1:]}
        found = compare_many(
            list(first.values()),
            {label: [values[query] for query in first] for label, values in others.items()},
            np.random.default_rng(SEED),
            tests=("randomisation",),
        )
        return {one.label: one for one in found}


def tabulate_data(data: Sequence[DataSetRows], title: str = "") -> Table:
    labels = list(dict.fromkeys(row.label for part in data for row in part.rows))
    columns: list[str] = []
    cells: list[list[str]] = [[] for _ in labels]
    marks: dict[tuple[int, int], Mark] = {}
    groups: list[tuple[str, int]] = []
    for part in data:
        before = len(columns)
        for heading, texts, ranked in _list_columns(part, labels):
            columns.append(heading)
            for row, text in zip(cells, texts, strict=True):
                row.append(text)
            marks |= {(row, len(columns)): mark for row, mark in ranked.items()}
        groups.append((part.name, len(columns) - before))
    if len(data) > 1:
        means = [_average(data, label) for label in labels]
        columns.append(_name_mean(data))
        for row, mean in zip(cells, means, strict=True):
            row.append("–" if math.isnan(mean) else f"{mean:.4f}")
        marks |= {(row, len(columns)): mark for row, mark in rank_best(means).items()}
        groups.append(("all data sets", 1))
    return Table(
        title or _make_title(data),
        ("configuration", *columns),
        tuple((label, *row) for label, row in zip(labels, cells, strict=True)),
        tuple(_explain(data)),
        marks=marks if len(labels) > 1 else {},
        groups=tuple(groups) if len(data) > 1 else (),
    )


def _list_columns(part: DataSetRows, labels: Sequence[str]) -> Iterator[tuple[str, list[str], dict[int, Mark]]]:
    """Heading, one cell per label, and marks by row."""
    rows = {row.label: row for row in part.rows}
    own = [rows.get(label) for label in labels]
    if any(BYTES in row.facts for row in part.rows):
        sizes = [None if row is None else row.facts.get(BYTES) for row in own]
        yield HEADINGS[BYTES], ["–" if size is None else f"{size.value:,.0f}" for size in sizes], {}
    for metric in part.metrics:
        figures = [None if row is None else row.summary.figures[metric] for row in own]
        marks = rank_best([math.nan if figure is None else figure.mean for figure in figures])
        yield metric, ["–" if figure is None else str(figure) for figure in figures], marks
    if part.differences:
        heading = f"{part.metric} against {part.reference.label}"
        yield heading, [_format_difference(part, label) for label in labels], {}
    yield "ms per query", ["–" if row is None else format_milliseconds(row.median_seconds) for row in own], {}


def _format_difference(part: DataSetRows, label: str) -> str:
    one = part.differences.get(label)
    if one is None:
        return "" if label == part.reference.label else "–"
    star = " *" if one.corrected["randomisation"] < SIGNIFICANT else ""
    return f"{one.difference:+.4f} [{one.low:+.4f}, {one.high:+.4f}]{star}"


def _average(data: Sequence[DataSetRows], label: str) -> float:
    """The mean over the data sets; NaN for a row that lacks one."""
    found = [row.summary.figures[part.metric].mean for part in data for row in part.rows if row.label == label]
    return float(np.mean(found)) if len(found) == len(data) else math.nan


def _name_mean(data: Sequence[DataSetRows]) -> str:
    metrics = list(dict.fromkeys(part.metric for part in data))
    return f"mean {metrics[0]}" if len(metrics) == 1 else "mean of the metric of differences"


def _make_title(data: Sequence[DataSetRows]) -> str:
    count = len({row.label for part in data for row in part.rows})
    rows = "1 configuration" if count == 1 else f"{count} configurations"
    if len(data) == 1:
        return f"{data[0].name}: {rows}, {data[0].reference.summary.database:,} images"
    return f"{rows} on {len(data)} data sets"


def _explain(data: Sequence[DataSetRows]) -> Iterator[str]:
    for part in data:
        first = part.reference.summary
        queries = len(first.values(part.metric))
        yield f"{part.name}: {queries:,} queries with positives, {first.database:,} database images"
    yield INTERVAL_NOTE
    if any(part.differences for part in data):
        yield (
            "against: mean difference to the first row over the same queries and its 95 % interval (paired bootstrap); "
            f"*: a randomisation test gives p < {SIGNIFICANT:g} after Holm's correction for the number of rows"
        )
    conventions = {
        name: row.summary.figures[name].convention for part in data for row in part.rows for name in part.metrics
    }
    yield from (f"{name}: {words}" for name, words in conventions.items() if words)
    yield "ms per query: median time of a search until all images are in order"
