"""Retrieval tables: every cell is a metric, or a fact about size, of one recipe on a data set.

In: a PaperTable. Out: a Measured per cell, with the 95 % interval of a bootstrap over the queries. Experiments with the
same data and encoders run together in one process, up to GROUP of them, so that each image is encoded once. If such a
process dies, its experiments run again in two halves, and so on down to single ones: only those that fail alone are
NotRun. Each measured experiment is remembered by itself, whatever ran beside it. Facts (`params`, `gflops`, bytes) have
no interval. Regions of a recipe may have path = "{boxes}": a file of the data set's true boxes, which the run writes.
"""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from resight import plugins
from resight.errors import InputError, RecipeError
from resight.reproduce import worker
from resight.reproduce.experiments import (
    FACTS,
    Experiment,
    find_best,
    list_alternatives,
    list_experiments,
    make_key,
    try_recipe,
)
from resight.reproduce.paper_table import Column, PaperRow, PaperTable
from resight.reproduce.run import Cell, Measured, NotRun, Run

GROUP = 16  # experiments per process: each adds the rows of its branches on disk
COMPLEXITY = ("params", "gflops")  # facts that need no search
BOXES = '"{boxes}"'  # in a recipe, as JSON: the true boxes of its data set
LIKE = "like"  # the row or column of another table that one is compared with
CHILD = "resight.reproduce.kinds._retrieval_group"
MEASURE, LOAD, COUNT, WRITE_BOXES = (
    f"{CHILD}:{name}" for name in ("measure_group", "load_data", "count_complexity", "write_boxes")
)


@dataclass(frozen=True)
class Outcome:
    """What was measured of one experiment."""

    figures: Mapping[str, Measured]  # metric → mean, interval and the value of each query
    facts: Mapping[str, float]


@dataclass(frozen=True)
class Question:
    """An experiment to run."""

    experiment: Experiment
    recipe: Mapping[str, Any]  # as the experiment has it, with the path of the true boxes instead of BOXES
    root: str  # folder of its data set
    key: str  # what its answer is remembered by


def check(table: PaperTable) -> None:
    """Refuse unknown settings and metrics, and cells without a valid recipe."""
    from resight.evaluate.judge_query import judge_all

    _refuse_settings("the table", table.settings, ())
    for column in table.columns:
        _refuse_settings(f"the column {column.name!r}", column.settings, (LIKE,))
    for row in table.rows:
        _refuse_settings(f"the row {row.name!r}", row.settings, (LIKE,))
    for column in table.measured:
        if not column.metric:
            raise _refuse(f"the column {column.name!r} has no metric", "a metric, a fact, or text = true", "nothing")
    bests = (table.best, *(column.best for column in table.columns), *(row.best for row in table.rows))
    metrics = [column.metric for column in table.measured if column.metric not in FACTS]
    judge_all((), list(dict.fromkeys([*metrics, *(best.by for best in bests if best)])))
    if not table.rows or not table.measured:
        raise _refuse("a retrieval table without cells", "[[rows]] and [[columns]]", "none")
    for experiment in list_experiments(table, table.rows):
        owner = "row {!r}, column {!r}".format(*experiment.cells[0])
        if experiment.problem:
            raise RecipeError(
                f"{owner}: {experiment.problem.problem}",
                expected=experiment.problem.expected,
                actual=experiment.problem.actual,
                fix=experiment.problem.fix,
            )
        data = experiment.recipe.data if experiment.recipe else None
        if data is None or data.name not in table.data:
            actual = "no data" if data is None else data.name
            raise _refuse(f"{owner}: its data set is not in `data`", f"one of {', '.join(table.data)}", actual)


def measure(table: PaperTable, rows: Sequence[PaperRow], run: Run) -> Iterator[tuple[str, str, Cell]]:
    searched = [column for column in table.measured if column.metric not in COMPLEXITY]
    experiments = list_experiments(table, rows, run.overrides, searched)
    outcomes = measure_experiments(experiments, run)
    for row in rows:
        for column in table.measured:
            if row.skip:
                yield row.name, column.name, NotRun(row.skip)
            elif column.metric in COMPLEXITY:
                yield row.name, column.name, _count(table, row, column, run)
            else:
                yield row.name, column.name, _read_cell(table, row, column, run.overrides, outcomes)


def measure_experiments(experiments: Sequence[Experiment], run: Run) -> dict[str, Outcome | NotRun]:
    """The outcome of every experiment, by its key."""
    found: dict[str, Outcome | NotRun] = {
        each.key: NotRun(worker.describe(each.problem)) for each in experiments if each.problem
    }
    left: list[Question] = []
    for each in experiments:
        if each.recipe is None:
            continue
        try:
            root = str(find_root(each, run))
        except InputError as error:
            found[each.key] = NotRun(worker.describe(error))
            continue
        recipe = fill_in_boxes(each.table, root, run)
        if isinstance(recipe, NotRun):
            found[each.key] = recipe
            continue
        question = Question(each, recipe, root, run.make_key(MEASURE, {"recipes": [recipe], "root": root}))
        known = run.recall(question.key)
        if known is None:
            left.append(question)
        else:
            found[each.key] = read_outcome(known)
    groups = group(left)
    for number, members in enumerate(groups, start=1):
        run.report(f"group {number} of {len(groups)}: {_name(members)}")
        data = run.isolate(LOAD, {"data": members[0].experiment.table["data"], "root": members[0].root})
        if isinstance(data, NotRun):
            found |= dict.fromkeys([each.experiment.key for each in members], data)
        else:
            found |= _measure_halves(members, run)
    return found


