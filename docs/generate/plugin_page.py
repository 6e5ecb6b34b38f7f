"""The page of plug-ins: each folder of plug-ins, each plug-in, and each setting of its `Config`.

In: the modules of each folder. Out: Markdown. Type and default come from the dataclass, inherited fields included; a
setting's meaning is the comment behind its field in the source.
"""

import ast
import dataclasses
import inspect
import io
import textwrap
import tokenize
import types
import typing
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Union

from resight import plugins
from resight.types import Choice

SET_BY_RESIGHT = ("resight sets it", "training sets it")  # ends of comments on fields that no recipe holds
FOLDERS = {  # package → where a recipe names its plug-ins, and what they do
    "encode.backbones": ("encoder", "From a picture to local features or patches."),
    "encode.descriptors": ("descriptor", "From features to the rows that the store keeps."),
    "encode.descriptors.regions": ("regions", "Which parts of an image get a descriptor of their own."),
    "encode.photometric": ("photometric", "Change the brightness of pictures before the encoder sees them."),
    "encode.transforms": ("transforms", "Change descriptors before they are stored."),
    "index": ("index", "Find the nearest rows."),
    "search.fusions": ("fusion", "Join the answers of several branches."),
    "search.rerankers": ("rerankers", "Put the best candidates in a better order."),
    "search.matchers": ("matcher", "Pair the key points of two images for the reranker `geometry`."),
    "search.scorers": ("scorer", "Score pairs of images for the reranker `pair_transformer`."),
    "store": ("store", "Keep descriptors on disk."),
    "data.sets": ("data", "Images with ground truth."),
    "evaluate.metrics": ("metrics", "Judge a ranking."),
    "evaluate.curves": ("--curve", "Quality against cost."),
    "train.heads": ("head", "Layers trained on frozen features."),
    "train.losses": ("loss", "What training minimises."),
}


@dataclass(frozen=True)
class Setting:
    name: str
    type: str
    default: str
    meaning: str


def write_page() -> str:
    parts = [
        "# Plug-ins and their settings\n",
        'Each method is a plug-in: one module with a `Config`. A recipe names it, alone (`index = "exact"`) or with '
        'settings (`index = { name = "hnsw", links = 16 }`). '
        "[Recipes](../guides/recipes.md) shows how; this page "
        "lists all of them, read from the source. A setting with the default – may be left out.\n",
    ]
    for package, (key, job) in FOLDERS.items():
        names = plugins.names(f"resight.{package}")
        title = package.rpartition(".")[2].capitalize()
        parts.append(f"## {title}\n\nIn a recipe: `{key}`. {job}\n")
        parts += [describe(package, name) for name in names]
    return "\n".join(parts)


def describe(package: str, name: str) -> str:
    module = plugins.find(f"resight.{package}", name)
    summary = " ".join((module.__doc__ or "").split("\n\n")[0].split())
    parts = [f"### `{name}` {{ #{package.rpartition('.')[2]}-{name} }}\n", f"{summary}\n"]
    settings = [each for each in read_settings(module) if not each.meaning.endswith(SET_BY_RESIGHT)]
    if settings:
        parts += ["| Setting | Type | Default | Meaning |", "|---|---|---|---|"]
        parts += [
            f"| `{each.name}` | {_cell(each.type)} | {_cell(each.default)} | {_cell(each.meaning)} |"
            for each in settings
        ]
        parts.append("")
    return "\n".join(parts)


def list_undocumented() -> list[str]:
    """Settings without a comment that says what they mean."""
    return [
        f"{package}.{name}: {setting.name}"
        for package in FOLDERS
        for name in plugins.names(f"resight.{package}")
        for setting in read_settings(plugins.find(f"resight.{package}", name))
        if not setting.meaning
    ]


def read_settings(module: types.ModuleType) -> Iterator[Setting]:
    """The fields of the module's Config, with the comment behind each."""
    comments: dict[str, str] = {}
    for part in reversed(module.Config.__mro__):
        if dataclasses.is_dataclass(part):
            comments |= _read_comments(textwrap.dedent(inspect.getsource(part)))
    hints = typing.get_type_hints(module.Config)
    for field in dataclasses.fields(module.Config):
        yield Setting(field.name, _format_type(hints[field.name]), _format_default(field), comments.get(field.name, ""))


def _read_comments(source: str) -> dict[str, str]:
    """Field → the comment on the line on which it ends."""
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    lines = {token.start[0]: token.string.lstrip("# ") for token in tokens if token.type == tokenize.COMMENT}
    (node,) = ast.parse(source).body
    return {
        each.target.id: lines.get(each.end_lineno or 0, "").replace("None:", "left out:")
        for each in getattr(node, "body", ())
        if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name)
    }


def _format_type(hint: Any) -> str:
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if origin is Literal:
        return ", ".join(f"`{_format_value(value)}`" for value in parts)
    if origin in (types.UnionType, Union):
        return " or ".join(_format_type(part) for part in parts if part is not type(None))
    if origin in (tuple, list):
        kinds = list(dict.fromkeys(_format_type(part) for part in parts if part is not Ellipsis))
        return f"list of {', '.join(kinds)}"
    if hint is Choice:
        return "plug-in"
    names = {int: "integer", float: "number", str: "text", bool: "`true`, `false`", Path: "path"}
    return names.get(hint, getattr(hint, "__name__", str(hint)))


def _format_default(field: "dataclasses.Field[Any]") -> str:
    if field.default is not dataclasses.MISSING:
        return "–" if field.default is None else f"`{_format_value(field.default)}`"
    if field.default_factory is not dataclasses.MISSING:
        return f"`{_format_value(field.default_factory())}`"
    return "required"


def _format_value(value: Any) -> str:
    """A value as TOML writes it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str | Path):
        return f'"{value}"'
    if isinstance(value, Choice):
        return f'"{value.name}"'
    if isinstance(value, tuple | list):
        return f"[{', '.join(map(_format_value, value))}]"
    return str(value)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
