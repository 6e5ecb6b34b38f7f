"""A setting that lists several values where its plug-in takes one → one plug-in for each of them.

    { name = "pooled", pooling = ["cls", "mean"], p = [3, 4] }     four: every combination
    { name = "multiscale", scales = [0.5, 1.0] }                   one: this setting is a list

Which it is, the plug-in's Config says; its module is asked only where there is a list.

The tables of one recipe → those of every recipe that its rows and its alternatives make, each with its own name.

A list where one plug-in is expected (encoder, descriptor, regions, index, fusion), or a list of lists where a list is
expected (rerankers, transforms), holds alternatives; every combination of them is a recipe:

    descriptor = ["tokens", { name = "aggregated", k = 32 }]
    rerankers = [[], ["late"]]

Where one plug-in is expected, a table of plug-ins gives the alternatives names of their own:

    descriptor = { CLS = { name = "pooled", pooling = "cls" }, GeM = { name = "pooled", pooling = "gem" } }

and so does a list of values for one setting:

    descriptor = { name = "pooled", pooling = ["cls", "mean", "gem"] }

`rows` holds named lines; each is a recipe that has the line's keys in place of its own. A line is one branch, which
takes the place of all branches (the encoder or descriptor that it lacks is that of the recipe's only branch), or some
of the recipe's own keys:

    [rows]
    "ViT-S/16 DINO" = { encoder = "dino_vits16", descriptor = { name = "pooled", pooling = "cls" } }
    "reranked" = { branches = [{ encoder = "sift", descriptor = "vlad" }], rerankers = ["geometry"] }

Alternatives, elsewhere or inside a row, multiply the rows.
"""

import itertools
import types
import typing
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeGuard

from resight import plugins
from resight.errors import MissingExtra, RecipeError
from resight.recipe.tables import BRANCH_KEYS, check_keys, read_choice, read_list
from resight.types import Choice

PACKAGES = {
    "encoder": "resight.encode.backbones",
    "descriptor": "resight.encode.descriptors",
    "regions": "resight.encode.descriptors.regions",
    "query_regions": "resight.encode.descriptors.regions",
    "transforms": "resight.encode.transforms",
    "index": "resight.index",
    "fusion": "resight.search.fusions",
    "rerankers": "resight.search.rerankers",
}


def spread(option: Any, key: str) -> list[Any]:
    """A plug-in of the place `key` (a name, or a table) → all that its lists make of it; itself where it has none."""
    if not isinstance(option, Mapping) or not isinstance(option.get("name"), str):
        return [option]
    lists = {
        name: value
        for name, value in option.items()
        if isinstance(value, list) and not _takes_list(PACKAGES[key], option["name"], name)
    }
    for name, values in lists.items():
        if not values:
            raise RecipeError(f"{name} has no value", expected="a value, or a list of them", actual="[]", fix="add one")
    return [{**option, **dict(zip(lists, values, strict=True))} for values in itertools.product(*lists.values())]


def _takes_list(package: str, plugin: str, setting: str) -> bool:
    """Also true where nothing is known of the setting: whoever builds the plug-in complains then."""
    if plugin not in plugins.names(package):
        return True
    try:
        hint = typing.get_type_hints(plugins.find(package, plugin).Config).get(setting)
    except MissingExtra:
        return True
    options = typing.get_args(hint) if typing.get_origin(hint) in (types.UnionType, typing.Union) else (hint,)
    return hint is None or any(typing.get_origin(option) is tuple for option in options)


ROW_KEYS = ("branches", "fusion", "store", "index", "rerankers", "train")  # of a line that is not one branch
CHAINS = ("transforms", "rerankers")  # of which a branch or recipe has a list
BEFORE_LABEL = ": "  # between the name of a recipe and what tells one of its rows or alternatives from the others


def expand(table: Mapping[str, Any], default_name: str = "unnamed") -> list[dict[str, Any]]:
    """The tables of every combination of the alternatives, the last place changing fastest; row by row."""
    name = str(table.get("name", default_name))
    made: dict[str, dict[str, Any]] = {}
    for row, line in _open_rows(table):
        for words, chosen in _combine(line):
            label = ", ".join([*row, *words])
            own = f"{name}{BEFORE_LABEL}{label}" if label else name
            if own in made:
                raise RecipeError(
                    "the same alternative twice", expected="alternatives that differ", actual=own, fix="drop one"
                )
            made[own] = {**chosen, "name": own}
    return list(made.values())


def _open_rows(table: Mapping[str, Any]) -> Iterator[tuple[list[str], dict[str, Any]]]:
    """The label and the table of every row; the table itself, without a label, where there are none."""
    whole = {key: value for key, value in table.items() if key != "rows"}
    if "rows" not in table:
        yield [], whole
        return
    rows = table["rows"]
    if not isinstance(rows, Mapping) or not rows:
        raise RecipeError(
            "a recipe without rows" if rows in ({}, []) else "rows is not a table",
            expected="a line for each row below [rows]",
            actual=repr(rows),
            fix='e.g. "ResNet-18" = { encoder = "resnet18", descriptor = "pooled" }, or leave rows out',
        )
    for label, line in rows.items():
        yield [_check_label(label)], {**whole, **_read_line(label, line, whole.get("branches"))}


