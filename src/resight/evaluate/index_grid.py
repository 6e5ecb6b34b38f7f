"""A grid of settings of the index `ivfpq`, each built over the same stored rows.

In: a collection, one of its branches and a Grid. Out: GridPoints in the order of the grid, the exact index first, each
with its cost; and the settings that the index refuses, with the reason. Points that differ only in search settings
share one index on disk.
"""

import itertools
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol, cast

from resight import index as indexes
from resight.collection import Collection
from resight.collection.indexes import create_index
from resight.errors import RecipeError
from resight.evaluate.evaluation import AbsentRow
from resight.index import Chunks, Index, Searcher
from resight.types import Choice, Recipe

TUNED = "ivfpq"
TUNABLE = ("exact", "hnsw", TUNED)  # indexes over the same kind of rows
SEARCHING = frozenset({"nprobe", "refine", "match"})  # settings that do not change what is on disk
SIZES = (16, 32, 64)  # parts of a row, at most
WORDS: Mapping[str, Callable[[Any], str]] = {
    "dimensions": lambda count: f"whitened to {count}" if count else "",
    "rotation": lambda on: "OPQ" if on else "",
    "fast": lambda on: "fast" if on else "",
    "train_on": lambda rows: f"of {rows}",
    "train_branch": lambda branch: f"of branch {branch}",
    "nbits": lambda bits: f"{bits} bits",
}


class Sized(Protocol):
    """Sizes that the searchers of the indexes in TUNABLE report."""

    @property
    def bytes_in_memory(self) -> int: ...

    @property
    def bytes_on_disk(self) -> int: ...


@dataclass(frozen=True)
class Grid:
    """Every combination is a point; an empty list keeps the setting of the recipe or the index."""

    m: tuple[int, ...] = ()  # empty: the largest divisors of the dimensions up to 16, 32 and 64
    dimensions: tuple[int, ...] = ()  # to which rows are whitened and cut first; 0: as they are
    nlist: tuple[int, ...] = (0,)
    nbits: tuple[int, ...] = (8,)
    nprobe: tuple[int, ...] = (8, 32, 128)
    train_on: tuple[str, ...] = ()  # levels, or numbers of branches
    keep: tuple[str, ...] = ()
    rotation: bool = False  # with and without
    fast: bool = False  # 4-bit fast scan beside the others


@dataclass(frozen=True)
class GridPoint:
    label: str
    choice: Choice
    searcher: Searcher
    build_seconds: float

    @property
    def bytes_in_memory(self) -> int:
        return cast(Sized, self.searcher).bytes_in_memory

    @property
    def bytes_on_disk(self) -> int:
        return cast(Sized, self.searcher).bytes_on_disk


def build_points(
    collection: Collection,
    branch: int,
    grid: Grid,
    scratch: Path,
    report: Callable[[str], None] | None = None,
) -> tuple[list[GridPoint], list[AbsentRow]]:
    """The exact index and those of the grid, built below `scratch`."""
    base = collection.recipe.branches[branch].index or collection.recipe.index
    choices = list_choices(grid, base, _find_dimensions(collection, branch))
    labels = name_choices(choices)
    built: dict[str, float | RecipeError] = {}  # folder → seconds, or the reason why the index was refused
    points: list[GridPoint] = []
    refused: list[AbsentRow] = []
    for number, (label, choice) in enumerate(zip(labels, choices, strict=True)):
        if report:
            report(f"building {label}, {number + 1} of {len(choices)}")
        plugin = indexes.build(choice.name, **choice.settings)
        folder = scratch / _name_folder(choice)
        if folder.name not in built:
            built[folder.name] = _build(plugin, collection, branch, folder)
        outcome = built[folder.name]
        if isinstance(outcome, RecipeError):
            reason = "; ".join(text for text in (outcome.problem, outcome.expected) if text)
            refused.append(AbsentRow(label, len(points), reason))
        else:
            points.append(GridPoint(label, choice, plugin.open(folder), outcome))
    return points, refused


