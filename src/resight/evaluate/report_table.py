"""Records of one or many data sets → one Table: a row a configuration, a group of columns a data set.

The best figure of each column is marked. Beside the figures stands the paired difference of one metric to the first row
that has the data set, over the same queries; with a star where it holds after Holm's correction for the number of rows.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from resight.errors import InputError
from resight.evaluate.comparison import rank_best, say_milliseconds
from resight.evaluate.records import Figure, Record
from resight.evaluate.statistics.tests import Compared, compare_many
from resight.evaluate.table import Mark, Table

SEED = 0
BYTES = "bytes an image"
LIKELY = 0.05


@dataclass(frozen=True)
class DataColumns:
    """What one data set adds to the table."""

    name: str
    records: tuple[Record, ...]
    metrics: tuple[str, ...]
    judged: str  # the metric of the differences

    @property
    def reference(self) -> Record:
        return self.records[0]

    @cached_property
    def compared(self) -> dict[str, Compared]:
        """Label → the difference to the first record, over the same queries."""
        first = self.reference.values[self.judged]
        found = compare_many(
            list(first.values()),
            {row.label: [row.values[self.judged][query] for query in first] for row in self.records[1:]},
            np.random.default_rng(SEED),
            tests=("randomisation",),
        )
        return {one.label: one for one in found}


def gather_data(records: Sequence[Record], metric: str = "", metrics: Sequence[str] = ()) -> list[DataColumns]:
    """Records by what they were measured on, with the differences between them; `metrics` to show, or all."""
    by_data: dict[str, list[Record]] = {}
    for record in records:
        by_data.setdefault(record.data, []).append(record)
    names = _name_data(list(by_data.values()))
    return [_gather(name, rows, metric, metrics) for name, rows in zip(names, by_data.values(), strict=True)]


def tabulate_records(data: Sequence[DataColumns], title: str = "") -> Table:
    labels = list(dict.fromkeys(record.label for part in data for record in part.records))
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
        title or _title(data),
        ("configuration", *columns),
        tuple((label, *row) for label, row in zip(labels, cells, strict=True)),
        tuple(_explain(data)),
        marks=marks if len(labels) > 1 else {},
        groups=tuple(groups) if len(data) > 1 else (),
    )


def _gather(name: str, rows: Sequence[Record], metric: str, metrics: Sequence[str]) -> DataColumns:
    first = rows[0]
    shared = [name for name in first.figures if all(name in row.figures for row in rows)]
    wanted = [name for name in shared if not metrics or name in metrics]
    judged = metric or next(iter(wanted), "")
    if not wanted or judged not in shared:
        raise InputError(
            f"the rows on {name} have no metric to compare",
            expected=f"one of {', '.join(shared) or 'the same metrics in all files'}",
            actual=metric or ", ".join(metrics) or "none",
            fix="choose others with --metric and --metrics, or evaluate again",
        )
    for row in rows[1:]:
        _check_same_queries(name, first, row, judged)
    return DataColumns(name, tuple(rows), tuple(wanted), judged)


def _check_same_queries(name: str, first: Record, other: Record, metric: str) -> None:
    mine, theirs = first.values[metric].keys(), other.values[metric].keys()
    if mine == theirs:
        return
    odd = sorted(mine ^ theirs)
    raise InputError(
        f"{first.label!r} and {other.label!r} were not judged on the same queries of {name}",
        expected=f"the {len(mine):,} queries of {first.source or first.label} in both",
        actual=f"{len(theirs):,} in {other.source or other.label}; {len(odd):,} are in one alone, e.g. {odd[0]!r}",
        fix="evaluate both on the same data, or report them apart",
    )


def _list_columns(part: DataColumns, labels: Sequence[str]) -> Iterator[tuple[str, list[str], dict[int, Mark]]]:
    """Heading, a cell a label, and marks by row."""
    rows = {record.label: record for record in part.records}
    own = [rows.get(label) for label in labels]
    if any(BYTES in record.facts for record in part.records):
        yield BYTES, ["–" if row is None else _say_fact(row, BYTES) for row in own], {}
    for metric in part.metrics:
        figures = [None if row is None else row.figures[metric] for row in own]
        marks = rank_best([math.nan if figure is None else figure.mean for figure in figures])
        yield metric, [_say_figure(figure) for figure in figures], marks
    if part.compared:
        against = f"{part.judged} against {part.reference.label}"
        yield against, [_say_compared(part, label) for label in labels], {}
    yield "ms a query", ["–" if row is None else _say_seconds(row.seconds) for row in own], {}


def _name_data(groups: Sequence[Sequence[Record]]) -> list[str]:
    """The data set's name, and its size or settings where names alone do not tell them apart."""
    names = [rows[0].dataset for rows in groups]
    sized = [f"{name}, {rows[0].database:,} images" for name, rows in zip(names, groups, strict=True)]
    settings = [f"{name} {rows[0].recipe.get('data')}" for name, rows in zip(sized, groups, strict=True)]
    return [
        name if names.count(name) == 1 else size if sized.count(size) == 1 else whole
        for name, size, whole in zip(names, sized, settings, strict=True)
    ]


def _title(data: Sequence[DataColumns]) -> str:
    count = len({record.label for part in data for record in part.records})
    rows = "1 configuration" if count == 1 else f"{count} configurations"
    if len(data) == 1:
        return f"{data[0].name}: {rows}, {data[0].reference.database:,} images"
    return f"{rows} on {len(data)} data sets"


def _average(data: Sequence[DataColumns], label: str) -> float:
    """The mean over the data sets; NaN for a row that lacks one."""
    found = [record.figures[part.judged].mean for part in data for record in part.records if record.label == label]
    return float(np.mean(found)) if len(found) == len(data) else math.nan


def _name_mean(data: Sequence[DataColumns]) -> str:
    judged = list(dict.fromkeys(part.judged for part in data))
    return f"mean {judged[0]}" if len(judged) == 1 else "mean of the metric of differences"


def _say_figure(figure: Figure | None) -> str:
    if figure is None or math.isnan(figure.mean):
        return "–"
    return f"{figure.mean:.4f} ±{(figure.high - figure.low) / 2:.3f}"


def _say_compared(part: DataColumns, label: str) -> str:
    one = part.compared.get(label)
    if one is None:
        return "" if label == part.reference.label else "–"
    star = " *" if one.corrected["randomisation"] < LIKELY else ""
    return f"{one.difference:+.4f} [{one.low:+.4f}, {one.high:+.4f}]{star}"


def _say_fact(record: Record, name: str) -> str:
    return f"{record.facts[name]:,.0f}" if name in record.facts else "–"


def _say_seconds(seconds: float) -> str:
    return "–" if math.isnan(seconds) else say_milliseconds(seconds)


def _explain(data: Sequence[DataColumns]) -> Iterator[str]:
    for part in data:
        queries = len(part.reference.values[part.judged])
        yield f"{part.name}: {queries:,} queries with positives, {part.reference.database:,} database images"
    yield "± is half of the 95 % interval of a bootstrap over the queries (1,000 samples, seed 0)."
    if any(part.compared for part in data):
        yield (
            "against: mean difference to the first row over the same queries and its 95 % interval (paired bootstrap); "
            f"* where a randomisation test gives p < {LIKELY:g} after Holm's correction for the number of rows"
        )
    conventions = {name: row.figures[name].convention for part in data for row in part.records for name in part.metrics}
    yield from (f"{name}: {words}" for name, words in conventions.items() if words)
    yield "ms a query: median time of a search until all images are in order"
