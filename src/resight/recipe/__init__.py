"""Recipes: TOML files (and overrides of the command line) in, frozen Recipes out, once, at the edge.

    name = "museum"
    index = "exact"                                   # a plug-in by name …
    data = { name = "museum", direction = "photos" }  # … or with settings

    [[branches]]
    encoder = "sift"
    descriptor = { name = "vlad", words = 256 }

    [[rerankers]]
    name = "geometry"

A recipe is found by the path of its file or, if it comes with the package, by its name ("sift",
"craterbench/backbones"); a network of NETWORKS is one by itself. Steps: read TOML; replace `{here}/` by the folder of
the file (paths.py); put in `overrides`, which are `key=value` strings with dotted keys such as
"branches.0.encoder.features=2000" (overrides.py); expand rows and alternatives, which make many recipes of one
(expand.py); validate (tables.py).
"""

import copy
from collections import Counter
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from resight.errors import RecipeError, did_you_mean
from resight.files.documents import load_toml
from resight.recipe.paths import expand_here
from resight.recipe.tables import LABEL_SEPARATOR, parse, read_choice, to_table
from resight.types import Choice, Recipe

__all__ = [
    "LABEL_SEPARATOR",
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


PRESETS = ("sift_tokens", "sift", "sift_vlad", "tokens", "regions", "craters", "large")  # for any images
# Networks with a vector of their own and published weights: each is a preset, its vector searched exactly.
NETWORKS = (
    "sscd",
    "sscd_large",
    "cosplace",
    "eigenplaces",
    "mixvpr",
    "boq",
    "boq_resnet50",
    "salad",
    "megaloc",
    "delg",
    "superglobal",
)


def load(source: str | Path, overrides: Sequence[str] = (), preset: str | Path | None = None) -> Recipe:
    """Read one recipe from a TOML file, or load a shipped one by its name.

    Args:
        source: The path of a .toml file, or the name of a shipped recipe, such as "sift_tokens".
        overrides: Changes such as "rerankers.0.candidates=100": a dotted key, "=" and a value.
        preset: A second recipe that defines encoding and search; `source` then gives only the data and the metrics.

    Returns:
        The recipe, validated.

    Raises:
        RecipeError: There is no such recipe, it or an override is invalid, or it holds alternatives.

    Examples:
        >>> import resight
        >>> recipe = resight.load_recipe("sift", ["rerankers.0.candidates=100"])
        >>> recipe.rerankers[0].settings["candidates"]
        100
    """
    found = load_all(source, overrides, preset)
    if len(found) > 1:
        raise RecipeError(
            f"the recipe {str(source if preset is None else preset)!r} holds alternatives, and one is needed here",
            expected="one value per setting, and no rows",
            actual=f"{len(found)}: {'; '.join(map(label, found[:3]))}{' …' if len(found) > 3 else ''}",
            fix="compare them with `resight eval`, or choose one, e.g. --set index=exact",
        )
    return found[0]


def load_all(source: str | Path, overrides: Sequence[str] = (), preset: str | Path | None = None) -> list[Recipe]:
    """Every recipe that the rows and alternatives of one make, each with its own `label`.

    With a `preset`, that recipe defines encoding and search, and `source` only the data and the metrics.
    """
    return load_many([source], overrides, [] if preset is None else [preset])


def load_many(
    sources: Sequence[str | Path], overrides: Sequence[str] = (), presets: Sequence[str | Path] = ()
) -> list[Recipe]:
    """The recipes of many files, to be evaluated on the same data: one without data takes that of the first with data.

    With `presets`, these define encoding and search, and the only source the data and the metrics. An override that
    names a row applies to the recipes that have this row, any other to all.
    """
    from resight.recipe.expand import expand  # a stored recipe, that of a collection, is expanded already

    tables = [_read(source) for source in sources]
    if presets:
        tables = _evaluate_presets(tables, [_read(preset) for preset in presets])
    tables = _share_data(tables)
    if overrides:
        _override(tables, overrides)
    found = [parse(one) for table in tables for one in expand(table)]
    for recipe in found:
        refuse_idle_index(recipe, overrides)
    return found


def _override(tables: Sequence[dict[str, Any]], overrides: Sequence[str]) -> None:
    from resight.recipe.overrides import apply, reaches  # few commands have any

    for override in overrides:
        reached = [table for table in tables if reaches(table, override)]
        for table in reached or tables:
            apply(table, override)


def refuse_idle_index(recipe: Recipe, overrides: Sequence[str]) -> None:
    """Refuse an override of `index` that has no effect, because every branch has an index of its own."""
    overridden = any(override.partition("=")[0].strip().split(".")[0] == "index" for override in overrides)
    is_default = recipe.index == Choice("exact")
    if overridden and not is_default and all(branch.index for branch in recipe.branches if branch.weight > 0):
        raise RecipeError(
            f"the index {recipe.index.name!r} is used by no branch",
            expected="an index for a branch that has none of its own",
            actual="every branch with a weight names its index",
            fix="set it for the branch, e.g. --set branches.1.index.kind=fp32",
        )


def label(recipe: Recipe) -> str:
    """What distinguishes a recipe from the others of its file, e.g. "aggregated k=32"; its name if there are none."""
    return recipe.name.rpartition(LABEL_SEPARATOR)[2]


def label_all(recipes: Sequence[Recipe]) -> list[str]:
    """The label of each recipe, or its full name if another recipe has the same label."""
    often = Counter(map(label, recipes))
    labels = [recipe.name if often[label(recipe)] > 1 else label(recipe) for recipe in recipes]
    twice = [name for name, count in Counter(labels).items() if count > 1]
    if twice:
        raise RecipeError(
            "two recipes have the same name",
            expected="names that differ",
            actual=f"{twice[0]!r}, twice",
            fix="give each recipe once, and its own name",
        )
    return labels


def shipped() -> list[str]:
    """Names of the recipes that come with the package; one in a folder is called "folder/name".

    papers/ holds tables of papers (resight.reproduce), which are no recipes.
    """
    names = (path.relative_to(_folder()).with_suffix("").as_posix() for path in _folder().rglob("*.toml"))
    return sorted(name for name in names if not name.startswith("papers/"))


def shipped_path(name: str) -> Path:
    """The file of a recipe that comes with the package."""
    known = shipped()
    if name not in known:  # which also keeps every name inside the folder
        raise RecipeError(
            f"no recipe {name!r}",
            expected=f"a preset ({', '.join(PRESETS)}), a network ({', '.join(NETWORKS)}), another recipe that comes "
            "with resight, or the path of a .toml file",
            actual=name,
            fix=did_you_mean(
                name,
                [*PRESETS, *NETWORKS, *known],
                "check the path; docs/reference/recipes.md lists all, docs/guides/recipes.md shows how to write one",
            ),
        )
    return _folder() / f"{name}.toml"


def _read(source: str | Path) -> dict[str, Any]:
    """The tables of a recipe file; a recipe without a name is called like its file."""
    path, name = Path(source), Path(source).stem
    if not (path.suffix == ".toml" and path.is_file()):
        if source in NETWORKS:
            return {
                "name": source,
                "branches": [{"encoder": source, "descriptor": {"name": "pooled", "pooling": "head"}}],
            }
        path, name = shipped_path(str(source)), str(source)
    try:
        return expand_here({"name": name, **load_toml(path.read_text(encoding="utf-8"))}, path.parent)
    except ValueError as error:
        raise RecipeError(
            f"{path} is not valid TOML", expected="TOML in UTF-8", actual=str(error), fix="correct the line above"
        ) from error


def _evaluate_presets(sources: Sequence[dict[str, Any]], presets: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The presets on the data and with the metrics of the only source; several presets keep their own names."""
    if len(sources) > 1:
        raise RecipeError(
            "several recipes, and presets to encode by",
            expected="one recipe, which defines the data that the presets are evaluated on",
            actual=", ".join(str(source["name"]) for source in sources),
            fix="give one recipe, and all others by --preset",
        )
    evaluated = {key: value for key, value in sources[0].items() if key in ("data", "metrics")}
    return [
        {
            **preset,
            **copy.deepcopy(evaluated),
            "name": f"{sources[0]['name']} with {preset['name']}" if len(presets) == 1 else preset["name"],
        }
        for preset in presets
    ]


def _share_data(tables: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The tables, all with the data and the metrics of the first that has data."""
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
                    expected=f"{first['name']}: {key} = {_format(one)}",
                    actual=f"{other['name']}: {key} = {_format(two)}",
                    fix="evaluate them separately, or give one as --preset, whose data and metrics are ignored",
                )
    return [table if "data" in table else {**table, **copy.deepcopy(shared)} for table in tables]


def _format(value: Any) -> str:
    if isinstance(value, Choice):
        return ", ".join([value.name, *(f"{key} = {setting!r}" for key, setting in value.settings.items())])
    return str(value)


def _folder() -> Path:
    return Path(str(resources.files("resight") / "recipes"))