def _read_line(label: str, line: Any, branches: Any) -> dict[str, Any]:
    """The keys of the recipe that a line replaces, with what they are then."""
    if not isinstance(line, Mapping):
        raise RecipeError(
            f"the row {label!r} is not a table",
            expected="{ encoder = …, descriptor = … }, or a table with some of " + ", ".join(ROW_KEYS),
            actual=repr(line),
            fix="put its settings in braces",
        )
    if any(key in line for key in BRANCH_KEYS if key not in ROW_KEYS):
        check_keys(line, BRANCH_KEYS, f"the row {label!r}, which is one branch,")
        only = branches[0] if isinstance(branches, list) and len(branches) == 1 else {}
        shared = {key: only[key] for key in ("encoder", "descriptor") if key in only}
        return {"branches": [{**shared, **line}]}
    for key in line:
        if key not in ROW_KEYS:
            raise RecipeError(
                f"the row {label!r} has no key {key!r}",
                expected=f"one branch, of {', '.join(BRANCH_KEYS)}; or some of {', '.join(ROW_KEYS)}",
                actual=repr(key),
                fix="correct its name; data and metrics are those of all rows",
            )
    return dict(line)


def _check_label(label: str) -> str:
    if BEFORE_LABEL in label or not label.strip():
        raise RecipeError(
            "not a label",
            expected=f"words, without {BEFORE_LABEL!r}",
            actual=repr(label),
            fix="write it another way",
        )
    return label


@dataclass(frozen=True)
class _Alternatives:
    """What may stand in one place of a recipe."""

    path: tuple[str | int, ...]
    options: tuple[Any, ...]
    labels: tuple[str, ...]


def _combine(table: Mapping[str, Any]) -> Iterator[tuple[list[str], dict[str, Any]]]:
    """Every combination of a table's alternatives: the words that tell it from the others, and its own table."""
    places = list(_find_alternatives(table))
    for combination in itertools.product(*(range(len(place.options)) for place in places)):
        chosen = dict(table)
        words = []
        for place, number in zip(places, combination, strict=True):
            chosen = _put(chosen, place.path, place.options[number])
            words += [place.labels[number]] if len(place.options) > 1 else []
        yield words, chosen


def _find_alternatives(table: Mapping[str, Any]) -> Iterator[_Alternatives]:
    branches = table.get("branches")
    owners: list[tuple[tuple[str | int, ...], Any]] = [((), table)]
    if isinstance(branches, list):
        owners += [(("branches", number), branch) for number, branch in enumerate(branches)]
    for path, owner in owners:
        for key in PACKAGES:
            value = owner.get(key) if isinstance(owner, Mapping) else None
            if key not in CHAINS and _has_names(value):
                options = [(label, part) for label, option in value.items() for part in spread(option, key)]
                yield _Alternatives((*path, key), tuple(part for _, part in options), tuple(_name_parts(options, key)))
                continue
            chains = _list_chains(value, key)
            if chains is None:
                continue
            if not chains:
                raise RecipeError(f"{key} has no alternative", expected="a plug-in, or a list of them", actual="[]")
            choices = [[read_choice(part, key) for part in chain] for chain in chains]
            made = [chain if key in CHAINS else chain[0] for chain in chains]
            yield _Alternatives((*path, key), tuple(made), tuple(_tell_apart(choices)))


def _list_chains(value: Any, key: str) -> list[list[Any]] | None:
    """What may stand in a place, each as a chain of plug-ins (of one, outside CHAINS); None where nothing varies."""
    if key in CHAINS:
        has_choice = isinstance(value, list) and any(isinstance(item, list) for item in value)
        given = [read_list({key: item}, key) for item in value] if has_choice else [value]
    else:
        has_choice = isinstance(value, list)
        given = [[item] for item in value] if has_choice else [[value]]
    if not has_choice and not (isinstance(value, Mapping) or (key in CHAINS and isinstance(value, list))):
        return None
    chains = [list(parts) for chain in given for parts in itertools.product(*(spread(part, key) for part in chain))]
    return chains if has_choice or chains != given else None


def _name_parts(options: Sequence[tuple[str, Any]], key: str) -> Iterator[str]:
    """The name that an alternative was given, with the settings that tell it from others of the same name."""
    for label, part in options:
        alike = [[read_choice(other, key)] for name, other in options if name == label]
        words = dict(zip(map(repr, alike), _tell_apart(alike), strict=True))[repr([read_choice(part, key)])]
        yield " ".join([_check_label(label), *words.split(" ")[1:]]) if len(alike) > 1 else _check_label(label)


def _has_names(value: Any) -> TypeGuard[Mapping[str, Any]]:
    """Whether it is a table of plug-ins; one without a name, which lacks it, holds settings and no tables."""
    if not isinstance(value, Mapping) or "name" in value or not value:
        return False
    return all(isinstance(option, Mapping) and "name" in option for option in value.values())


def _tell_apart(chains: Sequence[Sequence[Choice]]) -> Iterator[str]:
    """A label for each: its names, with the settings that not every plug-in of the same name has alike."""
    for chain in chains:
        words = []
        for choice in chain:
            alike = [other.settings for others in chains for other in others if other.name == choice.name]
            telling = [
                f"{key}={_say(value)}"
                for key, value in choice.settings.items()
                if any(key not in settings or settings[key] != value for settings in alike)
            ]
            words.append(" ".join([choice.name, *telling]))
        yield " + ".join(words) or "none"


def _say(value: Any) -> str:
    """A setting as TOML has it, so that no label holds what stands before labels."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}={_say(inner)}" for key, inner in value.items()) + "}"
    return "[" + ", ".join(map(_say, value)) + "]" if isinstance(value, list) else str(value)


def _put(target: Any, path: Sequence[str | int], value: Any) -> Any:
    """A copy of tables and lists with `value` at a path."""
    if not path:
        return value
    first, *rest = path
    if isinstance(target, list):
        return [_put(item, rest, value) if number == first else item for number, item in enumerate(target)]
    return {**target, first: _put(target[first], rest, value)}
