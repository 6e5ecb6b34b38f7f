"""Overrides: `key=value` strings of the command line, applied to the tables of a recipe before it is validated.

Keys are dotted; a number, from 0, names an item of a list, and `*` stands for every item of a list or table:

    branches.0.encoder.features=2000
    rows.ResNet-18.encoder.size=320
    rows."ViT-S/16 v1.5".encoder.size=320        a name with a dot or "=" needs quotes
    rows.*.encoder.weights=mine.safetensors      in every row

Values are TOML; a bare word needs no quotes.
"""

import copy
import functools
import re
from collections.abc import Iterator, Mapping
from typing import Any

from resight.errors import RecipeError, did_you_mean
from resight.files.documents import load_toml

EVERY = "*"
# One name of a dotted key, quoted or bare, and the character after it: a dot, "=", or the end if there is no value.
NAME = re.compile(r"""\s*(?:"(?P<double>[^"]*)"|'(?P<single>[^']*)'|(?P<bare>(?!["'])[^.=]*))\s*(?P<next>[.=]|$)""")


def apply(table: dict[str, Any], override: str) -> None:
    """Apply one `dotted.key=value` to the tables of a recipe, in place."""
    names, text = _split(override)
    key = ".".join(names)
    value = _read_value(text)
    *parents, last = names
    targets: list[Any] = [table]
    for depth, parent in enumerate(parents):
        if parents[:depth] == ["rows"]:
            _check_row(targets[0], parent)
        targets = [_descend(target, name, key) for target in targets for name in _names(target, parent, key)]
    for target in targets:
        for name in _names(target, last, key):
            target[_list_index(target, name, key) if isinstance(target, list) else name] = copy.deepcopy(value)


def reaches(table: Mapping[str, Any], override: str) -> bool:
    """Whether an override concerns this recipe: one that names a row concerns the recipes that have this row."""
    names, _ = _split(override)
    rows = table.get("rows")
    return names[0] != "rows" or (isinstance(rows, Mapping) and any(name in (EVERY, *rows) for name in names[1:2]))


@functools.lru_cache(1024)
def _read_value(text: str) -> Any:
    """A value of TOML; copy it before use."""
    try:
        return load_toml(f"value = {text}")["value"]
    except ValueError:
        return text  # a bare word needs no quotes on the command line


def _split(override: str) -> tuple[list[str], str]:
    """The names of the dotted key, and the text of the value."""
    names: list[str] = []
    end = 0
    while (found := NAME.match(override, end)) is not None:
        quoted = found["double"] if found["double"] is not None else found["single"]
        names.append(quoted if quoted is not None else found["bare"].strip())
        end = found.end()
        if found["next"] != ".":
            break
    if found is None or found["next"] != "=" or "" in names:
        raise RecipeError(
            f"cannot use {override!r}", expected="key=value", actual=override, fix="e.g. --set index=hnsw"
        )
    return names, override[end:]


def _names(target: Any, name: str, key: str) -> Iterator[str]:
    """The name itself, or every name in `target` for `*`."""
    if name != EVERY:
        yield name
    elif not target:
        raise _refuse(key, "a list or table that is not empty", repr(target))
    else:
        yield from [str(number) for number in range(len(target))] if isinstance(target, list) else list(target)


def _descend(target: Any, name: str, key: str) -> Any:
    """The table or list at `name`; a plug-in given by its bare name becomes a table first."""
    at: Any = _list_index(target, name, key) if isinstance(target, list) else name
    if isinstance(target, dict):
        target.setdefault(at, {})
    if isinstance(target[at], str):
        target[at] = {"name": target[at]}
    if not isinstance(target[at], (dict, list)):
        raise _refuse(key, "a table or list", f"{name} = {target[at]!r}")
    return target[at]


def _list_index(items: list[Any], name: str, key: str) -> int:
    if not name.isdecimal() or int(name) >= len(items):
        raise _refuse(key, f"a number from 0 to {len(items) - 1}", name)
    return int(name)


def _check_row(rows: Any, label: str) -> None:
    """Refuse a setting of a row that does not exist; an override of the whole row may add one."""
    if label != EVERY and isinstance(rows, Mapping) and label not in rows:
        raise RecipeError(
            f"there is no row {label!r}",
            expected=f"one of {', '.join(rows) or '(it has none)'}, or * for all",
            actual=label,
            fix=did_you_mean(label, rows, "check the spelling; a label with a dot needs quotes"),
        )


def _refuse(key: str, expected: str, actual: str) -> RecipeError:
    return RecipeError(f"{key!r} leads nowhere", expected=expected, actual=actual, fix="check the key")
