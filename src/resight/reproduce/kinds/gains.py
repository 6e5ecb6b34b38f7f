"""Gains: means over many models, differences of two rows, and the share of another row that a row keeps.

In: a table with cells that are computed from those of others. Out: a Measured per cell, with the 95 % interval of a
bootstrap over the queries, in which both sides of a difference or share draw the same queries.

Means over models (of, over, models, column, metrics). The figures are means over the rows of a table with one column
per pooling (of = "msls_london/table_12"; default: the table itself). For each row and metric

    (1/M) Σ_m value(m, the row's column) − value(m, the column `over`)

over the M models whose "group/name" matches `models`; without `over`, the mean of the first term. A model that could
not run is left out of the mean, and a note names it.

    of        name of the table with the models; all its `metrics` are measured together, so that tables that share it
              share its answers
    over      its column that is subtracted
    models    pattern with * and ?; in the table itself, only rows with this setting are means
    column    of a row: its column in `of`; default: the name of the row
    metrics   of the table with the models: every metric that means are asked for

Against another row (against, compare). A column with compare = "difference" shows value(row) − value(against), one with
compare = "share" value(row) / value(against).

    against   of a row, or of the table for all rows: the name of the other row
    compare   of a column: difference or share
"""

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Any

import numpy as np
from numpy.typing import NDArray

from resight import plugins
from resight.errors import RecipeError, did_you_mean
from resight.evaluate.statistics.tests import bootstrap_interval
from resight.reproduce import kinds
from resight.reproduce.kinds import retrieval
from resight.reproduce.paper_table import Column, PaperRow, PaperTable, list_tables, load_table
from resight.reproduce.run import Cell, Measured, NotRun, Run

COMPARISONS = ("difference", "share")
SAMPLES = 1000  # of the bootstrap of a share
Cells = Mapping[tuple[str, str, str], Cell]  # model, column, metric → cell


def measure(table: PaperTable, rows: Sequence[PaperRow], run: Run) -> Iterator[tuple[str, str, Cell]]:
    source = find_source(table)
    wanted = [*rows, *(row for row in source.rows if row.name in {_find_other(table, each) for each in rows})]
    chosen = [model for model in list_models(source) if any(_asks_for(table, row, model) for row in wanted)]
    cells = _measure_models(source, chosen, _share(run, table, source))
    for row in rows:
        for column in table.measured:
            cell = NotRun(row.skip) if row.skip else _read_cell(table, row, column, source, cells)
            yield row.name, column.name, cell


def requirements(table: PaperTable) -> kinds.Requirements:
    source = find_source(table)
    return kinds.require_encoders(replace(source, rows=tuple(list_models(source))))


def check(table: PaperTable) -> None:
    """Refuse settings that name no table, column, metric or model."""
    for owner, settings, known in (
        ("the table", table.settings, ("of", "over", "models", "metrics", "against")),
        *((f"the column {column.name!r}", column.settings, ("compare",)) for column in table.columns),
        *((f"the row {row.name!r}", row.settings, ("models", "column", "against")) for row in table.rows),
    ):
        for key in settings:
            if key not in known:
                raise plugins.refuse_key(key, known, owner)
    source = find_source(table) if "of" in table.settings else table
    if source is table:
        plain = tuple(replace(row, settings={}) for row in list_models(table))
        columns = tuple(replace(column, settings={}) for column in table.columns)
        retrieval.check(replace(table, rows=plain, columns=columns, settings={}))
    names, metrics = [column.name for column in source.measured], list_metrics(source)
    for row in table.rows:
        for column in table.measured:
            used = [_find_column(table, row, column), *([table.settings["over"]] if "over" in table.settings else [])]
            for name in used if is_mean(table, row) else ():
                _expect(name, names, f"{source.name} has no column {name!r}")
            _expect(column.metric, metrics, f"{source.name} does not measure {column.metric!r}")
        if is_mean(table, row) and not any(_asks_for(table, row, model) for model in list_models(source)):
            models = [_name(model) for model in list_models(source)]
            _expect(_pattern(table, row), models, f"no model matches {_pattern(table, row)!r}")
        other = _find_other(table, row)
        if other:
            _expect(other, [each.name for each in table.rows], f"there is no row {other!r} to compare with")
    for column in table.columns:
        if "compare" in column.settings:
            _expect(column.settings["compare"], COMPARISONS, f"the column {column.name!r} cannot be compared so")


def find_source(table: PaperTable) -> PaperTable:
    """The table with the models: another, or the table itself with all rows, of which `table` may have some."""
    if "of" in table.settings:
        return load_table(str(table.settings["of"]))
    whole = load_table(table.name) if table.name in list_tables() else table
    return whole if {row.name for row in table.rows} < {row.name for row in whole.rows} else table


def list_models(source: PaperTable) -> list[PaperRow]:
    return [row for row in source.rows if not is_mean(source, row)]


def list_metrics(source: PaperTable) -> list[str]:
    return list(source.settings.get("metrics", dict.fromkeys(column.metric for column in source.measured)))


def is_mean(table: PaperTable, row: PaperRow) -> bool:
    return "of" in table.settings or "models" in row.settings


def widen(source: PaperTable) -> PaperTable:
    """The table with the models, each of its columns once per metric, named by both."""
    columns = tuple(
        replace(column, name=_join(column.name, metric), metric=metric, settings={})
        for column in source.measured
        for metric in list_metrics(source)
    )
    return replace(source, columns=columns, settings={})


