"""The tables of one recipe, as TOML and JSON hold them ↔ a frozen Recipe.

`parse` reads tables, `to_table` and `write_recipe` write them. Rows and alternatives must already be expanded
(expand.py).
"""

import dataclasses
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from resight import plugins
from resight.errors import RecipeError
from resight.files.atomic import write_atomic
from resight.recipe.paths import shorten_to_here
from resight.types import Branch, Choice, Recipe

BRANCH_KEYS = tuple(field.name for field in dataclasses.fields(Branch))
OPTIONAL = ("index", "regions", "query_regions", "photometric")  # plug-ins that a branch may lack
LABEL_SEPARATOR = ": "  # between the name of a recipe and the label of one of its rows or alternatives
BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")  # of TOML; any other key needs quotes


def parse(table: Mapping[str, Any], default_name: str = "unnamed") -> Recipe:
    """A Recipe from the tables of a TOML file, or from `to_table`."""
    name = str(table.get("name", default_name))
    branches = table.get("branches", [])
    if not isinstance(branches, list) or not branches:
        raise RecipeError(
            "a recipe without branches",
            expected="at least one [[branches]] table",
            actual=repr(branches),
            fix="add one",
        )
    return plugins.configure(Recipe, {**table, "name": name}, f"recipe {name!r}")


def read_branch(table: Any, owner: str = "a branch") -> Branch:
    """A Branch from its table; errors name `owner`."""
    return plugins.configure(Branch, table, owner)


def read_choice(value: Any, owner: str) -> Choice:
    """A plug-in from its name, or from a table with "name" and its settings; errors name `owner`."""
    return plugins.configure(Choice, value, owner)


def to_table(recipe: Recipe) -> dict[str, Any]:
    """The inverse of `parse`: plain tables that JSON and TOML can hold."""
    result: dict[str, Any] = {"name": recipe.name}
    for key in ("data", "fusion", "store", "index", "train"):
        choice = getattr(recipe, key)
        if choice is not None:
            result[key] = write_choice(choice)
    result["branches"] = [write_branch(branch) for branch in recipe.branches]
    result["rerankers"] = [write_choice(reranker) for reranker in recipe.rerankers]
    result["metrics"] = list(recipe.metrics)
    if recipe.rotations != Recipe.rotations:
        result["rotations"] = recipe.rotations
    return result


def write_branch(branch: Branch) -> dict[str, Any]:
    """The inverse of `read_branch`."""
    return {
        "encoder": write_choice(branch.encoder),
        "descriptor": write_choice(branch.descriptor),
        "transforms": [write_choice(transform) for transform in branch.transforms],
        "weight": branch.weight,
        **{key: write_choice(choice) for key in OPTIONAL if (choice := getattr(branch, key)) is not None},
    }


def write_choice(choice: Choice) -> dict[str, Any]:
    """The inverse of `read_choice`."""
    return {"name": choice.name, **choice.settings}


def write_recipe(recipe: Recipe, path: Path, remark: str) -> None:
    """Write a TOML file that `resight.recipe.load` reads as the same Recipe; `remark` is its first line, a comment.

    Paths below the file's folder are written as `{here}/…`.
    """
    lines = [f"# {' '.join(remark.split())}"]
    for key, value in shorten_to_here(to_table(recipe), path.parent).items():
        if key == "branches":
            lines += ["branches = [", *(f"    {_format_toml(branch)}," for branch in value), "]"]
        elif value not in (None, [], ()):
            lines.append(f"{key} = {_format_toml(value)}")
    with write_atomic(path) as temporary:
        temporary.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _format_toml(value: Any) -> str:
    """A value on one line of TOML, without settings that are None: TOML has no null."""
    if isinstance(value, Mapping):
        cells = (f"{_format_key(key)} = {_format_toml(item)}" for key, item in value.items() if item is not None)
        return f"{{ {', '.join(cells)} }}"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_format_toml, value))}]"
    if isinstance(value, (bool, int, float)):
        return json.dumps(value)
    return _quote(str(value))


def _format_key(key: str) -> str:
    return key if BARE_KEY.fullmatch(key) else _quote(key)


def _quote(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
