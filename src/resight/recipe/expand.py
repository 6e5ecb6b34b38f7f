"""Rows and alternatives: the tables of one recipe in, the tables of every recipe that it stands for out, each named.

A list of plug-ins where one is expected (encoder, descriptor, regions, index, fusion), or a list of lists where a list
is expected (rerankers, transforms), holds alternatives; every combination of them is a recipe:

    descriptor = ["tokens", { name = "aggregated", k = 32 }]
    rerankers = [[], ["late"]]

Where one plug-in is expected, a table of plug-ins names the alternatives:

    descriptor = { CLS = { name = "pooled", pooling = "cls" }, GeM = { name = "pooled", pooling = "gem" } }

A list of values for a setting that takes one value holds alternatives, too; the plug-in's Config decides:

    descriptor = { name = "pooled", pooling = ["cls", "mean"], p = [3, 4] }     four recipes: every combination
    transforms = [{ name = "multiscale", scales = [0.5, 1.0] }]                 one recipe: `scales` is a list

`rows` holds named recipes, each as a table that replaces keys of the recipe. It is either one branch, which replaces
all branches (the encoder or descriptor that it lacks comes from the recipe's only branch), or some of the recipe's own
keys:

    [rows]
    "ViT-S/16 DINO" = { encoder = "dino_vits16", descriptor = { name = "pooled", pooling = "cls" } }
    "reranked" = { branches = [{ encoder = "sift", descriptor = "vlad" }], rerankers = ["geometry"] }

Alternatives, inside a row or elsewhere, multiply the rows.
"""

import itertools
import types
import typing
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeGuard

from resight import plugins
from resight.errors import MissingExtra, RecipeError, did_you_mean
from resight.recipe.tables import BRANCH_KEYS, LABEL_SEPARATOR, read_choice
from resight.types import Choice

PACKAGES = {  # keys that hold plug-ins, and may hold alternatives
    "encoder": "resight.encode.backbones",
    "photometric": "resight.encode.photometric",
    "descriptor": "resight.encode.descriptors",
    "regions": "resight.encode.descriptors.regions",
    "query_regions": "resight.encode.descriptors.regions",
    "transforms": "resight.encode.transforms",
    "index": "resight.index",
    "fusion": "resight.search.fusions",
    "rerankers": "resight.search.rerankers",
}
CHAINS = ("transforms", "rerankers")  # keys that hold a list of plug-ins
ROW_KEYS = ("branches", "fusion", "store", "index", "rerankers", "train")  # of a row that is not one branch


def expand(table: Mapping[str, Any], default_name: str = "unnamed") -> list[dict[str, Any]]:
    """The tables of every row and every combination of alternatives; the last alternative changes fastest."""
    name = str(table.get("name", default_name))
    made: dict[str, dict[str, Any]] = {}
    for row, row_table in _expand_rows(table):
        for labels, combination in _combine(row_table):
            label = ", ".join([*row, *labels])
            full_name = f"{name}{LABEL_SEPARATOR}{label}" if label else name
            if full_name in made:
                raise RecipeError(
                    "the same alternative twice", expected="alternatives that differ", actual=full_name, fix="drop one"
                )
            made[full_name] = {**combination, "name": full_name}
    return list(made.values())


def _expand_rows(table: Mapping[str, Any]) -> Iterator[tuple[list[str], dict[str, Any]]]:
    """The label and the table of every row; the table itself, without a label, if it has no rows."""
    shared = {key: value for key, value in table.items() if key != "rows"}
    if "rows" not in table:
        yield [], shared
        return
    rows = table["rows"]
    if not isinstance(rows, Mapping) or not rows:
        raise RecipeError(
            "a recipe without rows" if rows in ({}, []) else "rows is not a table",
            expected="a line for each row below [rows]",
            actual=repr(rows),
            fix='e.g. "ResNet-18" = { encoder = "resnet18", descriptor = "pooled" }, or leave rows out',
        )
    for label, row in rows.items():
        yield [_check_label(label)], {**shared, **_read_row(label, row, shared.get("branches"))}


def _read_row(label: str, row: Any, branches: Any) -> dict[str, Any]:
    """The keys of the recipe that a row replaces, with their new values."""
    if not isinstance(row, Mapping):
        raise RecipeError(
            f"the row {label!r} is not a table",
            expected="{ encoder = …, descriptor = … }, or a table with some of " + ", ".join(ROW_KEYS),
            actual=repr(row),
            fix="put its settings in braces",
        )
    is_branch = any(key in row for key in BRANCH_KEYS if key not in ROW_KEYS)
    for key in row:
        if is_branch and key not in BRANCH_KEYS:
            raise plugins.refuse_key(key, BRANCH_KEYS, f"the row {label!r}, which is one branch,")
        if not is_branch and key not in ROW_KEYS:
            raise RecipeError(
                f"the row {label!r} has no setting {key!r}",
                expected=f"one branch, of {', '.join(BRANCH_KEYS)}; or some of {', '.join(ROW_KEYS)}",
                actual=repr(key),
                fix=did_you_mean(
                    key, [*BRANCH_KEYS, *ROW_KEYS], "correct its name; data and metrics are those of all rows"
                ),
            )
    if not is_branch:
        return dict(row)
    only = branches[0] if isinstance(branches, list) and len(branches) == 1 else {}
    shared = {key: only[key] for key in ("encoder", "descriptor") if key in only}
    return {"branches": [{**shared, **row}]}


def _check_label(label: str) -> str:
    if LABEL_SEPARATOR in label or not label.strip():
        raise RecipeError(
            "not a label",
            expected=f"words, without {LABEL_SEPARATOR!r}",
            actual=repr(label),
            fix="rename the row or alternative",
        )
    return label


