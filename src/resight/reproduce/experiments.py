"""The experiments of a table: rows and columns in, the recipes that their cells stand for out.

The recipe of a cell is the table's [recipe], with the keys that the row's and then the column's `recipe` replace, then
the overrides of the row, of the column, of one alternative of `best`, and of the user. `best` may stand in the column,
the row or the table; the first of these that has one counts. Cells with the same recipe share one Experiment, which has
the metrics of all of them. A recipe that is invalid leaves an Experiment with the problem instead of a recipe, so that
it costs its own cells only.
"""

import copy
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from resight.errors import RecipeError
from resight.recipe import parse
from resight.reproduce.encoder_overrides import apply_override
from resight.reproduce.paper_table import Best, Column, PaperRow, PaperTable
from resight.types import Recipe

FACTS = ("params", "gflops", "bytes_per_token", "bytes_per_image", "megabytes", "compression")  # figures of no query
UNMEASURED = "ap"  # a recipe needs a metric; this one where the cells ask for facts alone


@dataclass(frozen=True)
class Experiment:
    """One recipe, for all cells that share it."""

    cells: tuple[tuple[str, str], ...]  # row and column names
    table: Mapping[str, Any]  # the recipe as JSON and TOML hold it, with its metrics
    recipe: Recipe | None  # None: see `problem`
    problem: RecipeError | None = None

    @property
    def key(self) -> str:
        return make_key(self.table)


def list_experiments(
    table: PaperTable, rows: Iterable[PaperRow], overrides: Sequence[str] = (), columns: Sequence[Column] | None = None
) -> list[Experiment]:
    """The distinct experiments of the rows, in the order of their first cell; rows with `skip` have none."""
    cells: dict[str, list[tuple[str, str]]] = {}
    recipes: dict[str, dict[str, Any]] = {}
    problems: dict[str, RecipeError] = {}
    metrics: dict[str, list[str]] = {}
    for row in rows:
        known: dict[str, tuple[str, RecipeError | None]] = {}  # most columns differ in their metric alone
        for column in (table.measured if columns is None else columns) if not row.skip else ():
            for alternative in list_alternatives(table, row, column):
                changes = repr((column.recipe, column.set, alternative))
                if changes not in known:
                    made, problem = try_recipe(table, row, column, alternative, overrides)
                    known[changes] = make_key(made), problem
                    recipes.setdefault(known[changes][0], made)
                key, problem = known[changes]
                cells.setdefault(key, []).append((row.name, column.name))
                metrics.setdefault(key, []).extend(list_metrics(table, row, column))
                if problem:
                    problems[key] = problem
    return [
        _make(tuple(dict.fromkeys(cells[key])), made, list(dict.fromkeys(metrics[key])), problems.get(key))
        for key, made in recipes.items()
    ]


def list_alternatives(table: PaperTable, row: PaperRow, column: Column) -> tuple[tuple[str, ...], ...]:
    """The overrides of each alternative of a cell; one without overrides where there is no choice."""
    best = find_best(table, row, column)
    return best.over if best else ((),)


def find_best(table: PaperTable, row: PaperRow, column: Column) -> Best | None:
    return column.best or row.best or table.best


def list_metrics(table: PaperTable, row: PaperRow, column: Column) -> Iterator[str]:
    """The metrics that a cell needs: its own and the one that decides; facts need none."""
    best = find_best(table, row, column)
    for name in (column.metric, best.by if best else ""):
        if name and name not in FACTS:
            yield name


def try_recipe(
    table: PaperTable, row: PaperRow, column: Column, alternative: Sequence[str], overrides: Sequence[str]
) -> tuple[dict[str, Any], RecipeError | None]:
    """The recipe of one alternative of a cell, and the problem if an override does not fit it."""
    made: dict[str, Any] = copy.deepcopy({**table.recipe, **row.recipe, **column.recipe})
    for override in (*row.set, *column.set, *alternative, *overrides):
        try:
            apply_override(made, override)
        except RecipeError as error:
            return {**made, "refused": override}, error  # another recipe than the one that lacks the override
    return made, None


def make_key(recipe: Mapping[str, Any]) -> str:
    """The same text for the same recipe, whatever its metrics."""
    return json.dumps({key: value for key, value in recipe.items() if key != "metrics"}, sort_keys=True, default=str)


def _make(
    cells: tuple[tuple[str, str], ...], made: Mapping[str, Any], metrics: Sequence[str], problem: RecipeError | None
) -> Experiment:
    table = {**made, "metrics": list(metrics) or [UNMEASURED]}
    if problem:
        return Experiment(cells, table, None, problem)
    try:
        return Experiment(cells, table, parse(table, f"{cells[0][0]}, {cells[0][1]}"))
    except RecipeError as error:
        return Experiment(cells, table, None, error)
