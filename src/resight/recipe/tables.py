"""Files that lie beside a recipe: `{here}/head.safetensors` in its file ↔ their whole paths in its tables.

A recipe that was written with its files (`resight train`) can so be moved and copied with them.

The tables of a recipe (as TOML and JSON hold them) ↔ a frozen Recipe. Alternatives and rows are made out before.

A Recipe in, a TOML file out that `resight.recipe.load` reads as the same Recipe.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from resight.errors import RecipeError
from resight.files.atomic import write_whole
from resight.types import Branch, Choice, Recipe

HERE = "{here}/"


def find_files(table: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Tables as a file in `folder` has them → with whole paths."""

    def place(text: str) -> str:
        return str(folder.absolute() / text.removeprefix(HERE)) if text.startswith(HERE) else text

    return {key: _change(value, place) for key, value in table.items()}


def name_files(table: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Tables with whole paths → as a file in `folder` is to have them."""
    home = folder.absolute()

    def shorten(text: str) -> str:
        path = Path(text)
        return HERE + str(PurePosixPath(path.relative_to(home))) if home in path.parents else text

    return {key: _change(value, shorten) for key, value in table.items()}


def _change(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, Mapping):
        return {key: _change(item, change) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_change(item, change) for item in value]
    if isinstance(value, Path):
        return change(str(value))
    return change(value) if isinstance(value, str) else value


KEYS = ("name", "data", "branches", "fusion", "store", "index", "rerankers", "metrics", "train")
OPTIONAL = ("index", "regions", "query_regions")  # plug-ins that a branch may do without
BRANCH_KEYS = ("encoder", "descriptor", "transforms", "weight", *OPTIONAL)


def parse(table: Mapping[str, Any], default_name: str = "unnamed") -> Recipe:
    """A Recipe from the tables of a TOML file (or from `to_table`)."""
    check_keys(table, KEYS, "a recipe")
    branches = table.get("branches", [])
    if not isinstance(branches, list) or not branches:
        raise RecipeError("a recipe without branches", expected="at least one [[branches]] table", fix="add one")
    optional = {
        key: read_choice(table[key], key) for key in ("data", "fusion", "store", "index", "train") if key in table
    }
    return Recipe(
        name=str(table.get("name", default_name)),
        branches=tuple(read_branch(item) for item in branches),
        rerankers=tuple(read_choice(item, "rerankers") for item in read_list(table, "rerankers")),
        metrics=tuple(_text(item, "metrics") for item in read_list(table, "metrics")),
        **optional,
    )


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
    return result


def write_branch(branch: Branch) -> dict[str, Any]:
    return {
        "encoder": write_choice(branch.encoder),
        "descriptor": write_choice(branch.descriptor),
        "transforms": [write_choice(transform) for transform in branch.transforms],
        "weight": branch.weight,
        **{key: write_choice(choice) for key in OPTIONAL if (choice := getattr(branch, key)) is not None},
    }


def write_choice(choice: Choice) -> dict[str, Any]:
    return {"name": choice.name, **choice.settings}


def read_choice(value: Any, key: str) -> Choice:
    if isinstance(value, str):
        return Choice(value)
    if isinstance(value, Mapping) and isinstance(value.get("name"), str):
        return Choice(value["name"], {name: setting for name, setting in value.items() if name != "name"})
    raise RecipeError(f"{key} is not a plug-in", expected='a name, or a table with "name"', actual=repr(value))


def read_list(table: Mapping[str, Any], key: str) -> list[Any]:
    value = table.get(key, [])
    if not isinstance(value, list):
        raise RecipeError(
            f"{key} is not a list", expected=f"{key} = [ … ]", actual=repr(value), fix="put it in brackets"
        )
    return value


def check_keys(table: Mapping[str, Any], valid: Sequence[str], owner: str) -> None:
    for key in table:
        if key not in valid:
            raise RecipeError(
                f"{owner} has no key {key!r}",
                expected=f"one of {', '.join(valid)}",
                actual=repr(key),
                fix="correct its name",
            )


def read_branch(item: Any) -> Branch:
    if not isinstance(item, Mapping):
        raise RecipeError("a branch that is not a table", expected="[[branches]]", actual=repr(item))
    check_keys(item, BRANCH_KEYS, "a branch")
    for key in ("encoder", "descriptor"):
        if key not in item:
            raise RecipeError(f"a branch without {key}", expected="encoder and descriptor", actual=", ".join(item))
    return Branch(
        encoder=read_choice(item["encoder"], "encoder"),
        descriptor=read_choice(item["descriptor"], "descriptor"),
        transforms=tuple(read_choice(transform, "transforms") for transform in read_list(item, "transforms")),
        weight=_weight(item.get("weight", 1.0)),
        **{key: read_choice(item[key], key) for key in OPTIONAL if key in item},
    )


def _text(value: Any, key: str) -> str:
    if not isinstance(value, str):
        raise RecipeError(f"{key} holds something that is not a name", expected="names", actual=repr(value))
    return value


def _weight(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < float("inf"):
        raise RecipeError("not a weight", expected="a number of 0 or more", actual=repr(value), fix="e.g. weight = 1")
    return float(value)


BARE = re.compile(r"[A-Za-z0-9_-]+")


def write_recipe(recipe: Recipe, path: Path, remark: str) -> None:
    """`remark` becomes the first line, as a comment. Files beside the recipe are named so that all can be moved."""
    lines = [f"# {' '.join(remark.split())}"]
    for key, value in name_files(to_table(recipe), path.parent).items():
        if key == "branches":
            lines += ["branches = [", *(f"    {format_value(branch)}," for branch in value), "]"]
        elif value not in (None, [], ()):
            lines.append(f"{key} = {format_value(value)}")
    with write_whole(path) as temporary:
        temporary.write_text("\n".join(lines) + "\n", encoding="utf-8")


def format_value(value: Any) -> str:
    """On one line; nothing is left out but settings that are None, which TOML has no word for."""
    if isinstance(value, Mapping):
        cells = (f"{_name(key)} = {format_value(item)}" for key, item in value.items() if item is not None)
        return f"{{ {', '.join(cells)} }}"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(format_value, value))}]"
    if isinstance(value, (bool, int, float)):
        return json.dumps(value)
    return _quote(str(value))


def _name(key: str) -> str:
    return key if BARE.fullmatch(key) else _quote(key)


def _quote(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