@dataclass(frozen=True)
class _Alternatives:
    """The possible values of one key of a recipe."""

    path: tuple[str | int, ...]
    options: tuple[Any, ...]
    labels: tuple[str, ...]


def _combine(table: Mapping[str, Any]) -> Iterator[tuple[list[str], dict[str, Any]]]:
    """Every combination of a table's alternatives: the labels of those chosen, and the table with them."""
    found = list(_find_alternatives(table))
    for numbers in itertools.product(*(range(len(each.options)) for each in found)):
        combination = dict(table)
        labels = []
        for each, number in zip(found, numbers, strict=True):
            combination = _replace_at(combination, each.path, each.options[number])
            labels += [each.labels[number]] if len(each.options) > 1 else []
        yield labels, combination


def _find_alternatives(table: Mapping[str, Any]) -> Iterator[_Alternatives]:
    branches = table.get("branches")
    owners: list[tuple[tuple[str | int, ...], Any]] = [((), table)]
    if isinstance(branches, list):
        owners += [(("branches", number), branch) for number, branch in enumerate(branches)]
    for path, owner in owners:
        for key in PACKAGES:
            value = owner.get(key) if isinstance(owner, Mapping) else None
            if key not in CHAINS and _has_names(value):
                options = [(label, part) for label, option in value.items() for part in expand_settings(option, key)]
                yield _Alternatives((*path, key), tuple(part for _, part in options), tuple(_label_named(options, key)))
                continue
            chains = _list_chains(value, key)
            if chains is None:
                continue
            if not chains:
                raise RecipeError(
                    f"{key} has no alternative", expected="a plug-in, or a list of them", actual="[]", fix="add one"
                )
            choices = [[read_choice(part, key) for part in chain] for chain in chains]
            values = [chain if key in CHAINS else chain[0] for chain in chains]
            yield _Alternatives((*path, key), tuple(values), tuple(_label_chains(choices)))


def _has_names(value: Any) -> TypeGuard[Mapping[str, Any]]:
    """Whether a table holds named plug-ins, and not the settings of one."""
    if not isinstance(value, Mapping) or "name" in value or not value:
        return False
    return all(isinstance(option, Mapping) and "name" in option for option in value.values())


def _list_chains(value: Any, key: str) -> list[list[Any]] | None:
    """The alternatives of a key, each as a chain of plug-ins (of one, outside CHAINS); None if there is no choice."""
    if key in CHAINS:
        has_choice = isinstance(value, list) and any(isinstance(item, list) for item in value)
        given = [_check_list(item, key) for item in value] if has_choice else [value]
    else:
        has_choice = isinstance(value, list)
        given = [[item] for item in value] if has_choice else [[value]]
    if not has_choice and not (isinstance(value, Mapping) or (key in CHAINS and isinstance(value, list))):
        return None
    chains = [
        list(parts) for chain in given for parts in itertools.product(*(expand_settings(part, key) for part in chain))
    ]
    return chains if has_choice or chains != given else None


def _check_list(value: Any, key: str) -> list[Any]:
    if not isinstance(value, list):
        raise RecipeError(
            f"{key} is not a list", expected=f"{key} = [ … ]", actual=repr(value), fix="put it in brackets"
        )
    return value


def expand_settings(option: Any, key: str) -> list[Any]:
    """A plug-in at `key` (a name, or a table) → one plug-in for each combination of its settings' alternatives."""
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
    """Whether a setting is a list itself; also true for an unknown one, which the building of the plug-in refuses."""
    if not plugins.exists(package, plugin):
        return True
    try:
        hint = typing.get_type_hints(plugins.find(package, plugin).Config).get(setting)
    except MissingExtra:
        return True
    options = typing.get_args(hint) if typing.get_origin(hint) in (types.UnionType, typing.Union) else (hint,)
    return hint is None or any(typing.get_origin(option) is tuple for option in options)


def _label_named(options: Sequence[tuple[str, Any]], key: str) -> Iterator[str]:
    """The name of each alternative, with the settings that distinguish it from others of the same name."""
    for label, part in options:
        alike = [[read_choice(other, key)] for name, other in options if name == label]
        words = dict(zip(map(repr, alike), _label_chains(alike), strict=True))[repr([read_choice(part, key)])]
        yield " ".join([_check_label(label), *words.split(" ")[1:]]) if len(alike) > 1 else _check_label(label)


def _label_chains(chains: Sequence[Sequence[Choice]]) -> Iterator[str]:
    """A label for each chain: its plug-ins' names, with the settings that differ among plug-ins of the same name."""
    for chain in chains:
        words = []
        for choice in chain:
            alike = [other.settings for others in chains for other in others if other.name == choice.name]
            different = [
                f"{key}={_format_setting(value)}"
                for key, value in choice.settings.items()
                if any(key not in settings or settings[key] != value for settings in alike)
            ]
            words.append(" ".join([choice.name, *different]))
        yield " + ".join(words) or "none"


def _format_setting(value: Any) -> str:
    """A setting for a label, like TOML; `repr` of a table would contain LABEL_SEPARATOR."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}={_format_setting(inner)}" for key, inner in value.items()) + "}"
    return "[" + ", ".join(map(_format_setting, value)) + "]" if isinstance(value, list) else str(value)


def _replace_at(target: Any, path: Sequence[str | int], value: Any) -> Any:
    """A copy of tables and lists with `value` at a path."""
    if not path:
        return value
    first, *rest = path
    if isinstance(target, list):
        return [_replace_at(item, rest, value) if number == first else item for number, item in enumerate(target)]
    return {**target, first: _replace_at(target[first], rest, value)}
