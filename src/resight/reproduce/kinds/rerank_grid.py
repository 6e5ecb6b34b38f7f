"""The best setting of a reranker, by a grid: every combination is measured, and the best shown.

In: a retrieval table with a `grid` (of the table, or of a row): settings of rerankers and their values:

    [grid]
    "rerankers.0.candidates" = [0, 100, 200]
    "rerankers.0.balance" = [0.0, 0.5, 1.0]

Out: a Measured per cell, with the 95 % interval of a bootstrap over the queries and the setting in its note. A row with
`grid = {}` is measured as it is. A paper that reports its best setting chose it on the same queries, and so does this
kind: the figure flatters the method. Every cell runs in a process of its own, which compares each pair of images once.
"""

import itertools
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from resight import plugins
from resight.errors import InputError, RecipeError
from resight.recipe import parse
from resight.reproduce import worker
from resight.reproduce.experiments import try_recipe
from resight.reproduce.kinds import Requirements, require_encoders
from resight.reproduce.paper_table import Column, PaperRow, PaperTable
from resight.reproduce.run import Cell, Measured, NotRun, Run

FUNCTION = "resight.reproduce.kinds._rerank_runs:measure_grid"
PREFIX = "rerankers."
CHECKPOINT = ".pt"


def measure(table: PaperTable, rows: Sequence[PaperRow], run: Run) -> Iterator[tuple[str, str, Cell]]:
    for row in rows:
        for column in table.measured:
            yield row.name, column.name, NotRun(row.skip) if row.skip else _measure(table, row, column, run)


def check(table: PaperTable) -> None:
    for owner, settings in (
        ("the table", table.settings),
        *((f"the row {row.name!r}", row.settings) for row in table.rows),
        *((f"the column {column.name!r}", column.settings) for column in table.columns),
    ):
        known = () if owner.startswith("the column") else ("grid",)
        for key in settings:
            if key not in known:
                raise plugins.refuse_key(key, known, owner)
        for key, values in settings.get("grid", {}).items():
            if not key.startswith(PREFIX) or not isinstance(values, list) or not values:
                raise RecipeError(
                    f"{owner}: not a setting of a reranker and its values",
                    expected=f'"{PREFIX}0.candidates" = [100, 200]',
                    actual=f"{key} = {values!r}",
                    fix="correct the grid; a grid of other settings is a table with `best`",
                )
    for row in table.rows:
        for column in table.measured:
            if not column.metric:
                raise RecipeError(f"the column {column.name!r} has no metric", expected="a metric", fix="add one")
            singles = [
                override for key, values in find_grid(table, row).items() for override in list_points({key: values})
            ]
            for overrides in [(), *singles]:
                made, problem = try_recipe(table, row, column, overrides, ())
                if problem:
                    raise problem
                parse({**made, "metrics": [column.metric]}, f"{row.name}, {column.name}")


def requirements(table: PaperTable) -> Requirements:
    """Those of the encoders, and the files that rows name."""
    found = require_encoders(table)
    files = list(dict.fromkeys(name for row in table.rows for name in _list_files(row.recipe)))
    lost = [
        f"{name} is not in this folder: a file of your own, see the notes" for name in files if not Path(name).is_file()
    ]
    return replace(found, weights=(*found.weights, *files), missing=(*found.missing, *lost))


def find_grid(table: PaperTable, row: PaperRow) -> Mapping[str, Sequence[Any]]:
    grid: Mapping[str, Sequence[Any]] = row.settings.get("grid", table.settings.get("grid", {}))
    return grid


def list_points(grid: Mapping[str, Sequence[Any]]) -> list[tuple[str, ...]]:
    """Every combination of the values, as overrides; one without any for an empty grid."""
    options = [[f"{key}={json.dumps(value)}" for value in values] for key, values in grid.items()]
    return list(itertools.product(*options))


def _list_files(value: Any) -> Iterator[str]:
    """Every checkpoint that a recipe names."""
    if isinstance(value, str):
        if value.endswith(CHECKPOINT):
            yield value
    elif isinstance(value, (Mapping, list)):
        for part in value.values() if isinstance(value, Mapping) else value:
            yield from _list_files(part)


def _measure(table: PaperTable, row: PaperRow, column: Column, run: Run) -> Cell:
    points = list_points(find_grid(table, row))
    recipes = []
    for overrides in points:
        made, problem = try_recipe(table, row, column, overrides, run.overrides)
        if problem:
            return NotRun(worker.describe(problem))
        recipes.append(made)
    data = recipes[0].get("data")
    try:
        root = run.root(str(data.get("name") if isinstance(data, Mapping) else data))
    except InputError as error:
        return NotRun(worker.describe(error))
    run.report(f"{row.name}, {column.name}: {len(points)} settings")
    answer = run.isolate(
        FUNCTION,
        {
            "recipe": {**recipes[0], "metrics": [column.metric]},
            "rerankers": [made.get("rerankers", []) for made in recipes],
            "root": str(root),
            "cache": str(run.cache_folder) if run.cache_folder else None,
            "cache_bytes": run.cache_bytes,
        },
    )
    if isinstance(answer, NotRun):
        return answer
    if math.isnan(answer["value"]):
        return NotRun(f"no query has a value of {column.metric}")
    chosen = ", ".join(override.removeprefix(PREFIX) for override in points[answer["best"]])
    return Measured(answer["value"], answer["low"], answer["high"], chosen, answer["queries"])
