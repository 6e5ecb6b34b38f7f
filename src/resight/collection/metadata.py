"""`collection.json`: format, recipe and spaces of a collection, written once and last when it is made.

    {"format": 2, "recipe": {…}, "spaces": ["…", "…"], "created": "…", "made_by": "resight 0.1.0", "checksum": …}

It may be remote (resight.files.remote). Copies of codebooks and weights that the recipe names lie beside it, so that
the collection does not depend on the originals. A stored recipe may hold plug-in names of earlier versions: `RENAMED`
maps them to today's; a recipe file must use today's names.
"""

import errno
import json
import logging
import shutil
import typing
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any, TypeVar

from resight import plugins
from resight import recipe as recipes
from resight.collection import location
from resight.encode import named_networks
from resight.errors import CollectionError, ResightError, StorageError, VersionMismatch
from resight.files.atomic import TEMPORARY
from resight.files.documents import parse_json, require_table
from resight.files.durable import sync_folder
from resight.files.inside import show
from resight.files.lock import NAME as LOCK
from resight.files.lock import writer_lock
from resight.files.remote import is_remote, to_url
from resight.recipe.tables import read_branch, write_branch
from resight.types import Branch, Choice, Recipe

log = logging.getLogger("resight.collection")
FILE = "collection.json"
COPY = "collection.copy.json"  # read if the first is damaged or missing
TABLE, HISTORY = "images.lance", "commits"
OWN = frozenset({COPY, COPY + TEMPORARY, FILE + TEMPORARY, location.FILES, LOCK, TABLE, HISTORY})
EXHAUSTED = (errno.EMFILE, errno.ENFILE, errno.ENOMEM)  # these say nothing about a file
LARGEST = 16 << 20  # bytes of collection.json
RESTORE = "restore it from a backup, or index the images again into a new collection"
Kind = TypeVar("Kind")
FORMAT = 2  # 1 had no checksums: those of rows, files, commits and of this table
READABLE = (1, 2)
INDEXES = {"late": "maxsim", "inverted": "asmk_inverted", "histogram": "bow_histogram"}
RERANKERS = {"closer": "patch_refine", "local": "pair_transformer"}
FUSIONS = {"standout": "robust_zscore"}
REGIONS = {"joined": "union"}
RENAMED: Mapping[str, Mapping[str, str]] = {  # key of a recipe → old name → new name
    "index": INDEXES,
    "inner": INDEXES,  # of ray_shards
    "rerankers": RERANKERS,
    "fusion": FUSIONS,
    "regions": REGIONS,
    "query_regions": REGIONS,
    "sources": REGIONS,  # of union
}


@dataclass(frozen=True)
class Metadata:
    recipe: Recipe
    spaces: tuple[str, ...]
    created: str
    format: int = FORMAT


def exists(folder: Path) -> bool:
    """Whether there is a collection; without `collection.json`, its copy is one."""
    return location.exists(folder, FILE) or location.exists(folder, COPY)


def read(folder: Path) -> Metadata:
    path = folder / FILE
    try:
        table = _read_table(folder)
        version = _require(table, "format", int)
    except (FileNotFoundError, NotADirectoryError) as error:
        found = "a file" if folder.is_file() else f"a folder without {FILE}" if folder.exists() else "no such folder"
        raise CollectionError(
            f"there is no collection at {to_url(folder)}",
            expected=f"a folder that holds {FILE}",
            actual=found,
            fix="check the path, or make one with `resight index PHOTOS --into COLLECTION`",
        ) from error
    except OSError as error:
        raise _explain(path, error) from error
    except (KeyError, TypeError) as error:
        raise _damaged(path, error) from error
    if version not in READABLE:
        raise VersionMismatch(
            f"{folder} is a collection of another format",
            expected=f"format {' or '.join(map(str, READABLE))}",
            actual=f"format {version}, made by {table.get('made_by', 'an unknown version')}",
            fix="update resight" if version > FORMAT else "index the images again into a new collection",
        )
    try:
        stored = rename_plugins(_require(table, "recipe", dict))
        recipe = _locate(_keep_to_itself(recipes.parse(stored), folder), folder)
        spaces = tuple(_check_type(space, "spaces", str) for space in _require(table, "spaces", list))
        return Metadata(recipe, spaces, str(table["created"]), version)
    except (KeyError, TypeError) as error:
        raise _damaged(path, error) from error


