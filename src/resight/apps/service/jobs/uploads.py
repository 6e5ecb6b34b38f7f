"""Uploads: the files, ids and attributes that a client sends in; checked values and durable files out.

- `receive_files` has each file decoded in the sandbox. A file that cannot be decoded is skipped with the reason.
- `choose_ids` names images. By default an id is the last part of the file's name; where another content has that name,
  part of the content's hash is inserted before the suffix, so that the same file sent again gets the same id. An id
  never becomes a path.
- `read_attributes` checks JSON attributes: names without the signs of conditions; text, numbers or booleans as values.
- `UploadStore` writes files below COLLECTION/uploads/, each named after the SHA-256 of its content. After `save`, they
  survive a power cut. One file serves all images of the same content; upload_ledger.py decides when it is removed.
"""

import contextlib
import json
import math
import os
import re
import time
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any, Never

from fastapi import UploadFile

from resight.apps.service.decode_pool import DecodePool
from resight.apps.service.jobs.models import ReceivedFile
from resight.data import image_files
from resight.errors import ImageError, InputError, StorageError
from resight.files.atomic import TEMPORARY, write_atomic
from resight.files.fingerprint import fingerprint, fingerprint_file
from resight.types import Attribute, Skipped

MAX_NAME, MAX_ID = 120, 500  # characters
HASH_PREFIX = 8  # characters of the hash in an id
MAX_ATTRIBUTES, MAX_ATTRIBUTE_NAME, MAX_TEXT = 50, 64, 2000
LARGEST = 2**53  # not every reader of JSON represents larger integers exactly
RESERVED = {"box": "only a manifest can add a part of an image"}
DEGREES = {"lat": 90.0, "lon": 180.0}
SIGNS = "!<>="  # of conditions such as "year>=1900"
FOLDER = "uploads"
HASH = re.compile(r"[0-9a-f]{64}")
ABANDONED = 3600  # seconds after which an unfinished file is removed


async def receive_files(
    files: Sequence[UploadFile], attributes: Sequence[Mapping[str, Attribute]], pool: DecodePool
) -> list[ReceivedFile | Skipped]:
    """One result per file, in their order; `attributes` are those of each."""
    return [await _receive(file, own, pool) for file, own in zip(files, attributes, strict=False)]


async def _receive(file: UploadFile, attributes: Mapping[str, Attribute], pool: DecodePool) -> ReceivedFile | Skipped:
    name = clean_name(file.filename or "")
    data = await file.read()
    try:
        await pool.decode(data, name, max_side=0)
    except ImageError as error:
        return Skipped(name, image_files.reason(error, name))
    return ReceivedFile(name, fingerprint(data), _read_again(file), len(data), attributes)


def _read_again(file: UploadFile) -> Callable[[], bytes]:
    """A function that reads the bytes again, so that memory holds one file of a request at a time."""

    def read() -> bytes:
        file.file.seek(0)
        return file.file.read()

    return read


def choose_ids(
    files: Sequence[tuple[str, str]], ids: Sequence[str], find_content: Callable[[str], str | None]
) -> list[str | None]:
    """An id per file (name and hash): the one in `ids` where the client sent them, else one made from its name.

    `find_content` returns the hash of the image that already has an id, or None. The second copy of a file gets None.
    """
    chosen: dict[str, str] = {}
    result: list[str | None] = []
    for number, (name, sha256) in enumerate(files):
        id = ids[number] if ids else choose_id(name, sha256, lambda id: chosen.get(id) or find_content(id))
        result.append(None if id in chosen else id)
        chosen[id] = sha256
    return result


def choose_id(name: str, sha256: str, find_content: Callable[[str], str | None]) -> str:
    """An id for one file."""
    cleaned = clean_name(name)
    if find_content(cleaned) in (None, sha256):
        return cleaned
    path = PurePosixPath(cleaned)
    return f"{path.stem}-{sha256[:HASH_PREFIX]}{path.suffix}"


