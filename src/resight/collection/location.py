"""Where the files of a collection lie: in one local folder, or remote with a working folder on this machine.

    remote (s3://…)    collection.json, images.lance/, files/, calibration.json: the collection itself
    local              indexes/, writer.lock, copies of files/ and calibration.json: files that can be made again

A collection in a local folder has both there. Files under `files/` are named by their content, so that a copy never
expires; the calibration is looked up each time. The lock holds within one machine: across machines only Lance's own
commits guard the table, so let one machine write at a time.
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
    """The local folder of a collection: itself, or one in the cache (RESIGHT_CACHE, or the user's), made if missing."""
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
            f"this machine has no folder for the indexes of {url}",
            expected=f"a folder that can be written to: {home}",
            actual=str(error),
            fix="name another one in RESIGHT_CACHE",
        ) from error
    return home


def read_file(folder: Path, name: str) -> bytes:
    """A file of the collection; FileNotFoundError if it does not exist."""
    path = folder / name
    if not remote.is_remote(path):
        return path.read_bytes()
    try:
        return remote.read_bytes(path)
    except PermissionError as error:
        raise _refuse(folder, "read", error) from error


def write_file(folder: Path, name: str, data: bytes) -> None:
    """Write a file of the collection, completely or not at all."""
    path = folder / name
    if not remote.is_remote(path):
        path.parent.mkdir(exist_ok=True)
        with replace_atomic(path, unique=False) as temporary:
            temporary.write_bytes(data)
        return
    try:
        remote.write_bytes(path, data)
    except (PermissionError, FileNotFoundError) as error:  # the latter: the bucket does not exist
        raise _refuse(folder, "written to", error) from error


def exists(folder: Path, name: str) -> bool:
    path = folder / name
    return path.exists() if not remote.is_remote(path) else remote.stat(path) is not None


def fetch(folder: Path, name: str) -> Path:
    """The local path of a file that is named by its content, fetched if missing."""
    copy = find_local_folder(folder) / name
    if remote.is_remote(folder) and not copy.exists():
        with write_atomic(copy) as temporary:
            temporary.write_bytes(remote.read_bytes(folder / name))
    return copy


def fetch_newest(folder: Path, name: str) -> Path:
    """The local path of the newest version of a file; nothing is there if the collection has no such file."""
    copy = find_local_folder(folder) / name
    if remote.is_remote(folder):
        if exists(folder, name):
            with write_atomic(copy) as temporary:
                temporary.write_bytes(remote.read_bytes(folder / name))
        else:
            copy.unlink(missing_ok=True)
    return copy


def list_foreign_files(folder: Path, own: frozenset[str]) -> list[str]:
    """Names in a folder that do not belong to a collection; of a remote folder the first few."""
    if not remote.is_remote(folder):
        return sorted(entry.name for entry in folder.iterdir() if entry.name not in own) if folder.is_dir() else []
    url = remote.to_url(folder)
    with contextlib.suppress(FileNotFoundError):  # object stores have no empty folders
        return [file.url.removeprefix(url + "/") for file in islice(remote.list_files(url, own.__contains__), 4)]
    return []


def _refuse(folder: Path, done: str, error: OSError) -> CollectionError:
    return CollectionError(
        f"{remote.to_url(folder)} cannot be {done}",
        expected="a bucket that exists, and permission",
        actual=str(error),
        fix="check the name of the bucket, the credentials and their permissions",
    )