def group(questions: Sequence[Question]) -> list[list[Question]]:
    """Experiments with the same data and encoders, up to GROUP of them together."""
    alike: dict[str, list[Question]] = {}
    for each in questions:
        table = each.experiment.table
        encoders = sorted({json.dumps(branch.get("encoder"), sort_keys=True) for branch in table["branches"]})
        alike.setdefault(json.dumps([table.get("data"), each.root, encoders], sort_keys=True), []).append(each)
    return [members[first : first + GROUP] for members in alike.values() for first in range(0, len(members), GROUP)]


def find_root(experiment: Experiment, run: Run) -> Path:
    """The folder of the experiment's data set; --data may also name which of several in one it is (roxford5k)."""
    data = experiment.recipe.data if experiment.recipe else None
    if data is None:
        raise _refuse("the recipe has no data", 'data = "…"', "none")
    which = str(data.settings.get("which", ""))
    return run.root(which if which in run.data.named else data.name)


def fill_in_boxes(recipe: Mapping[str, Any], root: str, run: Run) -> dict[str, Any] | NotRun:
    """The recipe with the path of a file of the data set's true boxes instead of BOXES.

    The file lies in the folder of the run. Its name changes with the data set, so that it is written once.
    """
    text = json.dumps(recipe)
    if BOXES not in text:
        return dict(recipe)
    arguments = {"data": recipe["data"], "root": root}
    path = run.folder / f"boxes_{run.make_key(WRITE_BOXES, arguments)[:16]}.csv"
    if not path.exists():
        run.report("writing the true boxes")
        written = run.isolate(WRITE_BOXES, {**arguments, "path": str(path)}, remember=False)
        if isinstance(written, NotRun):
            return written
    filled: dict[str, Any] = json.loads(text.replace(BOXES, json.dumps(str(path))))
    return filled


def _measure_halves(members: Sequence[Question], run: Run) -> dict[str, Outcome | NotRun]:
    """Experiments that share their data and encoders: together, or in two halves if the process dies."""
    arguments = {
        "recipes": [each.recipe for each in members],
        "root": members[0].root,
        "cache": str(run.cache_folder) if run.cache_folder else None,
        "cache_bytes": run.cache_bytes,
    }
    answer = run.isolate(MEASURE, arguments, remember=False)
    if isinstance(answer, NotRun):
        if len(members) == 1:
            return {members[0].experiment.key: answer}
        run.report(f"{_name(members)}: {answer.reason}; trying fewer at a time")
        half = len(members) // 2
        return _measure_halves(members[:half], run) | _measure_halves(members[half:], run)
    found: dict[str, Outcome | NotRun] = {}
    for each, row in zip(members, answer["rows"], strict=True):
        if "reason" in row:
            found[each.experiment.key] = NotRun(row["reason"])
        else:
            single = {"queries": answer["queries"], "rows": [row]}
            run.remember(each.key, single)
            found[each.experiment.key] = read_outcome(single)
    return found


def read_outcome(answer: Mapping[str, Any]) -> Outcome:
    """The outcome in an answer of `measure_group` for one experiment."""
    (row,) = answer["rows"]
    figures = {
        metric: Measured(mean, low, high, queries=dict(zip(answer["queries"], values, strict=True)))
        for metric, (mean, low, high, values) in row["figures"].items()
    }
    return Outcome(figures, row["facts"])


def _read_cell(
    table: PaperTable,
    row: PaperRow,
    column: Column,
    overrides: Sequence[str],
    outcomes: Mapping[str, Outcome | NotRun],
) -> Cell:
    best = find_best(table, row, column)
    found: list[tuple[Outcome, str]] = []
    failed: list[str] = []
    for alternative in list_alternatives(table, row, column):
        made, _ = try_recipe(table, row, column, alternative, overrides)
        outcome = outcomes[make_key(made)]
        if isinstance(outcome, NotRun):
            failed.append(outcome.reason)
        else:
            found.append((outcome, ", ".join(alternative)))
    if not found:
        return NotRun(failed[0])
    chosen, note = found[0]
    if best:
        chosen, note = max(found, key=lambda each: _comparable(each[0].figures[best.by].value))
    if failed:
        note += f" ({len(failed)} of {len(found) + len(failed)} alternatives not run: {failed[0]})"
    if column.metric in FACTS:
        value = chosen.facts.get(column.metric)
        return NotRun(f"the index does not tell its {column.metric}") if value is None else Measured(value, note=note)
    figure = chosen.figures[column.metric]
    if math.isnan(figure.value):
        return NotRun(f"no query has a value of {column.metric}")
    return replace(figure, note=note)


def _comparable(value: float) -> float:
    return -math.inf if math.isnan(value) else value


def _count(table: PaperTable, row: PaperRow, column: Column, run: Run) -> Cell:
    """Parameters or operations of the encoders of a row, at random weights."""
    made, problem = try_recipe(table, row, column, list_alternatives(table, row, column)[0], run.overrides)
    if problem:
        return NotRun(worker.describe(problem))
    encoders = [branch["encoder"] for branch in made.get("branches", []) if "encoder" in branch]
    distinct = list({json.dumps(encoder, sort_keys=True): encoder for encoder in encoders}.values())
    answer = run.isolate(COUNT, {"encoders": distinct, "fact": column.metric})
    return answer if isinstance(answer, NotRun) else Measured(float(answer["value"]))


def _name(members: Sequence[Question]) -> str:
    row, column = members[0].experiment.cells[0]
    return f"{row}, {column}" + (f" and {len(members) - 1} more" if len(members) > 1 else "")


def _refuse_settings(owner: str, settings: Mapping[str, Any], known: tuple[str, ...]) -> None:
    for key in settings:
        if key not in known:
            raise plugins.refuse_key(key, known, owner)


def _refuse(problem: str, expected: str, actual: str) -> RecipeError:
    return RecipeError(problem, expected=expected, actual=actual, fix="correct the table's file")