def find_branch(recipe: Recipe, chosen: int | None = None) -> int:
    """The branch to tune: the chosen one, or the only one that an index of vectors searches."""
    found = [
        number
        for number, branch in enumerate(recipe.branches)
        if branch.weight > 0 and (branch.index or recipe.index).name in TUNABLE
    ]
    if len(found) == 1 and chosen is None:
        return found[0]
    if chosen in found:
        return chosen
    raise RecipeError(
        f"the recipe {recipe.name!r} does not have exactly one index to tune"
        if chosen is None
        else f"branch {chosen} has no index to tune",
        expected=f"a branch with a weight and the index {' or '.join(TUNABLE)}",
        actual=f"branches {', '.join(map(str, found))}" if found else "none",
        fix="choose one with --branch; codes of tokens are compared by `resight eval --curve compression`",
    )


def choose_index(recipe: Recipe, branch: int, choice: Choice) -> Recipe:
    """The recipe with another index for one branch."""
    branches = list(recipe.branches)
    branches[branch] = replace(branches[branch], index=choice)
    return replace(recipe, branches=tuple(branches))


def list_choices(grid: Grid, base: Choice, dimensions: int) -> list[Choice]:
    """The exact index first. Settings that the grid does not name stay those of the recipe's own index."""
    settings = dict(base.settings) if base.name == TUNED else {}
    shared = {key: value for key, value in base.settings.items() if key == "match"}
    bits = [{"nbits": bits, "fast": False} for bits in grid.nbits] + [{"nbits": 4, "fast": True}] * grid.fast
    axes: list[Sequence[Mapping[str, Any]]] = [
        _list_sizes(grid, settings.get("dimensions") or dimensions, dimensions),
        [{"nlist": nlist} for nlist in grid.nlist],
        bits,
        [{"rotation": on} for on in ((False, True) if grid.rotation else ())],
        [{"train_branch": int(rows)} if rows.isdigit() else {"train_on": rows} for rows in grid.train_on],
        [{"keep": keep} for keep in grid.keep],
        [{"nprobe": nprobe} for nprobe in grid.nprobe],
    ]
    points = [
        {key: value for part in parts for key, value in part.items()}
        for parts in itertools.product(*(axis for axis in axes if axis))
    ]
    return [Choice("exact", shared), *(Choice(TUNED, {**settings, **shared, **point}) for point in points)]


def _list_sizes(grid: Grid, usual: int, dimensions: int) -> list[Mapping[str, Any]]:
    """Dimensions and parts of a row; the parts have to divide the dimensions."""
    if not grid.dimensions:
        return [{"m": m} for m in grid.m or choose_parts(usual)]
    return [
        {"dimensions": cut, "m": m}
        for cut in grid.dimensions
        for m in grid.m or choose_parts(min(cut or dimensions, dimensions))
    ]


def choose_parts(dimensions: int) -> list[int]:
    """Numbers of equal parts for a row: the largest divisor up to each of SIZES."""
    divisors = [part for part in range(1, dimensions + 1) if dimensions % part == 0]
    return sorted({max(part for part in divisors if part <= most) for most in SIZES})


def name_choices(choices: Sequence[Choice]) -> list[str]:
    """Labels from the settings that differ between points, and always the parts of a row."""
    tuned = [choice.settings for choice in choices if choice.name == TUNED]
    keys = list(dict.fromkeys(key for settings in tuned for key in settings))
    named = [key for key in keys if key == "m" or len({repr(settings.get(key)) for settings in tuned}) > 1]
    return [
        choice.name if choice.name != TUNED else " ".join(filter(None, _format_settings(choice.settings, named)))
        for choice in choices
    ]


def _format_settings(settings: Mapping[str, Any], keys: Sequence[str]) -> Iterator[str]:
    for key in keys:
        if key in settings:
            yield WORDS[key](settings[key]) if key in WORDS else f"{key}={settings[key]}"


def _build(plugin: Index, collection: Collection, branch: int, folder: Path) -> float | RecipeError:
    """Seconds to build, or the error if the index refuses the settings."""

    def read(number: int) -> Chunks:
        return lambda: collection.descriptors(number)

    folder.mkdir(parents=True)
    started = time.perf_counter()
    try:
        create_index(plugin, read, len(collection.recipe.branches), branch, folder)
    except RecipeError as error:
        return error
    return time.perf_counter() - started


def _name_folder(choice: Choice) -> str:
    built = sorted((key, value) for key, value in choice.settings.items() if key not in SEARCHING)
    return "-".join([choice.name, *(f"{key}_{value}" for key, value in built)])


def _find_dimensions(collection: Collection, branch: int) -> int:
    return next((chunk.vectors.shape[1] for chunk in collection.descriptors(branch)), 1)
