"""TOML → frozen Recipe, once, at the edge.

    name = "museum"
    index = "exact"                                   # a plug-in by name …
    data = { name = "museum", direction = "photos" }  # … or with settings

    [[branches]]
    encoder = "sift"
    descriptor = { name = "vlad", words = 256 }

    [[rerankers]]
    name = "geometry"

Recipes that come with the package are found by name ("sift", "craterbench/backbones"), a recipe of one's own by its
path; `{here}/` at the start of a string is the folder that its file lies in (recipe_places.py). `overrides` are
`key=value` strings with dotted keys ("branches.0.encoder.features=2000", "index=hnsw"); see recipe_overrides.py. A
recipe may hold rows and alternatives, and then stands for many; see recipe_alternatives.py.
"""

import copy
import tomllib
from collections import Counter
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from resight.errors import RecipeError
from resight.recipe.expand import BEFORE_LABEL, expand
from resight.recipe.overrides import apply, reaches
from resight.recipe.tables import KEYS, find_files, parse, read_choice, to_table
from resight.types import Choice, Recipe

__all__ = [
    "BEFORE_LABEL",
    "KEYS",
    "apply",
    "expand",
    "label",
    "label_all",
    "load",
    "load_all",
    "load_many",
    "parse",
    "refuse_idle_index",
    "shipped",
    "shipped_path",
    "to_table",
]


def load(source: str | Path, overrides: Sequence[str] = (), preset: str | Path | None = None) -> Recipe:
    """The recipe at a path, or the shipped one of that name, with overrides put in; refused if it stands for many."""
    found = load_all(source, overrides, preset)
    if len(found) > 1:
        raise RecipeError(
            f"the recipe {str(source if preset is None else preset)!r} holds alternatives, and one is needed here",
            expected="one plug-in in each place, and no rows",
            actual=f"{len(found)}: {'; '.join(map(label, found[:3]))}{' …' if len(found) > 3 else ''}",
            fix="compare them with `resight eval`, or choose one, e.g. --set index=exact",
        )
    return found[0]


def load_all(source: str | Path, overrides: Sequence[str] = (), preset: str | Path | None = None) -> list[Recipe]:
    """Every recipe that the rows and alternatives of one make, each with its own `label`; itself where it has none.

    With a `preset`, that recipe says how to encode and search, and `source` only on which data and by which metrics.
    """
    return load_many([source], overrides, [] if preset is None else [preset])


def load_many(
    sources: Sequence[str | Path], overrides: Sequence[str] = (), presets: Sequence[str | Path] = ()
) -> list[Recipe]:
    """All recipes of many, to be measured on the same data: recipes without data take those of the first that has any.

    With `presets`, these say how to encode and search, and the one source on which data and by which metrics. An
    override that names a row is put into the recipes that have it, any other into all.
    """
    tables = [_read(source) for source in sources]
    if presets:
        tables = _measure_presets(tables, [_read(preset) for preset in presets])
    tables = _share_data(tables)
    for override in overrides:
        meant = [table for table in tables if reaches(table, override)]
        for table in meant or tables:
            apply(table, override)
    found = [parse(one) for table in tables for one in expand(table)]
    for recipe in found:
        refuse_idle_index(recipe, overrides)
    return found


def refuse_idle_index(recipe: Recipe, overrides: Sequence[str]) -> None:
    """An index that is asked for by an override, and that no branch takes, would be a setting without effect."""
    asked = any(override.partition("=")[0].strip().split(".")[0] == "index" for override in overrides)
    idle = recipe.index != Choice("exact")  # which a recipe has that names none
    if asked and idle and all(branch.index for branch in recipe.branches if branch.weight > 0):
        raise RecipeError(
            f"the index {recipe.index.name!r} is used by no branch",
            expected="an index for a branch that has none of its own",
            actual="every branch with a weight names its index",
            fix="set it for the branch, e.g. --set branches.1.index.kind=fp32",
        )


