"""`collection.json`: what a collection is. Written once, when the collection is made.

{"format": 1, "recipe": {…}, "spaces": ["…", "…"], "created": "…", "made_by": "resight 0.1.0"}
"""

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

from resight import recipe as recipes
from resight.errors import CollectionError, StorageError, VersionMismatch
from resight.types import Recipe

FILE = "collection.json"
FORMAT = 1
READABLE = (1,)  # the last two formats, as soon as there are two


@dataclass(frozen=True)
class Description:
    recipe: Recipe
    spaces: tuple[str, ...]
    created: str
    format: int = FORMAT


def read(folder: Path) -> Description:
    path = folder / FILE
    try:
        table: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        version = int(table["format"])
    except FileNotFoundError as error:
        raise CollectionError(
            f"there is no collection at {folder}",
            expected=f"a folder that holds {FILE}",
            actual="no such folder" if not folder.exists() else f"a folder without {FILE}",
            fix="check the path, or make one with `resight index PHOTOS --into COLLECTION`",
        ) from error
    except (ValueError, KeyError, TypeError, OSError) as error:
        raise _damaged(path, error) from error
    if version not in READABLE:
        raise VersionMismatch(
            f"{folder} is a collection of another format",
            expected=f"format {' or '.join(map(str, READABLE))}",
            actual=f"format {version}, made by {table.get('made_by', 'an unknown version')}",
            fix="update resight" if version > FORMAT else "index the images again into a new collection",
        )
    try:
        return Description(recipes.parse(table["recipe"]), tuple(table["spaces"]), str(table["created"]), version)
    except (KeyError, TypeError) as error:
        raise _damaged(path, error) from error


def create(folder: Path, recipe: Recipe, spaces: tuple[str, ...]) -> Description:
    """Write the description of a new collection, whole or not at all."""
    if folder.is_dir() and any(folder.iterdir()) and not _is_unfinished(folder):
        raise CollectionError(
            f"{folder} is not a collection and not empty",
            expected="a new or empty folder",
            actual=f"a folder with {len(list(folder.iterdir()))} entries and no {FILE}",
            fix="choose another name, e.g. photos.resight",
        )
    description = Description(recipe, spaces, datetime.now(UTC).isoformat(timespec="seconds"))
    table = {
        "format": FORMAT,
        "recipe": recipes.to_table(recipe),
        "spaces": list(spaces),
        "created": description.created,
        "made_by": f"resight {metadata.version('resight')}",
    }
    try:
        folder.mkdir(parents=True, exist_ok=True)
        temporary = folder / (FILE + ".tmp")
        temporary.write_text(json.dumps(table, indent=1, default=str) + "\n", encoding="utf-8")
        temporary.replace(folder / FILE)
    except OSError as error:
        raise StorageError(
            f"cannot make a collection at {folder}",
            expected="a folder that can be written to, on a disk with space left",
            actual=str(error),
            fix="check permissions and free space, or choose another place",
        ) from error
    return description


def _is_unfinished(folder: Path) -> bool:
    """What a process left that was killed while it made the collection."""
    return {entry.name for entry in folder.iterdir()} <= {FILE + ".tmp", "writer.lock"}


def _damaged(path: Path, error: Exception) -> CollectionError:
    return CollectionError(
        f"{path} cannot be read",
        expected="the description of a collection, as JSON",
        actual=f"{type(error).__name__}: {error}",
        fix="restore it from a backup, or index the images again into a new collection",
    )