def clean_name(name: str, fallback: str = "image") -> str:
    """A client's file name without folders and control characters, not too long; `fallback` where nothing remains."""
    last = unicodedata.normalize("NFC", name.replace("\\", "/")).rpartition("/")[2]
    shown = "".join(letter for letter in last if unicodedata.category(letter)[0] != "C").strip().strip(".").strip()
    path = PurePosixPath(shown or fallback)
    suffix = path.suffix[:10]
    return (path.stem[: MAX_NAME - len(suffix)] + suffix).strip()


def check_ids(ids: Sequence[str]) -> None:
    """Check the ids that a client sent."""
    for id in ids:
        if not id.strip() or id != id.strip() or len(id) > MAX_ID or not is_plain_text(id):
            raise InputError(
                "invalid id",
                expected=f"1 to {MAX_ID} characters without control characters, and without spaces at either end",
                actual=repr(id[:80]),
                fix="choose another id",
            )
    if len(set(ids)) < len(ids):
        repeated = next(id for number, id in enumerate(ids) if id in ids[:number])
        raise InputError(
            "duplicate id",
            expected="different ids",
            actual=repr(repeated[:80]),
            fix="give each file its own id",
        )


def is_plain_text(text: str) -> bool:
    """True for text that can be stored and shown: without control characters and surrogates."""
    return not any(unicodedata.category(letter) in ("Cc", "Cs") for letter in text)


def read_attributes_of_files(text: str, names: Sequence[str]) -> list[dict[str, Attribute]]:
    """The attributes of each file, from one object for all files or from {file name: object}."""
    given = _parse(text)
    if not given or not all(isinstance(value, dict) for value in given.values()):
        return [check_attributes(given)] * len(names)
    unknown = [name for name in given if name not in names]
    if unknown:
        raise _reject("attributes of a file that was not sent", "names of the files in this request", unknown[0])
    return [check_attributes(given.get(name, {})) for name in names]


def read_attributes(text: str) -> dict[str, Attribute]:
    """The attributes of one image."""
    return check_attributes(_parse(text))


def check_attributes(given: Mapping[str, Any]) -> dict[str, Attribute]:
    """The valid attributes; null removes a name. `lat` and `lon` come together, in degrees."""
    kept = {name: value for name, value in given.items() if value is not None}
    if len(kept) > MAX_ATTRIBUTES:
        raise _reject("too many attributes", f"at most {MAX_ATTRIBUTES}", str(len(kept)))
    for name, value in kept.items():
        _check_name(name)
        _check_value(name, value)
    if ("lat" in kept) != ("lon" in kept):
        raise _reject("incomplete position", "both lat and lon, or neither", "only one of them")
    return kept


def _parse(text: str) -> dict[str, Any]:
    try:
        given = json.loads(text, parse_constant=_reject_constant) if text.strip() else {}
    except (ValueError, RecursionError) as error:
        raise _reject("the attributes are not JSON", 'an object such as {"label": "crater"}', str(error)) from error
    if not isinstance(given, dict):
        raise _reject("the attributes are not an object", 'such as {"label": "crater"}', type(given).__name__)
    return given


def _check_name(name: str) -> None:
    if name in RESERVED:
        raise _reject(f"{name!r} is a reserved name", "another name", RESERVED[name])
    clean = name.strip() == name and 0 < len(name) <= MAX_ATTRIBUTE_NAME and is_plain_text(name)
    if not clean or any(sign in name for sign in SIGNS):
        expected = f"1 to {MAX_ATTRIBUTE_NAME} characters, without {' '.join(SIGNS)} and control characters"
        raise _reject("invalid attribute name", expected, repr(name[:80]))


