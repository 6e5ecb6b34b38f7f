"""Files that lie beside a recipe: `{here}/head.safetensors` in its file ↔ their whole paths in its tables.

A recipe that was written with its files (`resight train`) can so be moved and copied with them.
"""

from collections.abc import Callable, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

HERE = "{here}/"


def find_files(table: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Tables as a file in `folder` has them → with whole paths."""

    def place(text: str) -> str:
        return str(folder.absolute() / text.removeprefix(HERE)) if text.startswith(HERE) else text

    return {key: _change(value, place) for key, value in table.items()}


def name_files(table: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Tables with whole paths → as a file in `folder` is to have them."""
    home = folder.absolute()

    def shorten(text: str) -> str:
        path = Path(text)
        return HERE + str(PurePosixPath(path.relative_to(home))) if home in path.parents else text

    return {key: _change(value, shorten) for key, value in table.items()}


def _change(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, Mapping):
        return {key: _change(item, change) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_change(item, change) for item in value]
    if isinstance(value, Path):
        return change(str(value))
    return change(value) if isinstance(value, str) else value