def average(cells: Mapping[str, Cell], bases: Mapping[str, Cell] | None) -> Cell:
    """The mean over models of their cells, or of what these exceed their `bases` by."""
    pairs: list[tuple[Measured, Measured | None]] = []
    missing: dict[str, str] = {}
    for model, cell in cells.items():
        base = bases[model] if bases is not None else None
        failed = next((each for each in (cell, base) if isinstance(each, NotRun)), None)
        if failed is not None:
            missing[model] = failed.reason
        else:
            assert isinstance(cell, Measured) and not isinstance(base, NotRun)
            pairs.append((cell, base))
    if not pairs:
        return NotRun(f"no model could run; {next(iter(missing))}: {next(iter(missing.values()))}")
    note = f"mean of {len(pairs)} of {len(cells)} models; not run: {', '.join(missing)}" if missing else ""
    value = float(np.mean([cell.value - (base.value if base else 0.0) for cell, base in pairs]))
    queries = {
        name: float(np.mean([cell.queries[name] - (base.queries[name] if base else 0.0) for cell, base in pairs]))
        for name in pairs[0][0].queries
        if all(name in each.queries for pair in pairs for each in pair if each is not None)
    }
    low, high = bootstrap_interval(list(queries.values()), np.random.default_rng(0)) if queries else (None, None)
    return Measured(value, low, high, note, queries)


def compare(cell: Cell, other: Cell, comparison: str) -> Cell:
    """Difference or share of two cells that were measured on the same queries."""
    for each in (cell, other):
        if isinstance(each, NotRun):
            return each
    assert isinstance(cell, Measured) and isinstance(other, Measured)
    if comparison == "share" and not other.value:
        return NotRun("a share of 0 means nothing")
    value = cell.value / other.value if comparison == "share" else cell.value - other.value
    names = [name for name in cell.queries if name in other.queries]
    if not names:
        return Measured(value)
    own, base = (np.array([each.queries[name] for name in names]) for each in (cell, other))
    if comparison == "difference":
        return Measured(value, *bootstrap_interval(own - base, np.random.default_rng(0)))
    return Measured(value, *_bound_share(own, base))


def _bound_share(own: NDArray[np.float64], base: NDArray[np.float64]) -> tuple[float, float] | tuple[None, None]:
    known = ~np.isnan(own) & ~np.isnan(base)
    own, base = own[known], base[known]
    random = np.random.default_rng(0)
    shares = []
    for _ in range(SAMPLES):
        drawn = random.integers(len(own), size=len(own))
        if base[drawn].sum() > 0:
            shares.append(own[drawn].sum() / base[drawn].sum())
    if not shares:
        return None, None
    low, high = np.quantile(shares, (0.025, 0.975))
    return float(low), float(high)


def _measure_models(source: PaperTable, models: Sequence[PaperRow], run: Run) -> Cells:
    names = {
        _join(column.name, metric): (column.name, metric)
        for column in source.measured
        for metric in list_metrics(source)
    }
    plain = [replace(model, settings={}) for model in models]
    return {(row, *names[column]): cell for row, column, cell in retrieval.measure(widen(source), plain, run)}


def _read_cell(table: PaperTable, row: PaperRow, column: Column, source: PaperTable, cells: Cells) -> Cell:
    if is_mean(table, row):
        models = [model.name for model in list_models(source) if _asks_for(table, row, model)]
        own, over = _find_column(table, row, column), table.settings.get("over")
        bases = None if over is None else {model: cells[model, str(over), column.metric] for model in models}
        return average({model: cells[model, own, column.metric] for model in models}, bases)
    cell = cells[row.name, column.name, column.metric]
    if "compare" not in column.settings:
        return cell
    other = _find_other(table, row)
    if not other:
        return NotRun("the paper compares this row with no other")
    base = cells.get((other, column.name, column.metric), NotRun(f"the row {other!r} was not chosen"))
    return compare(cell, base, str(column.settings["compare"]))


def _find_other(table: PaperTable, row: PaperRow) -> str:
    """The name of the row that a row is compared with; empty: none."""
    return str(row.settings.get("against", table.settings.get("against", "")))


def _asks_for(table: PaperTable, row: PaperRow, model: PaperRow) -> bool:
    if not is_mean(table, row):
        return row.name == model.name
    return fnmatchcase(_name(model), _pattern(table, row))


def _pattern(table: PaperTable, row: PaperRow) -> str:
    return str(row.settings.get("models", table.settings.get("models", "*")))


def _name(model: PaperRow) -> str:
    return f"{model.group}/{model.name}"


def _find_column(table: PaperTable, row: PaperRow, column: Column) -> str:
    """The column of the table with the models that a cell is about."""
    return str(row.settings.get("column", row.name)) if "of" in table.settings else column.name


def _join(column: str, metric: str) -> str:
    return f"{column}, {metric}"


def _share(run: Run, table: PaperTable, source: PaperTable) -> Run:
    """Where answers about the models are kept: with the table that has them."""
    if source.name == table.name:
        return run
    shared = copy.copy(run)
    shared.folder = run.folder.with_name(source.name.rpartition("/")[2])
    return shared


def _expect(name: Any, known: Sequence[str], problem: str) -> None:
    if name not in known:
        fix = did_you_mean(str(name), known, "correct the table's file")
        raise RecipeError(problem, expected=f"one of {', '.join(known)}", actual=repr(name), fix=fix)