def _check_value(name: str, value: Any) -> None:
    if name in DEGREES:
        limit = DEGREES[name]
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not abs(value) <= limit:
            raise _reject(f"{name} is out of range", f"degrees from {-limit:g} to {limit:g}", repr(value)[:80])
    elif isinstance(value, str):
        if len(value) > MAX_TEXT or not is_plain_text(value.replace("\n", "").replace("\t", "")):
            expected = f"at most {MAX_TEXT:,} characters without control characters"
            raise _reject(f"invalid text in {name!r}", expected, f"{len(value):,} characters")
    elif not isinstance(value, (int, float)):
        raise _reject(f"{name!r} holds a {type(value).__name__}", "text, a number, true or false", repr(value)[:80])
    elif (isinstance(value, int) and abs(value) > LARGEST) or not math.isfinite(value):
        raise _reject(f"the number {name!r} is out of range", f"from {-LARGEST:,} to {LARGEST:,}", repr(value)[:80])


def _reject_constant(name: str) -> Never:
    raise ValueError(f"{name} is not valid JSON")


def _reject(problem: str, expected: str, actual: str) -> InputError:
    return InputError(
        problem, expected=expected, actual=actual[:200], fix="correct the attributes and send the request again"
    )


class UploadStore:
    def __init__(self, collection: Path) -> None:
        self.folder = Path(os.path.abspath(collection)) / FOLDER  # noqa: PTH100 - as the store names files: links stay

    def path(self, sha256: str) -> Path:
        return self.folder / sha256[:2] / sha256

    def save(self, files: Iterable[bytes]) -> list[Path]:
        """Write files durably; returns their paths."""
        paths = [self._write(data) for data in files]
        _sync_folders(dict.fromkeys(folder for path in paths for folder in path.parents[:3]))
        return paths

    def list_hashes(self) -> Iterator[str]:
        """The hashes of all files; skips any file that this class did not write."""
        for path in self.folder.glob("??/*"):
            if HASH.fullmatch(path.name) and path == self.path(path.name) and not path.is_symlink():
                yield path.name

    def is_whole(self, sha256: str) -> bool:
        """Whether the file holds what its name says. A missing file is left to those who read it."""
        try:
            return fingerprint_file(self.path(sha256)) == sha256
        except FileNotFoundError:
            return True

    def remove(self, hashes: Iterable[str]) -> int:
        """Remove files; returns how many."""
        removed = 0
        for sha256 in hashes:
            if HASH.fullmatch(sha256):
                with contextlib.suppress(OSError):  # another process was faster
                    self.path(sha256).unlink()
                    removed += 1
        return removed

    def measure(self, hashes: Iterable[str]) -> dict[str, int]:
        """Hash → bytes of each file."""
        return {sha256: self.path(sha256).stat().st_size for sha256 in hashes}

    def remove_temporary(self) -> None:
        """Remove files that a killed process left unfinished."""
        for path in self.folder.glob(f"??/*{TEMPORARY}"):
            with contextlib.suppress(OSError):
                if time.time() - path.stat().st_mtime > ABANDONED:
                    path.unlink()

    def _write(self, data: bytes) -> Path:
        path = self.path(fingerprint(data))
        if not _holds(path, data):  # also where an earlier file of this name is damaged
            with write_atomic(path, "cannot store the upload", "free some space, then send it again") as temporary:
                _write_durably(temporary, data)
        return path


def _holds(path: Path, data: bytes) -> bool:
    try:
        return path.stat().st_size == len(data) and path.read_bytes() == data
    except OSError:
        return False


def _write_durably(path: Path, data: bytes) -> None:
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _sync_folders(folders: Iterable[Path]) -> None:
    """Flush the folders: a new file survives a power cut only when its folder entry does."""
    try:
        for folder in folders:
            _sync(folder)
    except OSError as error:
        raise StorageError(
            "cannot store the upload",
            expected="a working disk",
            actual=str(error),
            fix="check the disk, then send it again",
        ) from error


def _sync(folder: Path) -> None:
    if os.name == "nt":  # Windows cannot open folders, and flushes names itself
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
