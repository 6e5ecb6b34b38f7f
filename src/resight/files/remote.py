"""Remote files: a path or an address such as s3://bucket/photos in, bytes and listings out.

    s3://bucket/key   gs://bucket/key   az://container/key   https://host/file   file:///folder   memory://folder

A `Path` names a remote file like any other; pathlib folds its address to `s3:/bucket/key`, and `to_url` unfolds it.
fsspec reaches it with the driver of its scheme (s3fs for s3); both are imported when the first such address is used.
The driver looks for credentials in its usual locations (AWS_* variables, ~/.aws, …).

A driver's FileNotFoundError, PermissionError and IsADirectoryError pass through like those of `open`: they concern one
file. Anything else (no driver, no credentials, no answer) concerns all of them and becomes a ResightError.
"""

import importlib
import posixpath
import re
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, cast

from resight.errors import InputError, MissingExtra, install_extra

SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):[/\\]")  # two letters at least: C:/ is a disk
SECOND = 10**9
# The drivers' own timeouts add up to minutes for an address that does not answer.
TIMEOUTS = {"connect_timeout": 4, "read_timeout": 30, "retries": {"max_attempts": 1}}
OPTIONS: Mapping[str, Mapping[str, Any]] = {
    "s3": {"config_kwargs": TIMEOUTS, "use_listings_cache": False},
    "s3a": {"config_kwargs": TIMEOUTS, "use_listings_cache": False},
}
ATTEMPTS = 2


class Status(NamedTuple):
    """Size and time of a remote file. If both are the same, the file has not changed."""

    size: int
    modified_ns: int  # whole seconds, and below them a checksum of its ETag; 0 if the store gives neither


class ListedFile(NamedTuple):
    url: str
    size: int
    modified_ns: int


def is_remote(path: Path | str) -> bool:
    return SCHEME.match(str(path)) is not None


def to_url(path: Path | str) -> str:
    """The address of a remote file, or the path of a local one."""
    found = SCHEME.match(str(path))
    if found is None:
        return str(path)
    return _join(found[1].lower(), Path(path).as_posix()[found.end() :])


def open_file(path: Path) -> BinaryIO:
    """The file at `path`, local or remote, for reading."""
    if not is_remote(path):
        return path.open("rb")
    url = to_url(path)
    with _driver(url) as files:
        return cast(BinaryIO, files.open(files._strip_protocol(url), "rb"))


def read_bytes(path: Path) -> bytes:
    """All bytes of a remote file."""
    url = to_url(path)
    with _driver(url) as files:
        return cast(bytes, files.cat_file(files._strip_protocol(url)))


def write_bytes(path: Path, data: bytes) -> None:
    """Write a remote file atomically: object stores show an object once all of it has arrived."""
    url = to_url(path)
    with _driver(url) as files:
        files.pipe_file(files._strip_protocol(url), data)


def stat(path: Path) -> Status | None:
    """Size and time of a remote file; None if there is no file (a folder is not one)."""
    entry = _describe(path)
    return _read_status(entry) if entry is not None and entry["type"] == "file" else None


def is_folder(path: Path) -> bool:
    """Whether files lie below a remote path."""
    entry = _describe(path)
    return entry is not None and entry["type"] == "directory"


def list_files(url: str, leave_out: Callable[[str, bool], bool] = lambda _, __: False) -> Iterator[ListedFile]:
    """Every file below a remote folder, sorted by name; memory holds one folder's listing per level.

    `leave_out` gets the bare name of each file and folder, and whether it is a folder; True leaves it out.
    """
    with _driver(url) as files:
        root = files._strip_protocol(url)
        pending = [iter(_list_folder(files, root))]
    while pending:
        entry = next(pending[-1], None)
        if entry is None:
            pending.pop()
        elif leave_out(posixpath.basename(entry["name"].rstrip("/")), entry["type"] == "directory"):
            continue
        elif entry["type"] == "directory":
            with _driver(url):
                pending.append(iter(_list_folder(files, entry["name"])))
        else:
            yield ListedFile(_join(url.partition("://")[0], entry["name"]), *_read_status(entry))


def _join(scheme: str, name: str) -> str:
    return f"{scheme}://{'/' if scheme == 'file' else ''}{name.lstrip('/')}"


def _list_folder(files: Any, folder: str) -> list[dict[str, Any]]:
    """The entries of a folder, without the empty object that some tools store under the folder's own name."""
    entries = [entry for entry in files.ls(folder, detail=True) if entry["name"].rstrip("/") != folder.rstrip("/")]
    return sorted(entries, key=lambda entry: str(entry["name"]))


def _describe(path: Path) -> dict[str, Any] | None:
    url = to_url(path)
    with _driver(url) as files:
        try:
            return cast(dict[str, Any], files.info(files._strip_protocol(url)))
        except FileNotFoundError:
            return None


def _read_status(entry: Mapping[str, Any]) -> Status:
    """Drivers round a file's time differently in a listing, and two changes may share a second: hence the ETag."""
    modified = next(
        (entry[key] for key in ("LastModified", "mtime", "updated", "last_modified", "created") if entry.get(key)), 0
    )
    seconds = modified.timestamp() if isinstance(modified, datetime) else modified
    etag = next((str(entry[key]) for key in ("ETag", "etag") if entry.get(key)), "")
    if not etag and isinstance(seconds, float):
        return Status(int(entry["size"] or 0), round(seconds * SECOND))
    checksum = zlib.crc32(etag.strip('"').encode()) % SECOND if etag else 0
    return Status(int(entry["size"] or 0), int(seconds) * SECOND + checksum)


@contextmanager
def _driver(url: str) -> Iterator[Any]:
    """The driver for an address; errors of the store leave as InputError."""
    try:
        yield _find_driver(url)
    except (FileNotFoundError, PermissionError, IsADirectoryError, MissingExtra, InputError):
        raise
    except Exception as error:  # drivers raise the errors of any library below them
        raise InputError(
            f"cannot reach {url}",
            expected="a store that answers, and credentials that it accepts",
            actual=f"{type(error).__name__}: {error}".partition("\n")[0],
            fix="check the address, the network and the credentials (for s3: the AWS_… variables, AWS_ENDPOINT_URL "
            "where it is not Amazon's, FSSPEC_S3='{\"anon\": true}' where the bucket is public)",
        ) from error


def _find_driver(url: str) -> Any:
    scheme = url.partition("://")[0]
    try:
        driver = importlib.import_module("fsspec").get_filesystem_class(scheme)
    except ImportError as error:
        raise MissingExtra(
            f"{url} needs a driver that is not installed",
            expected=f"fsspec and its driver for {scheme}://",
            actual=str(error),
            fix=f"{install_extra('remote')} brings those for s3; for others install what the line above names",
        ) from error
    except ValueError as error:
        raise InputError(
            f"no driver knows {scheme}://",
            expected="s3://, gs://, az://, https:// or another scheme of fsspec",
            actual=url,
            fix="check the address",
        ) from error
    files = driver(**OPTIONS.get(scheme, {}))
    if hasattr(files, "retries"):
        files.retries = ATTEMPTS
    return files
