"""One or several measured rows on the same queries: their costs, and their differences to one of them.

In: Rows, made by the recipes, curves, light levels or index settings that were measured. Out: an Evaluation: Table and
JSON. A single recipe has one row without a label; its table has a line per stratum. The table marks the best figures.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np

from resight.errors import InputError
from resight.evaluate.presentable import Measured
from resight.evaluate.statistics.tests import paired_interval
from resight.evaluate.summary import INTERVAL_NOTE, SEED, Figure, Summary, average, describe_cache, describe_metrics
from resight.evaluate.summary_file import from_dict, read_number, read_values, refuse_file, to_dict
from resight.evaluate.table import Chart, Mark, Table
from resight.types import Recipe

BYTES, TOKEN_BYTES = "bytes an image", "bytes a token"  # names of facts in files
MEGABYTES, COMPRESSION = "megabytes", "compression"  # of all images, 10^6 bytes; rows as stored / what a search reads
ROWS = "rows an image"  # vectors, tokens or local features
UNSHOWN = frozenset({MEGABYTES, COMPRESSION, ROWS})  # facts in files, and not in tables
HEADINGS = {BYTES: "bytes per image", TOKEN_BYTES: "bytes per token"}  # and in tables
NOT_FACTS = frozenset({"label", "rank_seconds_a_query", "against_reference", "evaluation"})


@dataclass(frozen=True)
class Fact:
    """A number, and how it is written."""

    value: float
    text: str


@dataclass(frozen=True)
class Row:
    label: str
    summary: Summary
    facts: Mapping[str, Fact] = field(default_factory=dict)  # column → a setting or cost of the row
    seconds: float | None = None  # of a search; None: until the images are in order
    source: str = ""  # the file it was read from

    @property
    def median_seconds(self) -> float:
        return self.summary.rank_seconds if self.seconds is None else self.seconds


@dataclass(frozen=True)
class AbsentRow:
    """A row that could not be measured."""

    label: str
    after: int  # number of measured rows before it
    reason: str


@dataclass(frozen=True)
class Difference:
    """A mean less the reference's, its paired 95 % interval, and the share of the reference's mean."""

    difference: float
    low: float
    high: float
    share: float | None  # None if the reference's mean is 0

    def __str__(self) -> str:
        return f"{self.difference:+.4f} [{self.low:+.4f}, {self.high:+.4f}]"


@dataclass(frozen=True)
class Evaluation(Measured):
    """Rows that were measured on the same queries; `resight.evaluate` returns it.

    Attributes:
        title: The title of the table.
        rows: The measured rows; `rows[0].summary.figures` maps a metric to its mean and interval.
        heading: The heading of the column of labels.
        reference: Number of the row that the others are compared with.
        metric: The metric of the difference to the reference.
        cells: The text beside a metric's mean.
        notes: Conventions, to show below the table.
        answer: The conclusion in one sentence.
        chosen: Number of the row that the answer names.
        charts: Charts of the rows.
        settings: Settings of a curve, for the file.
        reference_name: The name of the reference, if it is not called by its label.
        absent: Rows that could not be measured, in the order of the table.
        ranked: Whether the best of each metric are marked.
        single: One recipe, whose row needs no label.
        more_tables: Further tables, e.g. of distances.
        run_files: TREC run files that were written.
    """

    title: str
    rows: tuple[Row, ...]
    heading: str = "variant"
    reference: int = 0
    metric: str = ""
    cells: Literal["interval", "share", "loss"] = "interval"
    notes: tuple[str, ...] = ()
    answer: str = ""
    chosen: int | None = None
    charts: tuple[Chart, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    reference_name: str = ""
    absent: tuple[AbsentRow, ...] = ()
    ranked: bool = False
    single: bool = False
    more_tables: tuple[Table, ...] = ()
    run_files: tuple[Path, ...] = ()

    @property
    def reference_label(self) -> str:
        """The name of the reference."""
        return self.reference_name or self.rows[self.reference].label

    @cached_property
    def differences(self) -> tuple[Mapping[str, Difference], ...]:
        """Per row, metric → its difference to the reference over the same queries."""
        reference = self.rows[self.reference].summary
        return tuple(
            {name: find_difference(row.summary, reference, name) for name in row.summary.figures} for row in self.rows
        )

    @cached_property
    def table(self) -> Table:
        """Title, columns, rows and notes, as `resight eval` prints them."""
        return _tabulate_strata(self) if self.single else _tabulate_rows(self)

    def to_dict(self) -> dict[str, Any]:
        """Convert to plain values, for JSON; `resight eval --json` writes them.

        Returns:
            Everything; each row has all that the evaluation of a single recipe has.
        """
        if self.single:
            return to_dict(self.rows[0].summary)
        marks = {name: _rank(self, name) for name in self.rows[self.reference].summary.figures}
        return {
            "title": self.title,
            "answer": self.answer,
            "chosen": None if self.chosen is None else self.rows[self.chosen].label,
            "reference": self.rows[self.reference].label,
            "metric": self.metric,
            **self.settings,
            "rows": [
                {
                    "label": row.label,
                    **{name: fact.value for name, fact in row.facts.items()},
                    "rank_seconds_a_query": row.median_seconds,
                    "against_reference": {name: vars(pair) for name, pair in self.differences[number].items()},
                    "evaluation": _add_marks(to_dict(row.summary), {name: marks[name].get(number) for name in marks}),
                }
                for number, row in enumerate(self.rows)
            ],
            "missing": {row.label: row.reason for row in self.absent},
            "notes": list(self.table.notes),
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], source: str = "") -> "Evaluation":
        """The evaluation that a file holds: rows whole; of the table, what the file repeats."""
        if "rows" not in values:
            summary = from_dict(values, source)
            return single_row(summary, str(summary.recipe.get("name", "")) or source, source)
        try:
            rows = tuple(_read_row(row, source) for row in values["rows"])
            labels = [row.label for row in rows]
            chosen = values.get("chosen")
            return cls(
                values.get("title", ""),
                rows,
                reference=labels.index(values["reference"]) if "reference" in values else 0,
                metric=values.get("metric", ""),
                notes=tuple(values.get("notes", ())),
                answer=values.get("answer", ""),
                chosen=labels.index(chosen) if chosen is not None else None,
                absent=tuple(
                    AbsentRow(label, len(rows), reason) for label, reason in values.get("missing", {}).items()
                ),
            )
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise refuse_file(source, f"{type(error).__name__}: {error}") from error

    @classmethod
    def read(cls, path: str | Path) -> "Evaluation":
        """Read a file of `resight eval --json`.

        Args:
            path: The file.

        Returns:
            The evaluation; of the table, only what the file repeats.
        """
        path = Path(path)
        return cls.from_dict(read_values(path), path.name)


def single_row(summary: Summary, label: str, source: str = "") -> Evaluation:
    """The evaluation of one recipe."""
    return Evaluation(
        title=f"{summary.recipe.get('name', label)}: {summary.dataset}, {summary.database:,} images",
        rows=(Row(label, summary, seconds=summary.search_seconds, source=source),),
        metric=next(iter(summary.figures), ""),
        single=True,
    )


def find_difference(summary: Summary, reference: Summary, metric: str) -> Difference:
    first, second = (_list_values(part, metric) for part in (summary, reference))
    low, high = paired_interval(first, second, np.random.default_rng(SEED))
    mean, whole = average(first), average(second)
    return Difference(mean - whole, low, high, mean / whole if whole > 0 else None)


def rank_best(values: Sequence[float]) -> dict[int, Mark]:
    """Number → mark, of the highest and the second highest values; values written alike share a mark."""
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
    """The cheapest with at least (1 - loss) of the reference; at equal cost, the better one."""
    enough = [number for number, value in enumerate(values) if value >= (1 - loss) * reference - 1e-12]
    return min(enough, key=lambda number: (costs[number], -values[number]), default=None)


def format_milliseconds(seconds: float) -> str:
    if math.isnan(seconds):
        return "–"
    return f"{1000 * seconds:.1f}" if seconds < 0.1 else f"{1000 * seconds:,.0f}"


def format_share(share: float, digits: int = 1) -> str:
    return f"{100 * share:.{digits}f} %"


def _tabulate_strata(evaluation: Evaluation) -> Table:
    """One row for all queries and one per stratum."""
    summary = evaluation.rows[0].summary
    names = list(summary.figures)
    groups = {"all": (len(summary.judged), summary.figures)} | {
        name: (stratum.queries, stratum.figures) for name, stratum in summary.strata.items()
    }
    rows = tuple(
        (name, str(count), *(str(figures[metric]) for metric in names)) for name, (count, figures) in groups.items()
    )
    notes = (
        INTERVAL_NOTE,
        *describe_metrics(summary),
        (f"indexing {summary.index_seconds:.1f} s; " if summary.index_seconds else "")
        + f"median per query: encoding {summary.encode_seconds:.3f} s, search {summary.search_seconds:.3f} s",
        *describe_cache([summary]),
    )
    return Table(evaluation.title, ("queries", "n", *names), rows, notes)


def _tabulate_rows(evaluation: Evaluation) -> Table:
    reference = evaluation.rows[evaluation.reference]
    names = list(reference.summary.figures)
    shown = [fact for fact in reference.facts if fact not in UNSHOWN]
    columns = (
        evaluation.heading,
        *(HEADINGS.get(fact, fact) for fact in shown),
        *names,
        f"{evaluation.metric} against {evaluation.reference_label}",
        "ms per query",
    )
    measured = [
        (
            row.label,
            *(row.facts[fact].text for fact in shown),
            *(_format_metric(evaluation, row, name) for name in names),
            "" if row is reference else str(evaluation.differences[number][evaluation.metric]),
            format_milliseconds(row.median_seconds),
        )
        for number, row in enumerate(evaluation.rows)
    ]
    rows, numbers = _add_absent(evaluation, measured, len(columns))
    offset = 1 + len(shown)
    marks = {
        (numbers[number], offset + column): mark
        for column, name in enumerate(names)
        for number, mark in _rank(evaluation, name).items()
    }
    return Table(
        evaluation.title,
        columns,
        rows,
        (
            *evaluation.notes,
            *_explain(evaluation),
            *describe_metrics(reference.summary),
            *describe_cache([row.summary for row in evaluation.rows]),
        ),
        evaluation.answer,
        evaluation.charts,
        None if evaluation.chosen is None else numbers[evaluation.chosen],
        marks,
        {row.label: row.reason for row in evaluation.absent},
    )


def _rank(evaluation: Evaluation, metric: str) -> dict[int, Mark]:
    """Number of a measured row → its mark; empty if rows do not compete."""
    if not evaluation.ranked or len(evaluation.rows) < 2:
        return {}
    return rank_best([row.summary.figures[metric].mean for row in evaluation.rows])


def _add_absent(
    evaluation: Evaluation, measured: Sequence[tuple[str, ...]], columns: int
) -> tuple[tuple[tuple[str, ...], ...], list[int]]:
    """All rows in their order, and the new numbers of the measured ones."""
    rows: list[tuple[str, ...]] = []
    numbers: list[int] = []
    for number in range(len(measured) + 1):
        rows += [(row.label, *["–"] * (columns - 1)) for row in evaluation.absent if row.after == number]
        if number < len(measured):
            numbers.append(len(rows))
            rows.append(measured[number])
    return tuple(rows), numbers


def _format_metric(evaluation: Evaluation, row: Row, metric: str) -> str:
    reference = evaluation.rows[evaluation.reference]
    figure: Figure = row.summary.figures[metric]
    if evaluation.cells == "interval":
        return str(figure)
    value, whole = figure.mean, reference.summary.figures[metric].mean
    if math.isnan(value):
        return "–"
    if evaluation.cells == "share":
        return f"{value:.4f}" + (f" ({format_share(value / whole)})" if whole > 0 else "")
    return f"{value:.4f}" if row is reference else f"{value:.4f} {value - whole:+.4f}"


def _explain(evaluation: Evaluation) -> list[str]:
    beside = {
        "interval": INTERVAL_NOTE,
        "share": f"%: share of the value of {evaluation.reference_label}",
        "loss": f"signed: the difference to {evaluation.reference_label}",
    }[evaluation.cells]
    queries = evaluation.rows[evaluation.reference].summary.queries
    encodings = {tuple(query.encode_seconds for query in row.summary.queries) for row in evaluation.rows}
    encoding = 1000 * float(np.median([query.encode_seconds for query in queries]))
    locating = 1000 * float(np.median([query.seconds - query.rank_seconds for query in queries]))
    around = (
        f"before it, encoding a query took {encoding:.0f} ms, once for all rows; after it, finding the boxes of the "
        f"best took {locating:.0f} ms"
        if len(encodings) == 1
        else "encoding the query comes before it, and finding the boxes of the best after it"
    )
    return [
        beside,
        f"{evaluation.metric} against {evaluation.reference_label}: mean difference and its 95 % interval, a bootstrap "
        "over the pairs of the same query (1,000 samples, seed 0)",
        f"ms per query: median time until all images are in order; {around}",
    ]


def _add_marks(values: dict[str, Any], marks: Mapping[str, Mark | None]) -> dict[str, Any]:
    figures = {
        name: figure | ({mark: True} if (mark := marks.get(name)) else {}) for name, figure in values["metrics"].items()
    }
    return values | {"metrics": figures}


def _read_row(values: Mapping[str, Any], source: str) -> Row:
    facts = {
        name: Fact(float(value), f"{value:,.0f}")
        for name, value in values.items()
        if name not in NOT_FACTS and isinstance(value, (int, float))
    }
    summary = from_dict(values["evaluation"], source)
    seconds = read_number(values["rank_seconds_a_query"]) if "rank_seconds_a_query" in values else None
    return Row(values["label"], summary, facts, summary.search_seconds if seconds is None else seconds, source)


def _list_values(summary: Summary, metric: str) -> list[float]:
    return [query.values[metric] for query in summary.judged]
