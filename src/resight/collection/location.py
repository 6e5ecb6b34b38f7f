"""Where the files of a collection lie: in one local folder, or remote with a working folder on this machine.

    remote (s3://…)    collection.json, images.lance/, files/, calibration.json: the collection itself
    local              indexes/, writer.lock, copies of files/ and calibration.json: files that can be made again

A collection in a local folder has both there. Files under `files/` are named by their content (the first digits of its
SHA-256), so that a copy never expires. The content is checked when a file is fetched, and that of small ones whenever
the collection is opened. The calibration is looked up each time. A name comes from collection.json, which a stranger
may have written: `resolve_inside` keeps it in the folder.

The lock holds within one machine: across machines only Lance's own commits guard the table, so let one machine write at
a time.
"""

import contextlib
import os
import re
from itertools import islice
from pathlib import Path

from resight.errors import CollectionError, StorageError
from resight.files import cache_folder, remote
from resight.files.atomic import write_atomic
from resight.files.durable import sync_folder, write_durable
from resight.files.fingerprint import fingerprint, fingerprint_file
from resight.files.inside import resolve_inside, show
from resight.files.remote import to_url

FILES = "files"  # folder of the copies of code books and weights that the recipe names
DIGITS = 12  # of the SHA-256 that names such a copy
SUFFIX = re.compile(r"(\.[A-Za-z0-9_+-]{1,16})?")
CONTENT_NAME = re.compile(rf"{FILES}/[0-9a-f]{{{DIGITS}}}{SUFFIX.pattern}")
CHECKED = 64 << 20  # bytes: larger files are checked when they are fetched, and not whenever the collection is opened
WHAT = "a file of the collection"


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
    path = resolve_inside(folder, name, what=WHAT, error=CollectionError)
    if not remote.is_remote(path):
        return path.read_bytes()
    try:
        return remote.read_bytes(path)
    except PermissionError as error:
        raise _refuse(folder, "read", error) from error


def write_file(folder: Path, name: str, data: bytes) -> None:
    """Write a file of the collection, completely or not at all; it is on the disk when this returns."""
    path = resolve_inside(folder, name, what=WHAT, error=CollectionError)
    if not remote.is_remote(path):
        path.parent.mkdir(exist_ok=True)
        write_durable(path, data, unique=False)
        sync_folder(path.parent.parent)
        return
    try:
        remote.write_bytes(path, data)
    except (PermissionError, FileNotFoundError) as error:  # the latter: the bucket does not exist
        raise _refuse(folder, "written to", error) from error


def exists(folder: Path, name: str) -> bool:
    path = resolve_inside(folder, name, what=WHAT, error=CollectionError)
    return path.exists() if not remote.is_remote(path) else remote.stat(path) is not None


def fetch(folder: Path, name: str) -> Path:
    """The local path of a file that is named by its content, fetched if missing, and checked against its name."""
    source = resolve_inside(folder, name, what=WHAT, error=CollectionError)
    copy = resolve_inside(find_local_folder(folder), name, what=WHAT, error=CollectionError)
    if not CONTENT_NAME.fullmatch(name):
        raise CollectionError(
            f"a file of the collection is named {show(name)}",
            expected=f"{FILES}/, the first {DIGITS} digits of the SHA-256 of its content, and a suffix",
            actual="another name",
            fix="the collection was changed by hand, or is not from resight: use it only if you trust its source",
        )
    if remote.is_remote(folder) and not copy.exists():
        data = remote.read_bytes(source)
        _check_content(to_url(source), name, fingerprint(data, DIGITS))
        with write_atomic(copy) as temporary:
            temporary.write_bytes(data)
    elif copy.exists():  # a missing file is reported by the plug-in that needs it
        _check_copy(copy, name)
    return copy


def fetch_newest(folder: Path, name: str) -> Path:
    """The local path of the newest version of a file; nothing is there if the collection has no such file."""
    copy = resolve_inside(find_local_folder(folder), name, what=WHAT, error=CollectionError)
    if remote.is_remote(folder):
        if exists(folder, name):
            with write_atomic(copy) as temporary:
                temporary.write_bytes(remote.read_bytes(folder / name))
        else:
            copy.unlink(missing_ok=True)
    return copy


def name_by_content(data: bytes, suffix: str) -> str:
    """The name of a file under files/."""
    return f"{FILES}/{fingerprint(data, DIGITS)}{suffix if SUFFIX.fullmatch(suffix) else ''}"


def _check_copy(copy: Path, name: str) -> None:
    if not copy.is_file():
        raise CollectionError(f"{copy} is not a file", expected="a plain file", actual="a folder, a pipe or a device")
    if copy.stat().st_size <= CHECKED:
        _check_content(str(copy), name, fingerprint_file(copy, DIGITS))


def _check_content(path: str, name: str, found: str) -> None:
    if name.removeprefix(f"{FILES}/")[:DIGITS] != found:
        raise CollectionError(
            f"{path} is damaged, or not the file that its name promises",
            expected=f"content whose SHA-256 begins with {name.removeprefix(f'{FILES}/')[:DIGITS]}",
            actual=found,
            fix="restore it from a backup, or index the images again into a new collection",
        )


def list_foreign_files(folder: Path, own: frozenset[str]) -> list[str]:
    """Names in a folder that do not belong to a collection; of a remote folder the first few."""
    if not remote.is_remote(folder):
        return sorted(entry.name for entry in folder.iterdir() if entry.name not in own) if folder.is_dir() else []
    url = remote.to_url(folder)
    with contextlib.suppress(FileNotFoundError):  # object stores have no empty folders
        return [
            file.url.removeprefix(url + "/") for file in islice(remote.list_files(url, lambda name, _: name in own), 4)
        ]
    return []


def _refuse(folder: Path, done: str, error: OSError) -> CollectionError:
    return CollectionError(
        f"{remote.to_url(folder)} cannot be {done}",
        expected="a bucket that exists, and permission",
        actual=str(error),
        fix="check the name of the bucket, the credentials and their permissions",
    )
