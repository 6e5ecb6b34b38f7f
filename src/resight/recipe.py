"""TOML → frozen Recipe, once, at the edge.

    name = "museum"
    index = "exact"                                   # a plug-in by name …
    data = { name = "museum", direction = "photos" }  # … or with settings

    [[branches]]
    encoder = "sift"
    descriptor = { name = "vlad", words = 256 }

    [[rerankers]]
    name = "geometry"

Recipes that come with the package are found by name, a recipe of one's own by its path.
`overrides` are `key=value` strings with dotted keys ("branches.0.encoder.features=2000", "index=hnsw").
"""

import tomllib
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from resight.errors import RecipeError
from resight.types import Branch, Choice, Recipe

KEYS = ("name", "data", "branches", "fusion", "store", "index", "rerankers", "metrics", "train")
BRANCH_KEYS = ("encoder", "descriptor", "transforms", "weight", "index")


def load(source: str | Path, overrides: Sequence[str] = ()) -> Recipe:
    """The recipe at a path, or the shipped one of that name, with overrides put in."""
    path = Path(source)
    if not (path.suffix == ".toml" and path.is_file()):
        path = shipped_path(str(source))
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise RecipeError(
            f"{path} is not valid TOML", actual=str(error), fix="correct the line that it names"
        ) from error
    for override in overrides:
        apply(table, override)
    return parse(table, default_name=path.stem)


def shipped() -> list[str]:
    """Names of the recipes that come with the package."""
    return sorted(path.stem for path in _folder().glob("*.toml"))


def shipped_path(name: str) -> Path:
    path = _folder() / f"{name}.toml"
    if Path(name).name != name or not path.is_file():
        raise RecipeError(
            f"no recipe {name!r}",
            expected=f"the path of a .toml file, or one of {', '.join(shipped())}",
            actual=name,
            fix="check the path; docs/recipes.md shows how to write one",
        )
    return path


def parse(table: Mapping[str, Any], default_name: str = "unnamed") -> Recipe:
    """A Recipe from the tables of a TOML file (or from `to_table`)."""
    _check_keys(table, KEYS, "a recipe")
    branches = table.get("branches", [])
    if not isinstance(branches, list) or not branches:
        raise RecipeError("a recipe without branches", expected="at least one [[branches]] table", fix="add one")
    optional = {key: _choice(table[key], key) for key in ("data", "fusion", "store", "index", "train") if key in table}
    return Recipe(
        name=str(table.get("name", default_name)),
        branches=tuple(_branch(item) for item in branches),
        rerankers=tuple(_choice(item, "rerankers") for item in _list(table, "rerankers")),
        metrics=tuple(_text(item, "metrics") for item in _list(table, "metrics")),
        **optional,
    )


def to_table(recipe: Recipe) -> dict[str, Any]:
    """The inverse of `parse`: plain tables that JSON and TOML can hold."""

    def table(choice: Choice) -> dict[str, Any]:
        return {"name": choice.name, **choice.settings}

    result: dict[str, Any] = {"name": recipe.name}
    for key in ("data", "fusion", "store", "index", "train"):
        choice = getattr(recipe, key)
        if choice is not None:
            result[key] = table(choice)
    result["branches"] = [
        {
            "encoder": table(branch.encoder),
            "descriptor": table(branch.descriptor),
            "transforms": [table(transform) for transform in branch.transforms],
            "weight": branch.weight,
            **({"index": table(branch.index)} if branch.index else {}),
        }
        for branch in recipe.branches
    ]
    result["rerankers"] = [table(reranker) for reranker in recipe.rerankers]
    result["metrics"] = list(recipe.metrics)
    return result


def apply(table: dict[str, Any], override: str) -> None:
    """Put one `dotted.key=value` into the tables of a recipe that is being read."""
    key, equals, text = override.partition("=")
    if not equals or not key.strip():
        raise RecipeError(
            f"cannot use {override!r}", expected="key=value", actual=override, fix="e.g. --set index=hnsw"
        )
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        value = text  # a bare word needs no quotes on the command line
    *parents, last = key.strip().split(".")
    target: Any = table
    for parent in parents:
        target = _descend(target, parent, key)
    if isinstance(target, list):
        target[_position(target, last, key)] = value
    else:
        target[last] = value


def _descend(target: Any, name: str, key: str) -> Any:
    """The table or list below `name`; a plug-in given by bare name grows into a table first."""
    slot: Any = _position(target, name, key) if isinstance(target, list) else name
    if isinstance(target, dict):
        target.setdefault(slot, {})
    if isinstance(target[slot], str):
        target[slot] = {"name": target[slot]}
    if not isinstance(target[slot], (dict, list)):
        raise RecipeError(f"{key!r} leads nowhere", expected="a table or list", actual=f"{name} = {target[slot]!r}")
    return target[slot]


def _position(items: list[Any], name: str, key: str) -> int:
    if not name.isdecimal() or int(name) >= len(items):
        raise RecipeError(f"{key!r} leads nowhere", expected=f"a number from 0 to {len(items) - 1}", actual=name)
    return int(name)


def _branch(item: Any) -> Branch:
    if not isinstance(item, Mapping):
        raise RecipeError("a branch that is not a table", expected="[[branches]]", actual=repr(item))
    _check_keys(item, BRANCH_KEYS, "a branch")
    for key in ("encoder", "descriptor"):
        if key not in item:
            raise RecipeError(f"a branch without {key}", expected="encoder and descriptor", actual=", ".join(item))
    return Branch(
        encoder=_choice(item["encoder"], "encoder"),
        descriptor=_choice(item["descriptor"], "descriptor"),
        transforms=tuple(_choice(transform, "transforms") for transform in _list(item, "transforms")),
        weight=_weight(item.get("weight", 1.0)),
        index=_choice(item["index"], "index") if "index" in item else None,
    )


def _choice(value: Any, key: str) -> Choice:
    if isinstance(value, str):
        return Choice(value)
    if isinstance(value, Mapping) and isinstance(value.get("name"), str):
        return Choice(value["name"], {name: setting for name, setting in value.items() if name != "name"})
    raise RecipeError(f"{key} is not a plug-in", expected='a name, or a table with "name"', actual=repr(value))


def _list(table: Mapping[str, Any], key: str) -> list[Any]:
    value = table.get(key, [])
    if not isinstance(value, list):
        raise RecipeError(
            f"{key} is not a list", expected=f"{key} = [ … ]", actual=repr(value), fix="put it in brackets"
        )
    return value


def _text(value: Any, key: str) -> str:
    if not isinstance(value, str):
        raise RecipeError(f"{key} holds something that is not a name", expected="names", actual=repr(value))
    return value


def _weight(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < float("inf"):
        raise RecipeError("not a weight", expected="a number of 0 or more", actual=repr(value), fix="e.g. weight = 1")
    return float(value)


def _check_keys(table: Mapping[str, Any], valid: Sequence[str], owner: str) -> None:
    for key in table:
        if key not in valid:
            raise RecipeError(
                f"{owner} has no key {key!r}",
                expected=f"one of {', '.join(valid)}",
                actual=repr(key),
                fix="correct its name",
            )


def _folder() -> Path:
    return Path(str(resources.files("resight") / "recipes"))
