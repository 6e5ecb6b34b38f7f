"""A Recipe in, a TOML file out that `resight.recipe.load` reads as the same Recipe."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from resight.recipe_tables import to_table
from resight.recipe_places import name_files
from resight.types import Recipe
from resight.whole_files import write_whole

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
