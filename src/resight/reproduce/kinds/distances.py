"""Distances: percentiles over the queries of the metres to their k-th nearest image of the database.

In: a table whose rows have `neighbour` (k) and whose columns have `percentile`, and a data set with positions. Out: a
Measured per cell, in metres by great circle, with the 95 % interval of a bootstrap over the queries. No image is
encoded or opened. The ids of all images, database and then queries, go to images.txt in the folder of the table: the
list that a subset such as msls's can be loaded by again (images = FILE).
"""

import copy
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from resight import plugins
from resight.data import sets
from resight.errors import InputError, RecipeError
from resight.evaluate.distances import find_neighbours, locate_dataset
from resight.files.atomic import write_atomic
from resight.recipe.overrides import apply
from resight.recipe.tables import read_choice
from resight.reproduce import worker
from resight.reproduce.kinds import Requirements
from resight.reproduce.paper_table import PaperRow, PaperTable
from resight.reproduce.run import Cell, Measured, NotRun, Run

FUNCTION = f"{__name__}:measure_percentiles"
LIST = "images.txt"
SAMPLES = 1000  # of the bootstrap
LEVEL = (2.5, 97.5)  # percent


def measure(table: PaperTable, rows: Sequence[PaperRow], run: Run) -> Iterator[tuple[str, str, Cell]]:
    answer = _ask(table, rows, run)
    if not isinstance(answer, NotRun):
        path = run.folder / LIST
        with write_atomic(path) as temporary:
            temporary.write_text("".join(f"{name}\n" for name in answer["ids"]), encoding="utf-8")
        run.report(f"the list of the images: {path}")
    for row in rows:
        for column in table.measured:
            yield row.name, column.name, _read_cell(answer, row, int(column.settings["percentile"]))


def requirements(table: PaperTable) -> Requirements:  # noqa: ARG001 - every kind is given its table
    return Requirements()


def check(table: PaperTable) -> None:
    for owner, settings, key, most in (
        *((f"the row {row.name!r}", row.settings, "neighbour", 10_000) for row in table.rows),
        *((f"the column {column.name!r}", column.settings, "percentile", 100) for column in table.measured),
    ):
        for other in settings:
            if other != key:
                raise plugins.refuse_key(other, (key,), owner)
        value = settings.get(key)
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
            raise RecipeError(
                f"{owner} has no {key}", expected=f"{key} from 1 to {most}", actual=repr(value), fix=f"add {key} = …"
            )
    data = read_choice(table.recipe.get("data"), "data")
    if table.data != (data.name,):
        actual = ", ".join(table.data) or "none"
        raise RecipeError("the recipe has another data set", expected=data.name, actual=actual, fix="correct data")


def measure_percentiles(data: Any, root: str, neighbours: Sequence[int], percentiles: Sequence[int]) -> dict[str, Any]:
    """{"k": {"percentile": [value, low, high]}} for each k that the database has; and the ids of all images."""
    choice = read_choice(data, "data")
    dataset = sets.build(choice.name, **choice.settings).load(Path(root))
    images, queries = locate_dataset(dataset)
    nearest = find_neighbours(list(queries.values()), list(images.values()), max(neighbours))
    figures = {
        str(k): dict(zip(map(str, percentiles), find_percentiles(nearest[:, k - 1], percentiles), strict=True))
        for k in neighbours
        if k <= nearest.shape[1]
    }
    ids = [ref.id for ref in (*dataset.database, *dataset.queries)]
    return {"figures": figures, "images": len(images), "ids": ids}


def find_percentiles(distances: NDArray[np.float64], percentiles: Sequence[int]) -> list[tuple[float, float, float]]:
    """Each percentile, linearly interpolated, and its interval over queries drawn with replacement."""
    random = np.random.default_rng(0)
    drawn = distances[random.integers(len(distances), size=(SAMPLES, len(distances)))]
    low, high = np.percentile(np.percentile(drawn, percentiles, axis=1), LEVEL, axis=1)
    values = np.percentile(distances, percentiles)
    return [(float(value), float(a), float(b)) for value, a, b in zip(values, low, high, strict=True)]


def _ask(table: PaperTable, rows: Sequence[PaperRow], run: Run) -> dict[str, Any] | NotRun:
    recipe = copy.deepcopy({"data": table.recipe["data"]})
    try:
        for override in run.overrides:
            if override.partition("=")[0].strip().split(".")[0] == "data":
                apply(recipe, override)
        root = run.root(read_choice(recipe["data"], "data").name)
    except InputError as error:
        return NotRun(worker.describe(error))
    arguments = {
        "data": recipe["data"],
        "root": str(root),
        "neighbours": [int(row.settings["neighbour"]) for row in rows],
        "percentiles": [int(column.settings["percentile"]) for column in table.measured],
    }
    return run.isolate(FUNCTION, arguments)


def _read_cell(answer: dict[str, Any] | NotRun, row: PaperRow, percentile: int) -> Cell:
    if isinstance(answer, NotRun):
        return answer
    found = answer["figures"].get(str(row.settings["neighbour"]))
    if found is None:
        return NotRun(f"the database has only {answer['images']} images with a position")
    return Measured(*found[str(percentile)])
