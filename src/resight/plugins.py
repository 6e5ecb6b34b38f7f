"""Plug-ins by name, and their settings from tables.

A plug-in folder is a package whose modules each hold a frozen dataclass `Config` and a function `build(config)`; a
module whose name starts with `_` is no plug-in. In: a package, a name and a table of settings, as TOML and JSON hold
it. Out: the plug-in.

    load("resight.index", "hnsw", {"links": 16})

A package of a user's own brings further plug-ins by entry points of the groups in GROUPS, each a module of this kind:

    [project.entry-points."resight.backbones"]
    mean_colour = "my_package.mean_colour"

They come after our own: none can replace one of these. They are looked up, which costs some milliseconds, only when a
name is not one of ours.

pydantic validates the table strictly: no "3" for 3 and no true for 1. An integer may stand for a float, a list for a
tuple, a string for a `Path`, a name or a table with "name" for a `Choice`. Its errors leave as RecipeError. pydantic is
imported with the first table, because commands such as `resight --help` validate none.
"""

import dataclasses
import functools
import importlib
import pkgutil
import typing
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from pathlib import Path
from types import ModuleType, UnionType
from typing import TYPE_CHECKING, Annotated, Any, NotRequired, TypeVar, Union, cast

from resight.errors import MissingExtra, RecipeError, did_you_mean, install_extra
from resight.types import Branch, Choice, Recipe

if TYPE_CHECKING:
    from importlib import metadata

    from pydantic import TypeAdapter, ValidationError

Config = TypeVar("Config")
LIMITS: dict[tuple[type, str], dict[str, Any]] = {
    (Branch, "weight"): {"ge": 0, "allow_inf_nan": False},
    (Recipe, "rotations"): {"ge": 1, "le": 360},
}
EXPECTED = {"tuple_type": "a list", "path_type": "a path", "dict_type": "a table"}  # in words of TOML, by error
OUT_OF_RANGE = {
    "greater_than_equal": "at least {ge:g}",
    "greater_than": "more than {gt:g}",
    "less_than_equal": "at most {le:g}",
    "less_than": "less than {lt:g}",
    "finite_number": "a finite number",
}


GROUPS = {  # package → entry points that add to it
    "resight.encode.backbones": "resight.backbones",
    "resight.encode.descriptors": "resight.descriptors",
    "resight.encode.transforms": "resight.transforms",
    "resight.index": "resight.indexes",
    "resight.search.rerankers": "resight.rerankers",
    "resight.evaluate.metrics": "resight.metrics",
    "resight.data.sets": "resight.datasets",
}


EXTRAS = {  # → the packages that it brings
    "torch": ("torch", "torchvision", "timm", "transformers", "safetensors", "huggingface_hub"),
    "places": ("mahotas",),
    "ray": ("ray",),
    "qdrant": ("qdrant_client", "qdrant_edge"),
    "remote": ("fsspec", "s3fs"),
    "jxl": ("imagecodecs",),
    "geo": ("rasterio",),
}


def load(package: str, name: str, settings: Mapping[str, Any]) -> Any:
    """Build the plug-in `name` of `package` with `settings`."""
    module = find(package, name)
    return module.build(configure(module.Config, settings, f"{package.rpartition('.')[2]} {name!r}"))


def names(package: str) -> list[str]:
    """The plug-ins of a package, installed ones included, without importing any of them."""
    return sorted({*own_names(package), *find_installed(package)})


def own_names(package: str) -> list[str]:
    """Those that come with resight."""
    folder = importlib.import_module(package).__path__
    return sorted(
        module.name for module in pkgutil.iter_modules(folder) if not module.ispkg and not module.name.startswith("_")
    )


def exists(package: str, name: str) -> bool:
    return name in own_names(package) or name in find_installed(package)


def find_installed(package: str) -> "Mapping[str, metadata.EntryPoint]":
    """The plug-ins that other distributions bring, by name; of two with one name the first in order of their values."""
    return _read_entry_points(GROUPS[package]) if package in GROUPS else {}


def find(package: str, name: str) -> ModuleType:
    """The module of a plug-in; MissingExtra if it needs a package that is not installed."""
    if name in own_names(package):
        module = f"{package}.{name}"
        return _import(name, lambda: importlib.import_module(module), "docs/get-started/install.md")
    installed = find_installed(package)
    if name in installed:
        return _import_installed(name, installed[name])
    valid = names(package)
    raise RecipeError(
        f"there is no {package.rpartition('.')[2]} called {name!r}",
        expected=f"one of {', '.join(valid)}",
        actual=repr(name),
        fix=did_you_mean(name, valid, "check the spelling, or install the package that brings it"),
    )


