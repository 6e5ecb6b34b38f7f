"""`key=value`, as the command line gives it, put into the tables of a recipe that is being read.

Keys are dotted; members of a list go by number, from 0, and `*` stands for every member of a list or table:

    branches.0.encoder.features=2000
    rows.ResNet-18.encoder.size=320
    rows."ViT-S/16 v1.5".encoder.size=320        a name that holds a dot or "=" goes in quotes
    rows.*.encoder.weights=mine.safetensors      on every row

Values are TOML; a bare word needs no quotes.
"""

import copy
import re
import tomllib
from collections.abc import Iterator, Mapping
from typing import Any

from resight.errors import RecipeError

EVERY = "*"
# One name of a key, quoted or bare, and what follows it: a dot, "=" or, where the value is lacking, the end.
NAME = re.compile(r"""\s*(?:"(?P<double>[^"]*)"|'(?P<single>[^']*)'|(?P<bare>(?!["'])[^.=]*))\s*(?P<next>[.=]|$)""")


def apply(table: dict[str, Any], override: str) -> None:
    """Put one `dotted.key=value` into the tables of a recipe that is being read."""
    names, text = _split(override)
    key = ".".join(names)
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        value = text  # a bare word needs no quotes on the command line
    *parents, last = names
    targets: list[Any] = [table]
    for depth, parent in enumerate(parents):
        if parents[:depth] == ["rows"]:
            _check_row(targets[0], parent)
        targets = [_descend(target, name, key) for target in targets for name in _names(target, parent, key)]
    for target in targets:
        for name in _names(target, last, key):
            target[_position(target, name, key) if isinstance(target, list) else name] = copy.deepcopy(value)


def reaches(table: Mapping[str, Any], override: str) -> bool:
    """Whether an override is for this recipe: one that names a row is only for recipes that have it."""
    names, _ = _split(override)
    rows = table.get("rows")
    return names[0] != "rows" or (isinstance(rows, Mapping) and any(name in (EVERY, *rows) for name in names[1:2]))


def _split(override: str) -> tuple[list[str], str]:
    """The names of the key, and the text of the value."""
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
    """The name itself; for `*`, all that there are."""
    if name != EVERY:
        yield name
    elif not target:
        raise RecipeError(f"{key!r} leads nowhere", expected="something that * can stand for", actual=repr(target))
    else:
        yield from [str(number) for number in range(len(target))] if isinstance(target, list) else list(target)


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


def _check_row(rows: Any, label: str) -> None:
    """A row is not made by one of its settings."""
    if label != EVERY and isinstance(rows, Mapping) and label not in rows:
        raise RecipeError(
            f"there is no row {label!r}",
            expected=f"one of {', '.join(rows) or '(it has none)'}, or * for all",
            actual=label,
            fix="check the spelling; a label that holds a dot goes in quotes",
        )
