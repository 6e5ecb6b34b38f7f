"""A collection that lies elsewhere (s3://bucket/photos.resight), and the folder on this machine that it works in.

    elsewhere   collection.json, images.lance/, files/, calibration.json: what the collection is
    here        indexes/, writer.lock, and copies of files/ and calibration.json: what can be made again

A collection in a local folder has both there. Files that are kept under `files/` are named by their content, so that a
copy is good for ever; the calibration is looked up each time. The lock holds within one machine: on several, only
Lance's own commits guard the table, so one machine writes at a time.
"""

import contextlib
import os
from itertools import islice
from pathlib import Path

from resight.errors import CollectionError, StorageError
from resight.files import cache_folder, remote
from resight.files.atomic import replace_atomic, write_atomic
from resight.files.fingerprint import fingerprint


def find_local_folder(folder: Path) -> Path:
    """The local folder of a collection: itself, or one in the cache (RESIGHT_CACHE, or the user's), which is made."""
    if not remote.is_remote(folder):
        return folder
    url = remote.to_url(folder)
    named = os.environ.get("RESIGHT_CACHE")
    home = (Path(named) if named else cache_folder()) / "collections"
    home /= f"{folder.stem}-{fingerprint(url, 12)}"
    try:
        home.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(
            f"no place on this machine for the indexes of {url}",
            expected=f"a folder that can be written to: {home}",
            actual=str(error),
            fix="name another one in RESIGHT_CACHE",
        ) from error
    return home


def read_file(folder: Path, name: str) -> bytes:
    """A file of the collection; FileNotFoundError where it is not there."""
    path = folder / name
    if not remote.is_remote(path):
        return path.read_bytes()
    try:
        return remote.read_bytes(path)
    except PermissionError as error:
        raise _refuse(folder, "read", error) from error


def write_file(folder: Path, name: str, data: bytes) -> None:
    """Put a file into the collection, whole or not at all."""
    path = folder / name
    if not remote.is_remote(path):
        path.parent.mkdir(exist_ok=True)
        with replace_atomic(path, unique=False) as temporary:
            temporary.write_bytes(data)
        return
    try:
        remote.write_bytes(path, data)
    except (PermissionError, FileNotFoundError) as error:  # the latter: there is no such bucket
        raise _refuse(folder, "written to", error) from error


def exists(folder: Path, name: str) -> bool:
    path = folder / name
    return path.exists() if not remote.is_remote(path) else remote.stat(path) is not None


def fetch(folder: Path, name: str) -> Path:
    """Where on this machine a file is that is named by its content."""
    copy = find_local_folder(folder) / name
    if remote.is_remote(folder) and not copy.exists():
        with write_atomic(copy) as temporary:
            temporary.write_bytes(remote.read_bytes(folder / name))
    return copy


def fetch_newest(folder: Path, name: str) -> Path:
    """Where on this machine a file is, if the collection has it, as it is now."""
    copy = find_local_folder(folder) / name
    if remote.is_remote(folder):
        if exists(folder, name):
            with write_atomic(copy) as temporary:
                temporary.write_bytes(remote.read_bytes(folder / name))
        else:
            copy.unlink(missing_ok=True)
    return copy


def list_foreign_files(folder: Path, own: frozenset[str]) -> list[str]:
    """Names in a folder that is to become a collection, and that are not of one; the first few where it is remote."""
    if not remote.is_remote(folder):
        return sorted(entry.name for entry in folder.iterdir() if entry.name not in own) if folder.is_dir() else []
    url = remote.to_url(folder)
    with contextlib.suppress(FileNotFoundError):  # object stores have no empty folders
        return [file.url.removeprefix(url + "/") for file in islice(remote.list_files(url, own.__contains__), 4)]
    return []


def _refuse(folder: Path, done: str, error: OSError) -> CollectionError:
    return CollectionError(
        f"{remote.to_url(folder)} cannot be {done}",
        expected="a bucket that is there, and permission",
        actual=str(error),
        fix="check the name of the bucket, the credentials and what they are allowed",
    )
