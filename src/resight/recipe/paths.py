"""Files that lie beside a recipe: `{here}/head.safetensors` in its TOML file ↔ their absolute paths in its tables.

`{here}` is the folder of the recipe's file. `resight train` writes a recipe and its files this way, so that they can be
moved and copied together.
"""

from collections.abc import Callable, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

HERE = "{here}/"


def expand_here(table: dict[str, Any], folder: Path) -> dict[str, Any]:
    """The tables of a file in `folder`, with absolute paths instead of `{here}/`."""

    def expand(text: str) -> str:
        return str(folder.absolute() / text.removeprefix(HERE)) if text.startswith(HERE) else text

    return {key: _map_strings(value, expand) for key, value in table.items()}


def shorten_to_here(table: dict[str, Any], folder: Path) -> dict[str, Any]:
    """The inverse: `{here}/` instead of the absolute path of `folder`."""
    here = folder.absolute()

    def shorten(text: str) -> str:
        path = Path(text)
        return HERE + str(PurePosixPath(path.relative_to(here))) if here in path.parents else text

    return {key: _map_strings(value, shorten) for key, value in table.items()}


def _map_strings(value: Any, change: Callable[[str], str]) -> Any:
    """`value` with every string and path inside it changed."""
    if isinstance(value, Mapping):
        return {key: _map_strings(item, change) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_map_strings(item, change) for item in value]
    if isinstance(value, Path):
        return change(str(value))
    return change(value) if isinstance(value, str) else value