def _read_table(folder: Path) -> dict[str, Any]:
    """The table of `collection.json`, or of its copy if the first is damaged or missing."""
    try:
        return read_table(folder, FILE)
    except (CollectionError, FileNotFoundError, NotADirectoryError) as error:
        try:
            table = read_table(folder, COPY)
        except (CollectionError, FileNotFoundError, NotADirectoryError):
            raise error from None
        log.warning("%s is damaged or missing; its copy serves. `resight repair` mends it.", folder / FILE)
        return table


def read_table(folder: Path, name: str) -> dict[str, Any]:
    """The table of one file, with its checksum compared; CollectionError where it is damaged."""
    about = _about(folder / name)
    table = require_table(parse_json(location.read_file(folder, name), **about, most=LARGEST), **about)
    claimed = table.pop("checksum", None)
    if claimed is not None and claimed != sum_table(table):
        raise CollectionError(
            f"{folder / name} cannot be read",
            expected="what was written, by its checksum",
            actual="another content",
            fix=RESTORE,
        )
    return table


def sum_table(table: Mapping[str, Any]) -> int:
    return zlib.crc32(json.dumps(table).encode())


def create(folder: Path, recipe: Recipe, spaces: tuple[str, ...], make_store: Callable[[], object]) -> Metadata:
    """Make a collection: its store and its files first, its metadata last, so that it is complete or does not exist."""
    try:
        _refuse_others(folder)
        if not is_remote(folder):
            folder.mkdir(parents=True, exist_ok=True)
        with writer_lock(location.find_local_folder(folder)):
            if exists(folder):  # another process was faster
                return read(folder)
            _refuse_images(folder)
            # Leftovers of a process that was killed while it made the collection. In a remote folder they may belong to
            # another machine that is making it now, and an empty table of the same layout serves as well.
            for name in frozenset() if is_remote(folder) else OWN - {LOCK}:
                shutil.rmtree(folder / name, ignore_errors=True)
            make_store()
            made = Metadata(_adopt(recipe, folder), spaces, datetime.now(UTC).isoformat(timespec="seconds"))
            _write(folder, made)
            if not is_remote(folder):
                sync_folder(folder.absolute().parent)
            return read(folder)
    except OSError as error:
        raise StorageError(
            f"cannot make a collection at {to_url(folder)}",
            expected="a folder that can be written to, on a disk with space left",
            actual=str(error),
            fix="check permissions and free space, or choose another folder",
        ) from error


def _refuse_others(folder: Path) -> None:
    """Refuse a folder that holds something else, before anything is written."""
    others = location.list_foreign_files(folder, OWN)
    if others:
        raise CollectionError(
            f"{to_url(folder)} is not a collection and not empty",
            expected="a new or empty folder",
            actual=f"a folder with {', '.join(others[:3])}{' …' if len(others) > 3 else ''} and no {FILE}",
            fix="choose another name, e.g. photos.resight",
        )


def _refuse_images(folder: Path) -> None:
    """Refuse a folder with images, whose `collection.json` is lost: making a collection would remove them."""
    if not is_remote(folder) and any((folder / TABLE / "data").glob("*")):
        raise CollectionError(
            f"{folder} holds images, but neither {FILE} nor {COPY}",
            expected="a collection, or a new or empty folder",
            actual=f"{TABLE} with images",
            fix=f"restore {FILE} from a backup; or move the folder away, and index the images again",
        )


def _adopt(recipe: Recipe, folder: Path) -> Recipe:
    """The recipe with copies of the files that it names, in the collection."""

    def keep(package: str, choice: Choice) -> Choice:
        hints = typing.get_type_hints(plugins.find(package, choice.name).Config)
        settings = dict(choice.settings)
        for name, value in choice.settings.items():
            if Path in (hints[name], *typing.get_args(hints[name])) and value is not None:
                data = Path(value).read_bytes()
                settings[name] = location.name_by_content(data, Path(value).suffix)
                location.write_file(folder, settings[name], data)
        return replace(choice, settings=_change_parts(settings, keep))

    return replace(
        recipe, branches=tuple(_change(named_networks.resolve_branch(part), keep) for part in recipe.branches)
    )


def _keep_to_itself(recipe: Recipe, folder: Path) -> Recipe:
    """The recipe of a remote collection, which a stranger may have written, without folders of this machine.

    An address of a server is refused: the server would get the key for Qdrant and a description of every query.
    """
    if not is_remote(folder):
        return recipe
    for choice in (recipe.index, *(branch.index for branch in recipe.branches)):
        if choice is not None and "://" in str(choice.settings.get("url", "")):
            raise CollectionError(
                f"the collection {to_url(folder)} sends searches to a server of its own choice",
                expected="the name of an environment variable, such as RESIGHT_QDRANT_URL, or no server",
                actual=f"url = {show(choice.settings['url'])}",
                fix="write the variable's name into its collection.json, and set the variable if you trust the server",
            )

    def forget(choice: Choice) -> Choice:
        return replace(choice, settings={key: value for key, value in choice.settings.items() if key != "cache"})

    branches = tuple(replace(branch, index=branch.index and forget(branch.index)) for branch in recipe.branches)
    return replace(recipe, index=forget(recipe.index), branches=branches)


