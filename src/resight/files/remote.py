"""Files that lie elsewhere: a path or an address such as s3://bucket/photos in, bytes and listings out.

    s3://bucket/key   gs://bucket/key   az://container/key   https://host/file   file:///folder   memory://folder

A remote file is named by a `Path` like any other; pathlib folds its address (`s3:/bucket/key`), `to_url` unfolds it.
It is reached through fsspec, with the driver of its scheme (s3fs for s3); both are imported when the first such address
is used. Credentials come from where the driver takes them (AWS_* variables, ~/.aws, …).

A driver's FileNotFoundError, PermissionError and IsADirectoryError pass through, as those of `open` do: they are about
one file. Anything else (no driver, no credentials, nobody answers) is about all of them, and becomes a ResightError.
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

from resight.errors import InputError, MissingExtra

SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):[/\\]")  # two letters at least: C:/ is a disk
SECOND = 10**9
# The usual waits add up to minutes for an address that does not answer.
PATIENCE = {"connect_timeout": 4, "read_timeout": 30, "retries": {"max_attempts": 1}}
OPTIONS: Mapping[str, Mapping[str, Any]] = {
    "s3": {"config_kwargs": PATIENCE, "use_listings_cache": False},
    "s3a": {"config_kwargs": PATIENCE, "use_listings_cache": False},
}
ATTEMPTS = 2


class Status(NamedTuple):
    """What a place tells of a file. Both the same: the file has not changed."""

    size: int
    modified_ns: int  # of a remote file: whole seconds, and below them a mark of its ETag; 0 where neither is told


class Listed(NamedTuple):
    url: str
    size: int
    modified_ns: int


def is_remote(path: Path | str) -> bool:
    return SCHEME.match(str(path)) is not None


def to_url(path: Path | str) -> str:
    """The address of a remote file; of a local one its path."""
    found = SCHEME.match(str(path))
    if found is None:
        return str(path)
    return _join(found[1].lower(), Path(path).as_posix()[found.end() :])


def open_place(path: Path) -> BinaryIO:
    """The file at `path`, here or elsewhere, for reading."""
    if not is_remote(path):
        return path.open("rb")
    url = to_url(path)
    with _reaching(url) as files:
        return cast(BinaryIO, files.open(files._strip_protocol(url), "rb"))


def read_place(path: Path) -> bytes:
    """All bytes of a remote file."""
    url = to_url(path)
    with _reaching(url) as files:
        return cast(bytes, files.cat_file(files._strip_protocol(url)))


def write_place(path: Path, data: bytes) -> None:
    """A remote file with these bytes, whole or not at all: object stores show an object when all of it is there."""
    url = to_url(path)
    with _reaching(url) as files:
        files.pipe_file(files._strip_protocol(url), data)


def look_up(path: Path) -> Status | None:
    """Of a remote file; None where there is none (a folder is none)."""
    entry = _describe(path)
    return _read_status(entry) if entry is not None and entry["type"] == "file" else None


def is_folder(path: Path) -> bool:
    """Whether something lies below a remote path."""
    entry = _describe(path)
    return entry is not None and entry["type"] == "directory"


def list_files(url: str, leave_out: Callable[[str], bool] = lambda _: False) -> Iterator[Listed]:
    """Every file below a remote folder, in order of name; one listing a level is held.

    Files and folders are left out by their own name.
    """
    with _reaching(url) as files:
        root = files._strip_protocol(url)
        pending = [iter(_list_folder(files, root))]
    while pending:
        entry = next(pending[-1], None)
        if entry is None:
            pending.pop()
        elif leave_out(posixpath.basename(entry["name"].rstrip("/"))):
            continue
        elif entry["type"] == "directory":
            with _reaching(url):
                pending.append(iter(_list_folder(files, entry["name"])))
        else:
            yield Listed(_join(url.partition("://")[0], entry["name"]), *_read_status(entry))


def _join(scheme: str, name: str) -> str:
    return f"{scheme}://{'/' if scheme == 'file' else ''}{name.lstrip('/')}"


def _list_folder(files: Any, folder: str) -> list[dict[str, Any]]:
    """Without the empty object that some tools leave in the folder's own name."""
    entries = [entry for entry in files.ls(folder, detail=True) if entry["name"].rstrip("/") != folder.rstrip("/")]
    return sorted(entries, key=lambda entry: str(entry["name"]))


def _describe(path: Path) -> dict[str, Any] | None:
    url = to_url(path)
    with _reaching(url) as files:
        try:
            return cast(dict[str, Any], files.info(files._strip_protocol(url)))
        except FileNotFoundError:
            return None


def _read_status(entry: Mapping[str, Any]) -> Status:
    """A file and its listing may tell times in different detail, and two changes may share a second: hence the ETag."""
    modified = next(
        (entry[key] for key in ("LastModified", "mtime", "updated", "last_modified", "created") if entry.get(key)), 0
    )
    seconds = modified.timestamp() if isinstance(modified, datetime) else modified
    etag = next((str(entry[key]) for key in ("ETag", "etag") if entry.get(key)), "")
    if not etag and isinstance(seconds, float):
        return Status(int(entry["size"] or 0), round(seconds * SECOND))
    mark = zlib.crc32(etag.strip('"').encode()) % SECOND if etag else 0
    return Status(int(entry["size"] or 0), int(seconds) * SECOND + mark)


@contextmanager
def _reaching(url: str) -> Iterator[Any]:
    """The driver of an address; what goes wrong on the way there is told in our words."""
    try:
        yield _find_driver(url)
    except (FileNotFoundError, PermissionError, IsADirectoryError, MissingExtra, InputError):
        raise
    except Exception as error:  # drivers raise whatever the libraries below them do
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
        made = importlib.import_module("fsspec").get_filesystem_class(scheme)
    except ImportError as error:
        raise MissingExtra(
            f"{url} needs a driver that is not installed",
            expected=f"fsspec and its driver for {scheme}://",
            actual=str(error),
            fix="pip install 'resight[remote]' brings those for s3; for others install what the line above names",
        ) from error
    except ValueError as error:
        raise InputError(
            f"no driver knows {scheme}://",
            expected="s3://, gs://, az://, https:// or another scheme of fsspec",
            actual=url,
            fix="check the address",
        ) from error
    files = made(**OPTIONS.get(scheme, {}))
    if hasattr(files, "retries"):
        files.retries = ATTEMPTS
    return files