def _import(name: str, load: Callable[[], ModuleType], where: str) -> ModuleType:
    try:
        return load()
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("resight"):
            raise
        raise MissingExtra(
            f"{name!r} needs the Python package {error.name!r}, which is not installed",
            expected=f"{error.name!r} to be importable",
            actual=str(error),
            fix=f"{install_extra(_find_extra(error.name or ''))}; see {where}"
            if where.endswith(".md")
            else f"install what {where} needs, e.g. pip install {error.name}",
        ) from error


def _find_extra(module: str) -> str:
    """The extra that brings a module; all of them if none is known to."""
    return next((extra for extra, brings in EXTRAS.items() if module.partition(".")[0] in brings), "all")


def _import_installed(name: str, entry: "metadata.EntryPoint") -> ModuleType:
    origin = name_origin(entry)
    try:
        module = _import(name, entry.load, origin)
    except MissingExtra:
        raise
    except (Exception, SystemExit) as error:  # a module of another package may raise anything
        raise RecipeError(
            f"the plug-in {name!r} of {origin} cannot be loaded",
            expected=f"a module at {entry.value}",
            actual=f"{type(error).__name__}: {error}",
            fix=f"correct or update {origin}, or uninstall it",
        ) from error
    missing = [part for part in ("Config", "build") if not hasattr(module, part)]
    if missing:
        raise RecipeError(
            f"the plug-in {name!r} of {origin} is not complete",
            expected="a module with a dataclass Config and a function build(config)",
            actual=f"no {' and no '.join(missing)} in {entry.value}",
            fix="see examples/plugin",
        )
    return module


def name_origin(entry: "metadata.EntryPoint") -> str:
    """The distribution that brings a plug-in, with its version."""
    return f"{entry.dist.name} {entry.dist.version}" if entry.dist else entry.value


@functools.cache
def _read_entry_points(group: str) -> "Mapping[str, metadata.EntryPoint]":
    from importlib.metadata import entry_points  # reads the metadata of every installed distribution

    found = sorted(entry_points(group=group), key=lambda entry: entry.value)
    return {entry.name: entry for entry in reversed(found)}


def configure(config: type[Config], settings: Any, owner: str) -> Config:
    """The dataclass `config` from a table (a Choice from a name, too), each setting validated; errors name `owner`."""
    from pydantic import ValidationError

    try:
        return cast(Config, _adapter(cast(Hashable, config)).validate_python(settings))
    except ValidationError as error:
        raise _translate(error, settings, config, owner) from error


def check_range(name: str, value: float, low: float, high: float = float("inf")) -> None:
    """For a Config's `__post_init__`: refuse a value outside low … high, and NaN."""
    if not low <= value <= high:  # also false for NaN
        raise RecipeError(
            f"{name} = {value} is out of range", expected=f"{low:g} to {high:g}", actual=str(value), fix="correct it"
        )


def refuse_key(key: str, known: Sequence[str], owner: str) -> RecipeError:
    """The error for a key of a table that is not among the known ones."""
    return RecipeError(
        f"{owner} has no setting {key!r}",
        expected=f"one of {', '.join(known) or '(it has none)'}",
        actual=repr(key),
        fix=did_you_mean(key, known, "remove it or correct its name"),
    )


@functools.cache
def _adapter(config: Any) -> "TypeAdapter[Any]":
    from pydantic import TypeAdapter

    return TypeAdapter(_describe(config))


def _describe(hint: Any) -> Any:
    """A field's type with the exceptions to pydantic's strict mode that tables need."""
    from pydantic import BeforeValidator, InstanceOf, Strict

    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if origin is Annotated:
        return Annotated[_describe(parts[0]), *parts[1:]]
    if origin in (UnionType, Union):
        return Union[tuple(map(_describe, parts))]  # noqa: UP007 - a list of types that is known at run time only
    if origin is tuple:
        return Annotated[tuple[tuple(map(_describe, parts))], Strict(False)]  # type: ignore[misc]
    if hint is Path:
        return Annotated[Path, Strict(False)]
    if hint is Choice:
        return Annotated[InstanceOf[Choice], BeforeValidator(_to_choice)]
    return _describe_table(hint) if dataclasses.is_dataclass(hint) else hint