def _locate(recipe: Recipe, folder: Path) -> Recipe:
    """The recipe with the present paths of the collection's own files."""

    def find(package: str, choice: Choice) -> Choice:  # noqa: ARG001 - the same for every package
        own = {
            name: str(location.fetch(folder, value))
            for name, value in choice.settings.items()
            if isinstance(value, str) and value.startswith(f"{location.FILES}/")
        }
        return replace(choice, settings=_change_parts({**choice.settings, **own}, find))

    return replace(recipe, branches=tuple(_change(branch, find) for branch in recipe.branches))


def _change(branch: Branch, change: Callable[[str, Choice], Choice]) -> Branch:
    return replace(
        branch,
        encoder=change("resight.encode.backbones", branch.encoder),
        descriptor=change("resight.encode.descriptors", branch.descriptor),
        transforms=tuple(change("resight.encode.transforms", choice) for choice in branch.transforms),
        regions=branch.regions and change("resight.encode.descriptors.regions", branch.regions),
        query_regions=branch.query_regions and change("resight.encode.descriptors.regions", branch.query_regions),
        photometric=branch.photometric and change("resight.encode.photometric", branch.photometric),
    )


def _change_parts(settings: Mapping[str, Any], change: Callable[[str, Choice], Choice]) -> dict[str, Any]:
    """A setting may hold branches, as the parts of the encoder `fused` do."""
    return {
        name: [write_branch(_change(read_branch(part), change)) for part in value] if _holds_branches(value) else value
        for name, value in settings.items()
    }


def _holds_branches(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and any(isinstance(part, Mapping) and "encoder" in part for part in value)


def rename_plugins(table: Mapping[str, Any]) -> dict[str, Any]:
    """The table of a stored recipe with every plug-in under its present name, in nested tables too."""
    return {key: _rename(value, RENAMED.get(key, {})) for key, value in table.items()}


def _rename(value: Any, names: Mapping[str, str]) -> Any:
    """`value` is a plug-in by name, one with settings, or a list of these; anything else stays as it is."""
    if isinstance(value, str):
        return names.get(value, value)
    if isinstance(value, (list, tuple)):
        return [_rename(item, names) for item in value]
    if isinstance(value, Mapping):
        found = rename_plugins(value)
        if isinstance(found.get("name"), str):
            found["name"] = names.get(found["name"], found["name"])
        return found
    return value


def _write(folder: Path, made: Metadata) -> None:
    table = {
        "format": FORMAT,
        "recipe": recipes.to_table(made.recipe),
        "spaces": list(made.spaces),
        "created": made.created,
        "made_by": f"resight {metadata.version('resight')}",
    }
    write_table(folder, json.loads(json.dumps(table, default=str)))


def write_table(folder: Path, table: Mapping[str, Any]) -> None:
    """Write `collection.json` with its checksum: the copy first, because the other one makes the collection exist."""
    data = f"{json.dumps({**table, 'checksum': sum_table(table)}, indent=1)}\n".encode()
    for name in (COPY, FILE):
        location.write_file(folder, name, data)


def _about(path: Path) -> dict[str, Any]:
    return {"what": str(path), "error": CollectionError, "fix": RESTORE}


def _require(table: Mapping[str, Any], key: str, kind: type[Kind]) -> Kind:
    return _check_type(table[key], key, kind)


def _check_type(value: Any, key: str, kind: type[Kind]) -> Kind:
    if not isinstance(value, kind) or isinstance(value, bool):
        raise TypeError(f"{key} is of the type {type(value).__name__}, not {kind.__name__}")
    return value


def _damaged(path: Path, error: Exception) -> CollectionError:
    return CollectionError(
        f"{path} cannot be read",
        expected="the metadata of a collection, as JSON",
        actual=f"{type(error).__name__}: {error}",
        fix=RESTORE,
    )


def _explain(path: Path, error: OSError) -> ResightError:
    if error.errno not in EXHAUSTED:
        return _damaged(path, error)
    return StorageError(
        f"{path} cannot be read now",
        expected="free memory and file descriptors",
        actual=str(error),
        fix="close other programs, or raise the limits (ulimit); the file is not damaged",
    )