def label(recipe: Recipe) -> str:
    """What tells a recipe from the others of its file, e.g. "aggregated k=32"; its name when there are no others."""
    return recipe.name.rpartition(BEFORE_LABEL)[2]


def label_all(recipes: Sequence[Recipe]) -> list[str]:
    """The label of each, and the whole name of those whose label another has too."""
    often = Counter(map(label, recipes))
    labels = [recipe.name if often[label(recipe)] > 1 else label(recipe) for recipe in recipes]
    twice = [name for name, count in Counter(labels).items() if count > 1]
    if twice:
        raise RecipeError(
            "two recipes have the same name",
            expected="names that tell them apart",
            actual=f"{twice[0]!r}, twice",
            fix="give each recipe once, and a name of its own",
        )
    return labels


def shipped() -> list[str]:
    """Names of the recipes that come with the package; one in a folder is called "folder/name"."""
    return sorted(path.relative_to(_folder()).with_suffix("").as_posix() for path in _folder().rglob("*.toml"))


def shipped_path(name: str) -> Path:
    if name not in shipped():  # which also keeps every name inside the folder
        raise RecipeError(
            f"no recipe {name!r}",
            expected=f"the path of a .toml file, or one of {', '.join(shipped())}",
            actual=name,
            fix="check the path; docs/recipes.md shows how to write one",
        )
    return _folder() / f"{name}.toml"


def _read(source: str | Path) -> dict[str, Any]:
    """The tables of a recipe file; where it has no name, it is called like the file."""
    path, name = Path(source), Path(source).stem
    if not (path.suffix == ".toml" and path.is_file()):
        path, name = shipped_path(str(source)), str(source)
    try:
        return find_files({"name": name, **tomllib.loads(path.read_text(encoding="utf-8"))}, path.parent)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise RecipeError(
            f"{path} is not valid TOML", actual=str(error), fix="correct the line that it names"
        ) from error


def _measure_presets(sources: Sequence[dict[str, Any]], presets: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The presets, on the data and by the metrics of the one source; several are told apart by their own names."""
    if len(sources) > 1:
        raise RecipeError(
            "several recipes, and presets to encode by",
            expected="one recipe, which says on which data the presets are measured",
            actual=", ".join(str(source["name"]) for source in sources),
            fix="give one recipe, and all others by --encoder",
        )
    measured = {key: value for key, value in sources[0].items() if key in ("data", "metrics")}
    return [
        {
            **preset,
            **copy.deepcopy(measured),
            "name": f"{sources[0]['name']} with {preset['name']}" if len(presets) == 1 else preset["name"],
        }
        for preset in presets
    ]


def _share_data(tables: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Tables that all have the data and the metrics of the first that has data."""
    first = next((table for table in tables if "data" in table), None)
    if first is None:
        return list(tables)
    shared = {key: value for key, value in first.items() if key in ("data", "metrics")}
    for other in tables:
        if "data" not in other:
            continue
        for key, one, two in (
            ("data", read_choice(first["data"], "data"), read_choice(other["data"], "data")),
            ("metrics", first.get("metrics"), other.get("metrics")),
        ):
            if one != two:
                raise RecipeError(
                    f"the recipes differ in their {key}, and one table cannot hold both",
                    expected=f"{first['name']}: {key} = {_say(one)}",
                    actual=f"{other['name']}: {key} = {_say(two)}",
                    fix="measure them apart, or give one as --encoder, which takes nothing but its method",
                )
    return [table if "data" in table else {**table, **copy.deepcopy(shared)} for table in tables]


def _say(value: Any) -> str:
    if isinstance(value, Choice):
        return ", ".join([value.name, *(f"{key} = {setting!r}" for key, setting in value.settings.items())])
    return str(value)


def _folder() -> Path:
    return Path(str(resources.files("resight") / "recipes"))
