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

A list where one plug-in is expected (encoder, descriptor, index, fusion), or a list of lists where a list is expected
(rerankers, transforms), holds alternatives; `load_all` makes a Recipe for every combination of them:

    descriptor = ["tokens", { name = "aggregated", k = 32 }]
    rerankers = [[], ["late"]]
"""

import itertools
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from resight.errors import RecipeError
from resight.types import Branch, Choice, Recipe

KEYS = ("name", "data", "branches", "fusion", "store", "index", "rerankers", "metrics", "train")
BRANCH_KEYS = ("encoder", "descriptor", "transforms", "weight", "index")
BEFORE_LABEL = ": "  # between the name of a recipe with alternatives and what tells one of them from the others


def load(source: str | Path, overrides: Sequence[str] = (), preset: str | Path | None = None) -> Recipe:
    """The recipe at a path, or the shipped one of that name, with overrides put in; refused if it has alternatives."""
    found = load_all(source, overrides, preset)
    if len(found) > 1:
        raise RecipeError(
            f"the recipe {str(source)!r} holds alternatives, and one is needed here",
            expected="one plug-in in each place",
            actual=f"{len(found)}: {'; '.join(map(label, found[:3]))}{' …' if len(found) > 3 else ''}",
            fix="compare them with `resight eval`, or choose one, e.g. --set index=exact",
        )
    return found[0]


def load_all(source: str | Path, overrides: Sequence[str] = (), preset: str | Path | None = None) -> list[Recipe]:
    """Every recipe that the alternatives of one make, each with a `label` of its own; itself where it has none.

    With a `preset`, that recipe says how to encode and search, and `source` only on which data and by which metrics.
    """
    table = _read(source)
    if preset is not None:
        measured = {key: value for key, value in table.items() if key in ("data", "metrics")}
        table = {**_read(preset), **measured, "name": f"{table['name']} with {Path(preset).stem}"}
    for override in overrides:
        apply(table, override)
    found = [parse(one) for one in expand(table)]
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


def _read(source: str | Path) -> dict[str, Any]:
    """The tables of a recipe file, which is called like the file where it has no name."""
    path = Path(source)
    if not (path.suffix == ".toml" and path.is_file()):
        path = shipped_path(str(source))
    try:
        return {"name": path.stem, **tomllib.loads(path.read_text(encoding="utf-8"))}
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise RecipeError(
            f"{path} is not valid TOML", actual=str(error), fix="correct the line that it names"
        ) from error


def label(recipe: Recipe) -> str:
    """What tells a recipe from the other alternatives, e.g. "aggregated k=32"; its name when there are no others."""
    return recipe.name.rpartition(BEFORE_LABEL)[2]


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


def expand(table: Mapping[str, Any], default_name: str = "unnamed") -> list[dict[str, Any]]:
    """The tables of every combination of the alternatives, the last place changing fastest."""
    places = list(_find_alternatives(table))
    name = str(table.get("name", default_name))
    made: dict[str, dict[str, Any]] = {}
    for combination in itertools.product(*(range(len(place.options)) for place in places)):
        chosen = dict(table)
        words = []
        for place, number in zip(places, combination, strict=True):
            chosen = _put(chosen, place.path, place.options[number])
            words += [place.labels[number]] if len(place.options) > 1 else []
        if words:
            chosen["name"] = f"{name}{BEFORE_LABEL}{', '.join(words)}"
        if chosen.get("name", name) in made:
            raise RecipeError(
                "the same alternative twice", expected="alternatives that differ", actual=chosen["name"], fix="drop one"
            )
        made[chosen.get("name", name)] = chosen
    return list(made.values())


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


@dataclass(frozen=True)
class _Alternatives:
    """What may stand in one place of a recipe."""

    path: tuple[str | int, ...]
    options: tuple[Any, ...]
    labels: tuple[str, ...]


def _find_alternatives(table: Mapping[str, Any]) -> Iterator[_Alternatives]:
    branches = table.get("branches")
    owners: list[tuple[tuple[str | int, ...], Any]] = [((), table)]
    if isinstance(branches, list):
        owners += [(("branches", number), branch) for number, branch in enumerate(branches)]
    for path, owner in owners:
        for key in ("encoder", "descriptor", "transforms", "index", "fusion", "rerankers"):
            value = owner.get(key) if isinstance(owner, Mapping) else None
            is_chain = key in ("transforms", "rerankers")
            if not isinstance(value, list) or (is_chain and not any(isinstance(item, list) for item in value)):
                continue
            if not value:
                raise RecipeError(f"{key} has no alternative", expected="a plug-in, or a list of them", actual="[]")
            chains = [_list({key: item}, key) if is_chain else [item] for item in value]
            choices = [[_choice(part, key) for part in chain] for chain in chains]
            yield _Alternatives((*path, key), tuple(value), tuple(_tell_apart(choices)))


def _tell_apart(chains: Sequence[Sequence[Choice]]) -> Iterator[str]:
    """A label for each: its names, with the settings that not every plug-in of the same name has alike."""
    for chain in chains:
        words = []
        for choice in chain:
            alike = [other.settings for others in chains for other in others if other.name == choice.name]
            telling = [
                f"{key}={value}"
                for key, value in choice.settings.items()
                if any(key not in settings or settings[key] != value for settings in alike)
            ]
            words.append(" ".join([choice.name, *telling]))
        yield " + ".join(words) or "none"


def _put(target: Any, path: Sequence[str | int], value: Any) -> Any:
    """A copy of tables and lists with `value` at a path."""
    if not path:
        return value
    first, *rest = path
    if isinstance(target, list):
        return [_put(item, rest, value) if number == first else item for number, item in enumerate(target)]
    return {**target, first: _put(target[first], rest, value)}


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
