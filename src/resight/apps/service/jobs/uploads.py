"""Names of uploaded files in, ids of images out; an id is text and never becomes a path.

A file without an id of its own is called by the last part of its name. Where that name is taken by other content, the
beginning of the content's hash is put before the suffix, so that the same file sent again gets the same id again.

Files of a request in, arrivals and refused files out: each is decoded once, by a process of its own.

A file that cannot be decoded is named with the reason and does not stop the others.

Attributes that a client sends (JSON) in, checked ones out.

Names are text without the signs that conditions are made of; values are text, numbers or truth. null leaves a name
out. `lat` and `lon` come together, in degrees.

Files that clients uploaded, below COLLECTION/uploads/, each named after the SHA-256 of its content.

In go bytes, out come paths that are durable: when `keep` returns, the files survive a power cut. No name that a
client chose becomes part of a path. One file serves all images of the same content, so a file is removed only when
no image and no job has its hash any more (`remove_unused`).
"""

import contextlib
import hashlib
import json
import math
import os
import re
import time
import unicodedata
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any, Never

from fastapi import UploadFile

from resight.apps.service.decoding import DecoderPool
from resight.apps.service.jobs.models import Arrival
from resight.errors import ImageError, InputError, StorageError
from resight.files.atomic import UNFINISHED, write_whole
from resight.types import Attribute, Skipped

LONGEST_NAME_UPLOAD_IDS, LONGEST_ID = 120, 500  # characters
NAMELESS = "image"
MARK = 8  # characters of the hash


def choose_ids(
    files: Sequence[tuple[str, str]], ids: Sequence[str], find_content: Callable[[str], str | None]
) -> list[str | None]:
    """An id for each file (its name and hash): the one of `ids` where they were given, else one made of its name.

    `find_content` gives the hash of the image that has an id already, or None. A file that was sent twice gets its id
    once.
    """
    chosen: dict[str, str] = {}
    result: list[str | None] = []
    for number, (name, sha256) in enumerate(files):
        id = ids[number] if ids else choose_id(name, sha256, lambda id: chosen.get(id) or find_content(id))
        result.append(None if id in chosen else id)
        chosen[id] = sha256
    return result


def choose_id(name: str, sha256: str, find_content: Callable[[str], str | None]) -> str:
    """An id for a file; `find_content` gives the hash of the image that has an id already, or None."""
    cleaned = clean_name(name)
    if find_content(cleaned) in (None, sha256):
        return cleaned
    path = PurePosixPath(cleaned)
    return f"{path.stem}-{sha256[:MARK]}{path.suffix}"


def clean_name(name: str) -> str:
    """What remains of a client's file name: no folders, no control characters, not too long, not empty."""
    last = unicodedata.normalize("NFC", name.replace("\\", "/")).rpartition("/")[2]
    shown = "".join(letter for letter in last if unicodedata.category(letter)[0] != "C").strip().strip(".").strip()
    path = PurePosixPath(shown or NAMELESS)
    suffix = path.suffix[:10]
    return (path.stem[: LONGEST_NAME_UPLOAD_IDS - len(suffix)] + suffix).strip()


def check_ids(ids: Sequence[str]) -> None:
    """Ids that a client gave."""
    for id in ids:
        if not id.strip() or id != id.strip() or len(id) > LONGEST_ID or not is_plain_text(id):
            raise InputError(
                "an id cannot be used",
                expected=f"1 to {LONGEST_ID} characters, none of them a control character, no space at either end",
                actual=repr(id[:80]),
                fix="choose another id",
            )
    if len(set(ids)) < len(ids):
        repeated = next(id for number, id in enumerate(ids) if id in ids[:number])
        raise InputError(
            "an id was given twice",
            expected="ids that differ",
            actual=repr(repeated[:80]),
            fix="give each file its own",
        )


def is_plain_text(text: str) -> bool:
    """Can it be stored and shown? Control characters and halves of characters cannot."""
    return not any(unicodedata.category(letter) in ("Cc", "Cs") for letter in text)


async def receive_files(
    files: Sequence[UploadFile], attributes: Sequence[Mapping[str, Attribute]], decoders: DecoderPool
) -> list[Arrival | Skipped]:
    """One a file, in their order; `attributes` are those of each."""
    return [await _receive(file, said, decoders) for file, said in zip(files, attributes, strict=False)]


async def _receive(file: UploadFile, attributes: Mapping[str, Attribute], decoders: DecoderPool) -> Arrival | Skipped:
    name = clean_name(file.filename or "")
    data = await file.read()
    try:
        await decoders.decode(data, name, max_side=0)
    except ImageError as error:
        return Skipped(name, error.problem.removeprefix(f"cannot read {name}: "))
    return Arrival(name, hashlib.sha256(data).hexdigest(), _read_again(file), len(data), attributes)


def _read_again(file: UploadFile) -> Callable[[], bytes]:
    """A way to the bytes, which are not held meanwhile: a request has many files."""

    def read() -> bytes:
        file.file.seek(0)
        return file.file.read()

    return read


MOST, LONGEST_NAME, LONGEST_TEXT = 50, 64, 2000
LARGEST = 2**53  # beyond it, numbers in JSON are not exact everywhere
RESERVED = {"box": "a part of an image is added with a manifest"}
DEGREES = {"lat": 90.0, "lon": 180.0}
SIGNS = "!<>="  # of conditions such as "year>=1900"