def _describe_table(config: Any) -> Any:
    """A table with the fields of a dataclass, which becomes the dataclass."""
    from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field
    from typing_extensions import TypedDict  # pydantic takes that of `typing` from Python 3.12 on

    hints = typing.get_type_hints(config, include_extras=True)
    items: dict[str, Any] = {}
    for field in dataclasses.fields(config):
        hint: Any = Annotated[_describe(hints[field.name]), Field(**LIMITS.get((config, field.name), {}))]
        required = field.default is field.default_factory is dataclasses.MISSING
        items[field.name] = hint if required else NotRequired[hint]
    make_table: Any = TypedDict
    table = make_table(config.__name__, items)
    table.__pydantic_config__ = ConfigDict(strict=True, extra="forbid")

    def to_table(value: Any) -> Any:
        if isinstance(value, config):
            return {name: getattr(value, name) for name in items}
        return dict(value) if isinstance(value, Mapping) else value

    return Annotated[table, BeforeValidator(to_table), AfterValidator(lambda values: config(**values))]


def _to_choice(value: Any) -> Any:
    if isinstance(value, str):
        return Choice(value)
    if isinstance(value, Mapping) and isinstance(value.get("name"), str):
        return Choice(value["name"], {key: setting for key, setting in value.items() if key != "name"})
    return value  # pydantic refuses it


def _translate(error: "ValidationError", value: Any, config: type, owner: str) -> RecipeError:
    """pydantic's errors as one RecipeError; an unknown setting first, as it often explains a missing one."""
    found = error.errors(include_url=False)
    first = next((each for each in found if each["type"] == "extra_forbidden"), found[0])
    kind, name, limits = first["type"], str(first["loc"][-1]) if first["loc"] else "", first.get("ctx", {})
    path, actual = _follow(value, first["loc"])
    if kind == "extra_forbidden":
        subject = ": ".join([owner, *_dotted(path[:-1])])
        return refuse_key(name, _list_fields(config, path[:-1]), subject)
    subject = ": ".join([owner, *_dotted(path)])
    if kind == "missing":
        given = ", ".join(actual) if isinstance(actual, Mapping) else repr(actual)
        return RecipeError(
            f"{subject} has no {name}",
            expected=f"the setting {name}",
            actual=given or "no settings",
            fix=f"add {name} = …",
        )
    if kind in OUT_OF_RANGE:
        return RecipeError(
            f"{subject} = {actual} is out of range",
            expected=OUT_OF_RANGE[kind].format(**limits),
            actual=str(actual),
            fix="correct it",
        )
    if limits.get("class") == Choice.__name__:
        return RecipeError(
            f"{subject} is not a plug-in",
            expected='a name, or a table with "name"',
            actual=repr(actual),
            fix='e.g. "exact" or { name = "exact" }',
        )
    words = [EXPECTED.get(each["type"], each["msg"]) for each in found if _follow(value, each["loc"])[0] == path]
    expected = " or ".join(dict.fromkeys(word.removeprefix("Input should be ") for word in words))
    return RecipeError(f"{subject} does not fit", expected=expected, actual=repr(actual), fix="correct the value")


def _follow(value: Any, steps: Iterable[int | str]) -> tuple[list[int | str], Any]:
    """The part of pydantic's location that leads into `value`, and what lies there.

    Steps that lead nowhere follow it: a missing key, or pydantic's name for a member of a union.
    """
    path: list[int | str] = []
    for step in steps:
        is_key = isinstance(value, Mapping) and step in value
        is_item = isinstance(value, (list, tuple)) and isinstance(step, int) and step < len(value)
        if not (is_key or is_item):
            break
        value = value[step]
        path.append(step)
    return path, value


def _dotted(path: Sequence[int | str]) -> list[str]:
    return [".".join(map(str, path))] if path else []


def _list_fields(hint: Any, path: Iterable[int | str]) -> list[str]:
    """The fields of the dataclass at `path` inside a value of the type `hint`."""
    for step in path:
        members = typing.get_args(hint) if typing.get_origin(hint) in (UnionType, Union) else (hint,)
        hint = next(
            typing.get_args(member)[0] if isinstance(step, int) else typing.get_type_hints(member)[step]
            for member in members
            if (typing.get_origin(member) is tuple if isinstance(step, int) else dataclasses.is_dataclass(member))
        )
    return [field.name for field in dataclasses.fields(hint)]
