"""Back up a collection while it is in use, and restore it.

A backup is a folder with one state of the collection: the files of the store's newest version, which no later write
changes, its metadata, and the service's journal and uploads. `backup.json`, written last, lists every file with its
SHA-256; a folder without it is not a backup. Indexes are left out, since they can be built again. Restoring checks all
files first, and makes a new collection or none.
"""

import contextlib
import json
import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from resight.collection import metadata
from resight.collection.location import FILES
from resight.collection.upkeep.integrity import CALIBRATION, JOBS, UPLOADS
from resight.errors import CollectionError, InputError, StorageError
from resight.files.documents import read_json
from resight.files.durable import sync_file, sync_folder, sync_tree, write_durable
from resight.files.fingerprint import fingerprint_file
from resight.files.inside import resolve_inside
from resight.files.remote import is_remote
from resight.store import _upkeep

LIST = "backup.json"
RECORD = "commits/{version:012d}.json"


@dataclass(frozen=True)
class Backup:
    """A backup that was made or restored.

    Attributes:
        folder: Where it lies.
        files: Number of files.
        bytes: Their size.
    """

    folder: Path
    files: int
    bytes: int


def back_up(collection: Path, target: Path) -> Backup:
    """Copy one state of a local collection to the new folder `target`; it may be written to meanwhile."""
    metadata.read(collection)
    if is_remote(collection) or is_remote(target):
        raise InputError(
            "a backup is made from a local folder to a local folder",
            expected="two folders of this machine",
            actual=f"{collection} and {target}",
            fix="copy a remote collection with the tools of its store, which keeps versions",
        )
    _refuse_existing(target)
    partial = target.with_name(f"{target.name}.partial")
    try:
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        _copy_state(collection, partial)
        listed: dict[str, tuple[int, str]] = {
            path.relative_to(partial).as_posix(): (path.stat().st_size, fingerprint_file(path))
            for path in sorted(partial.rglob("*"))
            if path.is_file()
        }
        sync_tree(partial)
        made = {"collection": collection.name, "made": datetime.now(UTC).isoformat(timespec="seconds"), "files": listed}
        write_durable(partial / LIST, json.dumps(made, indent=1).encode())
        partial.rename(target)
        sync_folder(target.parent)
    except OSError as error:
        shutil.rmtree(partial, ignore_errors=True)
        raise StorageError(
            f"the backup {target} cannot be written",
            expected="a folder that can be written to, with space for the collection",
            actual=str(error),
            fix="free some space, or choose another disk; the collection is unchanged",
        ) from error
    return Backup(target, len(listed), sum(size for size, _ in listed.values()))


def restore(backup: Path, collection: Path) -> Backup:
    """Make the new collection `collection` from a backup whose files are all whole."""
    _refuse_existing(collection)
    listed = _read_list(backup)
    damaged = [name for name, (_, digest) in listed.items() if not _is_whole(backup, name, digest)]
    if damaged:
        raise CollectionError(
            f"the backup {backup} is damaged",
            expected=f"{len(listed)} files as they were written",
            actual=f"{len(damaged)} are not: {', '.join(damaged[:3])}{', …' if len(damaged) > 3 else ''}",
            fix="use another backup",
        )
    partial = collection.with_name(f"{collection.name}.partial")
    try:
        shutil.rmtree(partial, ignore_errors=True)
        for name in listed:
            path = partial / name
            path.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(backup / name, path)
        sync_tree(partial)
        partial.rename(collection)
        sync_folder(collection.parent)
    except OSError as error:
        shutil.rmtree(partial, ignore_errors=True)
        raise StorageError(
            f"{collection} cannot be written",
            expected="a folder that can be written to, with space for the collection",
            actual=str(error),
            fix="free some space, or choose another disk; the backup is unchanged",
        ) from error
    return Backup(collection, len(listed), sum(size for size, _ in listed.values()))


def _copy_state(collection: Path, target: Path) -> None:
    """The journal and the uploads first: an upload that becomes an image meanwhile is then in both, and not in none."""
    _copy_journal(collection, target)
    for name in _list_others(collection):
        with contextlib.suppress(FileNotFoundError):  # the service removed an upload that it no longer needs
            _copy(collection / name, target / name)
    held = target / ".held"
    try:
        for attempt in range(3):
            paths, record, version = _upkeep.list_files(collection)
            try:
                for name in paths:  # links keep the files, whatever a compaction removes
                    _hold(collection / name, held / name)
                break
            except FileNotFoundError:
                if attempt == 2:
                    raise
        for name in paths:
            _copy(held / name, target / name)
    finally:
        shutil.rmtree(held, ignore_errors=True)
    path = target / RECORD.format(version=version)
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(record)


def _list_others(collection: Path) -> Iterator[str]:
    yield from (name for name in (metadata.FILE, metadata.COPY, CALIBRATION) if (collection / name).is_file())
    for folder in (FILES, UPLOADS):
        for path in sorted((collection / folder).rglob("*")) if (collection / folder).is_dir() else []:
            if path.is_file() and not path.name.endswith((".lock", ".tmp")):
                yield path.relative_to(collection).as_posix()


def _copy_journal(collection: Path, target: Path) -> None:
    if (collection / JOBS).is_file():
        with closing(sqlite3.connect(collection / JOBS)) as source, closing(sqlite3.connect(target / JOBS)) as copy:
            source.backup(copy)
        sync_file(target / JOBS)


def _hold(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    target.unlink(missing_ok=True)
    try:
        os.link(source, target)
    except FileNotFoundError:
        raise
    except OSError:  # another disk, or a file system without links
        shutil.copyfile(source, target)


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)


def _refuse_existing(folder: Path) -> None:
    if folder.exists():
        raise InputError(
            f"{folder} exists already",
            expected="a new folder",
            actual="a folder or a file",
            fix="choose another name, or move it away",
        )


def _read_list(backup: Path) -> dict[str, tuple[int, str]]:
    if not (backup / LIST).is_file():
        raise InputError(
            f"{backup} is not a backup",
            expected=f"a folder that holds {LIST}, made by `resight backup`",
            actual="a folder without it" if backup.is_dir() else "no such folder",
            fix="check the path",
        )
    table = read_json(backup / LIST, what=str(backup / LIST))
    try:
        listed = {str(name): (int(size), str(digest)) for name, (size, digest) in table["files"].items()}
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(
            f"{backup / LIST} cannot be read", expected="a list of files", actual=str(error), fix="use another backup"
        ) from error
    for name in listed:
        resolve_inside(backup, name, what="a file of the backup", error=CollectionError)
    return listed


def _is_whole(backup: Path, name: str, digest: str) -> bool:
    path = backup / name
    return path.is_file() and fingerprint_file(path) == digest