def read_attributes_of_files(text: str, names: Sequence[str]) -> list[dict[str, Attribute]]:
    """Those of each file by its name, from one object for all of them or from {file name: object}."""
    given = _parse(text)
    if not given or not all(isinstance(value, dict) for value in given.values()):
        return [check_attributes(given)] * len(names)
    unknown = [name for name in given if name not in names]
    if unknown:
        raise _refuse("attributes for files that were not sent", "names of the files that were sent", unknown[0])
    return [check_attributes(given.get(name, {})) for name in names]


def read_attributes(text: str) -> dict[str, Attribute]:
    """Those of one image."""
    return check_attributes(_parse(text))


def check_attributes(given: Mapping[str, Any]) -> dict[str, Attribute]:
    said = {name: value for name, value in given.items() if value is not None}
    if len(said) > MOST:
        raise _refuse("too many attributes", f"at most {MOST}", str(len(said)))
    for name, value in said.items():
        _check_name(name)
        _check_value(name, value)
    if ("lat" in said) != ("lon" in said):
        raise _refuse("half a position", "both lat and lon, or neither", "one of them")
    return said


def _parse(text: str) -> dict[str, Any]:
    try:
        given = json.loads(text, parse_constant=_refuse_constant) if text.strip() else {}
    except (ValueError, RecursionError) as error:
        raise _refuse("the attributes are not JSON", 'an object such as {"label": "crater"}', str(error)) from error
    if not isinstance(given, dict):
        raise _refuse("the attributes are not an object", 'such as {"label": "crater"}', type(given).__name__)
    return given


def _check_name(name: str) -> None:
    if name in RESERVED:
        raise _refuse(f"{name!r} is not for clients", "another name", RESERVED[name])
    clean = name.strip() == name and 0 < len(name) <= LONGEST_NAME and is_plain_text(name)
    if not clean or any(sign in name for sign in SIGNS):
        expected = f"1 to {LONGEST_NAME} characters, none of {' '.join(SIGNS)}, no control character"
        raise _refuse("an attribute's name cannot be used", expected, repr(name[:80]))


def _check_value(name: str, value: Any) -> None:
    if name in DEGREES:
        limit = DEGREES[name]
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not abs(value) <= limit:
            raise _refuse(f"{name} is out of range", f"degrees from {-limit:g} to {limit:g}", repr(value)[:80])
    elif isinstance(value, str):
        if len(value) > LONGEST_TEXT or not is_plain_text(value.replace("\n", "").replace("\t", "")):
            expected = f"at most {LONGEST_TEXT:,} characters, no control character"
            raise _refuse(f"the text of {name!r} cannot be used", expected, f"{len(value):,} characters")
    elif not isinstance(value, (int, float)):
        raise _refuse(f"{name!r} holds a {type(value).__name__}", "text, a number, true or false", repr(value)[:80])
    elif (isinstance(value, int) and abs(value) > LARGEST) or not math.isfinite(value):
        raise _refuse(f"the number {name!r} is out of range", f"at most {LARGEST:,} either way", repr(value)[:80])


def _refuse_constant(name: str) -> Never:
    raise ValueError(f"{name} is not JSON")


def _refuse(problem: str, expected: str, actual: str) -> InputError:
    return InputError(problem, expected=expected, actual=actual[:200], fix="correct the attributes and send it again")


FOLDER = "uploads"
HASH = re.compile(r"[0-9a-f]{64}")
ABANDONED = 3600  # seconds after which a file that nobody finished is removed


class Uploads:
    def __init__(self, collection: Path) -> None:
        self.folder = Path(os.path.abspath(collection)) / FOLDER  # noqa: PTH100 - as the store names files: links stay

    def path(self, sha256: str) -> Path:
        return self.folder / sha256[:2] / sha256

    def keep(self, files: Iterable[bytes]) -> list[Path]:
        """Where files of this content lie now, and after a power cut."""
        paths = [self._write(data) for data in files]
        _sync_folders(dict.fromkeys(folder for path in paths for folder in path.parents[:3]))
        return paths

    def list_hashes(self) -> Iterator[str]:
        """Of all files that are there; anything that this module did not make is left out."""
        for path in self.folder.glob("??/*"):
            if HASH.fullmatch(path.name) and path == self.path(path.name) and not path.is_symlink():
                yield path.name

    def remove_unused(self, candidates: Iterator[str], used: Container[str]) -> int:
        """Remove those of the candidates that are not used; gives how many."""
        removed = 0
        for sha256 in candidates:
            if sha256 not in used and HASH.fullmatch(sha256):
                with contextlib.suppress(OSError):  # another process was quicker, or it is tried again next time
                    self.path(sha256).unlink()
                    removed += 1
        return removed

    def remove_unfinished(self) -> None:
        """What a process left that was killed while it wrote."""
        for path in self.folder.glob(f"??/*{UNFINISHED}"):
            with contextlib.suppress(OSError):
                if time.time() - path.stat().st_mtime > ABANDONED:
                    path.unlink()

    def _write(self, data: bytes) -> Path:
        path = self.path(hashlib.sha256(data).hexdigest())
        if not path.is_file():
            with write_whole(path, "cannot keep the upload", "free some space, then send it again") as temporary:
                _write_durably(temporary, data)
        return path


def _write_durably(path: Path, data: bytes) -> None:
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _sync_folders(folders: Iterable[Path]) -> None:
    """The names, too: a new file is found after a power cut only when its folder was written out."""
    try:
        for folder in folders:
            _sync(folder)
    except OSError as error:
        raise StorageError(
            "cannot keep the upload",
            expected="a disk that writes what it is given",
            actual=str(error),
            fix="check the disk, then send it again",
        ) from error


def _sync(folder: Path) -> None:
    if os.name == "nt":  # Windows cannot open folders, and writes names at once
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
