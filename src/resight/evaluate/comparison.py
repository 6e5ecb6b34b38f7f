"""Compare evaluations: `resight.compare(...)`, the function behind `resight report`.

In: Evaluations, or files of `resight eval --json`. Out: a Comparison: their rows by data set, with paired differences
to the first row of each data set. Rows on the same data must have the same queries.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from resight.errors import InputError
from resight.evaluate.evaluation import Evaluation, Row
from resight.evaluate.presentable import Measured
from resight.evaluate.report_table import DataSetRows, tabulate_data
from resight.evaluate.strata_tables import Stratum, tabulate_strata
from resight.evaluate.table import Table


@dataclass(frozen=True)
class Comparison(Measured):
    """Several evaluations side by side; `compare` returns it.

    Attributes:
        data: The rows of each data set.
        title: The title of the table.
    """

    data: tuple[DataSetRows, ...]
    title: str = ""

    @property
    def rows(self) -> tuple[Row, ...]:
        """All rows, data set by data set."""
        return tuple(row for part in self.data for row in part.rows)

    @cached_property
    def table(self) -> Table:
        """One row per configuration, and a group of columns per data set."""
        return tabulate_data(self.data, self.title)

    @cached_property
    def strata(self) -> tuple[tuple[Stratum, ...], ...]:
        """Per data set, a table and a chart per property that positives were broken down by."""
        return tuple(tuple(tabulate_strata(part.rows, part.metric)) for part in self.data)

    @property
    def strata_tables(self) -> list[Table]:
        """The tables of `strata`, titled by their data set if there are several."""
        return [
            replace(stratum.table, title=f"{part.name}: {stratum.table.title}") if len(self.data) > 1 else stratum.table
            for part, strata in zip(self.data, self.strata, strict=True)
            for stratum in strata
        ]


def compare(
    evaluations: Sequence[Evaluation | str | Path], *, metric: str = "", metrics: Sequence[str] = (), title: str = ""
) -> Comparison:
    """Compare evaluations: their rows by data set, with paired differences to the first row of each.

    Args:
        evaluations: Evaluations, paths of JSON files that `resight eval --json` wrote, or "LABEL=PATH" to rename the
            rows of a file.
        metric: The metric of differences and charts; default: the first.
        metrics: The metrics to show; default: all that the rows share.
        title: The title of the table.

    Returns:
        The comparison; its `table` has one row per configuration.

    Raises:
        InputError: Rows on the same data differ in their queries or share a label, a file cannot be read, or the rows
            have no such metric.

    Examples:
        >>> import resight
        >>> settings = ["data=manifest", "metrics=['recall@1', 'ap']"]
        >>> whole = resight.evaluate("sift", "truth.csv", overrides=settings)
        >>> short = resight.evaluate("sift_vlad", "truth.csv", overrides=settings)
        >>> for row in resight.compare([whole, short], metrics=["ap"]).rows:
        ...     print(row.label, row.summary.figures["ap"].mean)
        sift 1.0
        sift_vlad 1.0
    """
    found = [part if isinstance(part, Evaluation) else _read(str(part)) for part in evaluations]
    rows = [row for evaluation in found for row in evaluation.rows]
    if len(found) > 1:
        rows = make_labels_distinct(rows)
    by_data: dict[str, list[Row]] = {}
    for row in rows:
        by_data.setdefault(identify_data(row), []).append(row)
    names = _name_data(list(by_data.values()))
    data = tuple(_gather(name, part, metric, metrics) for name, part in zip(names, by_data.values(), strict=True))
    return Comparison(data, title)


def make_labels_distinct(rows: Sequence[Row]) -> list[Row]:
    """Rows on the same data with the same label get the name of their file too."""
    seen = [(identify_data(row), row.label) for row in rows]
    named = [
        replace(row, label=f"{row.label} ({Path(row.source).stem})") if seen.count(key) > 1 else row
        for row, key in zip(rows, seen, strict=True)
    ]
    keys = [(identify_data(row), row.label) for row in named]
    twice = next((label for data, label in keys if keys.count((data, label)) > 1), None)
    if twice is not None:
        raise InputError(
            f"two rows on the same data are both called {twice!r}",
            expected="different labels",
            fix="rename them: resight report one=A.json other=B.json",
        )
    return named


def identify_data(row: Row) -> str:
    """What was searched: rows with the same identity have the same queries and images."""
    summary = row.summary
    settings = json.dumps(summary.recipe.get("data"), sort_keys=True, default=str)
    return f"{summary.dataset} | {summary.database} | {settings}"


def _read(source: str) -> Evaluation:
    label, equals, path = source.partition("=")
    if not equals or Path(source).exists():
        label, path = "", source
    found = Evaluation.read(path)
    if not label:
        return found
    rows = tuple(replace(row, label=label if len(found.rows) == 1 else f"{label} {row.label}") for row in found.rows)
    return replace(found, rows=rows)


def _name_data(groups: Sequence[Sequence[Row]]) -> list[str]:
    """The data set's name, with its size or settings if names alone are not distinct."""
    firsts = [rows[0].summary for rows in groups]
    names = [first.dataset for first in firsts]
    sized = [f"{first.dataset}, {first.database:,} images" for first in firsts]
    settings = [f"{name} {first.recipe.get('data')}" for name, first in zip(sized, firsts, strict=True)]
    return [
        name if names.count(name) == 1 else size if sized.count(size) == 1 else whole
        for name, size, whole in zip(names, sized, settings, strict=True)
    ]


def _gather(name: str, rows: Sequence[Row], metric: str, metrics: Sequence[str]) -> DataSetRows:
    first = rows[0]
    shared = [name for name in first.summary.figures if all(name in row.summary.figures for row in rows)]
    wanted = [name for name in shared if not metrics or name in metrics]
    chosen = metric or next(iter(wanted), "")
    if not wanted or chosen not in shared:
        raise InputError(
            f"the rows on {name} have no metric to compare",
            expected=f"one of {', '.join(shared) or 'the same metrics in all files'}",
            actual=metric or ", ".join(metrics) or "none",
            fix="choose others with --metric and --metrics, or evaluate again",
        )
    for row in rows[1:]:
        _check_same_queries(name, first, row, chosen)
    return DataSetRows(name, tuple(rows), tuple(wanted), chosen)


def _check_same_queries(name: str, first: Row, other: Row, metric: str) -> None:
    mine, theirs = (row.summary.values(metric).keys() for row in (first, other))
    if mine == theirs:
        return
    odd = sorted(mine ^ theirs)
    raise InputError(
        f"{first.label!r} and {other.label!r} were not judged on the same queries of {name}",
        expected=f"the {len(mine):,} queries of {first.source or first.label} in both",
        actual=f"{len(theirs):,} in {other.source or other.label}; {len(odd):,} are in one alone, e.g. {odd[0]!r}",
        fix="evaluate both on the same data, or report them apart",
    )
