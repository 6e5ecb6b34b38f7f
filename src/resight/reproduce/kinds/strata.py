"""Strata: figures by properties of the positives and by the light of all images (Patchify, figure S1).

In: a table whose columns are recipes with a metric, and whose rows are parts of the data:

    [[rows]]     property = "size", bin = 1      positives in the first of `bins` (default 5) bins of equal count; a
                                                 query without a positive in the bin is left out (evaluate/strata.py)
    [[rows]]     light = 0.2                     every image, queries too, with its L of CIE Lab multiplied by 0.2
                 says = "+"                      what the text states about the differences of this row: their sign
    [[columns]]  metric = "ap", recipe = { … }   the mean over the queries
    [[columns]]  metric = "ap", minus = ["A", "B"]   column A less column B, paired over the queries that both have

Out: a Measured per cell, with the 95 % interval of a bootstrap over the queries. If the text states a sign, the note of
a difference compares: as the text says, against the text, or unclear where the interval holds 0. Every recipe and every
light runs in a process of its own.
"""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from resight import plugins
from resight.errors import InputError, RecipeError
from resight.evaluate.statistics.tests import paired_interval
from resight.evaluate.summary import SEED, make_figure
from resight.recipe import parse
from resight.reproduce import worker
from resight.reproduce.experiments import make_key, try_recipe
from resight.reproduce.paper_table import Column, PaperRow, PaperTable
from resight.reproduce.run import Cell, Measured, NotRun, Run

CHILD = "resight.reproduce.kinds._strata_runs"
BINS, LIGHT = f"{CHILD}:measure_bins", f"{CHILD}:measure_light"
ROW_SETTINGS = ("property", "bin", "light", "says")
SIGNS = ("+", "-")
Values = Mapping[str, float]  # query → value
Found = dict[tuple[str, str], Values | NotRun]  # row and column → values


def measure(table: PaperTable, rows: Sequence[PaperRow], run: Run) -> Iterator[tuple[str, str, Cell]]:
    found: Found = {}
    for members in _group(table, rows, run):
        found |= _measure_bins(table, rows, members, run)
        found |= _measure_lights(rows, members, run)
    for row in rows:
        for column in table.measured:
            if row.skip:
                yield row.name, column.name, NotRun(row.skip)
            elif "minus" in column.settings:
                first, second = (found[row.name, name] for name in column.settings["minus"])
                yield row.name, column.name, subtract(first, second, str(row.settings.get("says", "")))
            else:
                yield row.name, column.name, average(found[row.name, column.name])


def check(table: PaperTable) -> None:
    """Refuse rows that are neither a bin nor a light, and columns without a recipe or with unknown parts."""
    plain = [column for column in table.measured if "minus" not in column.settings]
    for key in table.settings:
        if key != "bins":
            raise plugins.refuse_key(key, ("bins",), "the table")
    for column in table.measured:
        for key in column.settings:
            if key != "minus":
                raise plugins.refuse_key(key, ("minus",), f"the column {column.name!r}")
        parts = column.settings.get("minus", [])
        if parts and not (len(parts) == 2 and set(parts) <= {part.name for part in plain}):
            expected = f"two of {', '.join(part.name for part in plain)}"
            raise _refuse(f"the column {column.name!r}: minus does not fit", expected, repr(parts))
        if not column.metric:
            raise _refuse(f"the column {column.name!r} has no metric", "a metric", "none")
    for row in table.rows:
        for key in row.settings:
            if key not in ROW_SETTINGS:
                raise plugins.refuse_key(key, ROW_SETTINGS, f"the row {row.name!r}")
        if ("light" in row.settings) == ("property" in row.settings and "bin" in row.settings):
            raise _refuse(
                f"the row {row.name!r} is no part of the data", "property and bin, or light", str(dict(row.settings))
            )
        if row.settings.get("says", "+") not in SIGNS:
            raise _refuse(f"the row {row.name!r}: says does not fit", " or ".join(SIGNS), str(row.settings["says"]))
        for column in plain:
            made, problem = try_recipe(table, row, column, (), ())
            if problem:
                raise problem
            parse({**made, "metrics": [column.metric]}, column.name)


def average(values: Values | NotRun) -> Cell:
    """The mean over the queries, with its interval."""
    if isinstance(values, NotRun):
        return values
    figure = make_figure(list(values.values()))
    if math.isnan(figure.mean):
        return NotRun("no query has a positive here")
    return Measured(figure.mean, figure.low, figure.high, queries=values)


