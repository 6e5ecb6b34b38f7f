"""Module name → plug-in.

A plug-in folder is a package whose modules each hold a frozen dataclass `Config` and `build(config)`.
`load("resight.index", "exact", {...})` imports the module, checks the settings and builds it.
"""

import dataclasses
import importlib
import pkgutil
import typing
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType, UnionType
from typing import Any

from resight.errors import MissingExtra, RecipeError
from resight.recipe.tables import read_branch, read_choice
from resight.types import Branch, Choice


def load(package: str, name: str, settings: Mapping[str, Any]) -> Any:
    """Build the plug-in `name` of `package` with `settings`."""
    module = find(package, name)
    return module.build(configure(module.Config, settings, f"{package.rpartition('.')[2]} {name!r}"))


def names(package: str) -> list[str]:
    """The plug-ins of a package, without importing any of them."""
    folder = importlib.import_module(package).__path__
    return sorted(
        module.name for module in pkgutil.iter_modules(folder) if not module.ispkg and not module.name.startswith("_")
    )


def find(package: str, name: str) -> ModuleType:
    valid = names(package)
    if name not in valid:
        raise RecipeError(
            f"there is no {package.rpartition('.')[2]} called {name!r}",
            expected=f"one of {', '.join(valid)}",
            actual=repr(name),
            fix="check the spelling in the recipe or on the command line",
        )
    try:
        return importlib.import_module(f"{package}.{name}")
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("resight"):
            raise
        raise MissingExtra(
            f"{name!r} needs the Python package {error.name!r}, which is not installed",
            expected=f"{error.name!r} to be importable",
            actual=str(error),
            fix="install the extra that brings it (docs/install.md lists them), e.g. pip install 'resight[all]'",
        ) from error


def configure(config: type, settings: Mapping[str, Any], owner: str) -> Any:
    """A `config` with `settings` put in, each key and type checked."""
    hints = typing.get_type_hints(config)
    fields = [field.name for field in dataclasses.fields(config)]
    for key in settings:
        if key not in fields:
            raise RecipeError(
                f"{owner} has no setting {key!r}",
                expected=f"one of {', '.join(fields) or '(it has none)'}",
                actual=repr(key),
                fix="remove it or correct its name",
            )
    try:
        return config(**{key: convert(value, hints[key], f"{owner}: {key}") for key, value in settings.items()})
    except TypeError as error:
        raise RecipeError(
            f"{owner}: {error}", expected=f"settings {', '.join(fields)}", fix="add what is missing"
        ) from error


def check_range(name: str, value: float, low: float, high: float = float("inf")) -> None:
    """For a Config's `__post_init__`: refuses what would crash or mean nothing further down."""
    if not low <= value <= high:  # also false for NaN
        raise RecipeError(
            f"{name} = {value} is out of range", expected=f"{low:g} to {high:g}", actual=str(value), fix="correct it"
        )


def convert(value: Any, hint: Any, owner: str) -> Any:
    """`value` (as TOML gives it) in the type that a Config declares."""
    origin, choices = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Literal and value in choices:
        return value
    if origin in (UnionType, typing.Union):
        for option in choices:
            if value is None and option is type(None):
                return None
            try:
                return convert(value, option, owner)
            except RecipeError:
                continue
    elif origin is tuple and isinstance(value, (list, tuple)):
        return tuple(convert(item, choices[0], owner) for item in value)
    elif hint is Branch:
        return value if isinstance(value, Branch) else read_branch(value)
    elif hint is Choice:
        return value if isinstance(value, Choice) else read_choice(value, owner)
    elif hint is Path and isinstance(value, (str, Path)):
        return Path(value)
    elif hint is float and isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value)
    elif isinstance(hint, type) and type(value) is hint:
        return value
    wanted = (
        f"one of {', '.join(map(repr, choices))}" if origin is typing.Literal else str(getattr(hint, "__name__", hint))
    )
    raise RecipeError(f"{owner} does not fit", expected=wanted, actual=repr(value), fix="correct the value")