def subtract(first: Values | NotRun, second: Values | NotRun, says: str = "") -> Cell:
    """The mean difference over the queries that both have; `says` is the sign that the text states."""
    for side in (first, second):
        if isinstance(side, NotRun):
            return side
    assert not isinstance(first, NotRun) and not isinstance(second, NotRun)
    both = [name for name in first if name in second and not math.isnan(first[name] + second[name])]
    if not both:
        return NotRun("no query has a positive here")
    one, two = [first[name] for name in both], [second[name] for name in both]
    low, high = paired_interval(one, two, np.random.default_rng(SEED))
    difference = float(np.mean(one) - np.mean(two))
    note = ""
    if says:
        clear = low > 0 or high < 0
        agrees = (difference > 0) == (says == "+")
        note = "unclear: the interval holds 0" if not clear else "as the text says" if agrees else "against the text"
    return Measured(difference, low, high, note)


class _Member:
    """A recipe, and the columns that it stands for."""

    def __init__(self, made: dict[str, Any]) -> None:
        self.made = made
        self.columns: list[Column] = []

    @property
    def recipe(self) -> dict[str, Any]:
        return {**self.made, "metrics": list(dict.fromkeys(column.metric for column in self.columns))}


def _group(table: PaperTable, rows: Sequence[PaperRow], run: Run) -> list[list[_Member]]:
    """The distinct recipes of the columns, those with the same encoders together."""
    members: dict[str, _Member] = {}
    for column in table.measured if rows else ():
        if "minus" in column.settings:
            continue
        made, problem = try_recipe(table, rows[0], column, (), run.overrides)
        if problem:
            raise problem
        members.setdefault(make_key(made), _Member(made)).columns.append(column)
    groups: dict[str, list[_Member]] = {}
    for member in members.values():
        encoders = [branch.get("encoder") for branch in member.made.get("branches", [])]
        groups.setdefault(json.dumps(encoders, sort_keys=True), []).append(member)
    return list(groups.values())


def _measure_bins(table: PaperTable, rows: Sequence[PaperRow], members: Sequence[_Member], run: Run) -> Found:
    wanted = [row for row in rows if "property" in row.settings]
    properties = list(dict.fromkeys(str(row.settings["property"]) for row in wanted))
    found: Found = {}
    for member in members if wanted else ():
        run.report(f"{member.columns[0].name}: {', '.join(properties)}")
        answer = _isolate(
            run, BINS, member.made, recipe=member.recipe, properties=properties, bins=table.settings.get("bins", 5)
        )
        for row in wanted:
            for column in member.columns:
                found[row.name, column.name] = _read_bin(answer, row, column)
    return found


def _measure_lights(rows: Sequence[PaperRow], members: Sequence[_Member], run: Run) -> Found:
    found: Found = {}
    for row in rows:
        if "light" not in row.settings:
            continue
        factor = float(row.settings["light"])
        run.report(f"{members[0].columns[0].name}: L × {factor:g}")
        answer = _isolate(run, LIGHT, members[0].made, recipes=[member.recipe for member in members], factor=factor)
        for number, member in enumerate(members):
            for column in member.columns:
                found[row.name, column.name] = _read_light(answer, number, column)
    return found


def _isolate(run: Run, function: str, made: Mapping[str, Any], **arguments: Any) -> dict[str, Any] | NotRun:
    data = made.get("data")
    try:
        root = run.root(str(data.get("name") if isinstance(data, Mapping) else data))
    except InputError as error:
        return NotRun(worker.describe(error))
    cache = str(run.cache_folder) if run.cache_folder else None
    return run.isolate(function, {**arguments, "root": str(root), "cache": cache, "cache_bytes": run.cache_bytes})


def _read_bin(answer: dict[str, Any] | NotRun, row: PaperRow, column: Column) -> Values | NotRun:
    if isinstance(answer, NotRun):
        return answer
    bins, number = answer[str(row.settings["property"])], int(row.settings["bin"])
    if not 1 <= number <= len(bins):
        return NotRun(f"the positives fill {len(bins)} bins")
    return _take(bins[number - 1]["values"], column.metric)


def _read_light(answer: dict[str, Any] | NotRun, number: int, column: Column) -> Values | NotRun:
    if isinstance(answer, NotRun):
        return answer
    part = answer["rows"][number]
    return NotRun(part["reason"]) if "reason" in part else _take(part["values"], column.metric)


def _take(values: Mapping[str, Mapping[str, float]], metric: str) -> Values:
    return {query: each[metric] for query, each in values.items()}


def _refuse(problem: str, expected: str, actual: str) -> RecipeError:
    return RecipeError(problem, expected=expected, actual=actual, fix="correct the table's file")
