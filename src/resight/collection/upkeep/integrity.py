"""Verify a collection: its folder in, every fault out, each with its file, what is wrong and what to do.

Reads checksums and sizes of everything that is stored; `deep` reads all bytes, and every row. Changes nothing, and goes
on after a fault.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from resight.collection import metadata
from resight.collection.indexes import FOLDER as INDEXES
from resight.collection.location import DIGITS, FILES
from resight.collection.segments import find_damaged_file, load_contents
from resight.errors import CollectionError, InputError, ResightError
from resight.files.fingerprint import FULL, fingerprint_file
from resight.files.remote import is_remote, to_url
from resight.files.sqlite import sum_row
from resight.search import calibration as calibrations
from resight.store import Reader, _upkeep
from resight.store import build as build_store

TABLE = "images.lance"
JOBS, UPLOADS, CALIBRATION = "jobs.sqlite", "uploads", "calibration.json"
ITEM = (
    "job",
    "number",
    "id",
    "name",
    "sha256",
    "bytes",
    "attributes",
    "box",
    "path",
)  # under a checksum in the journal
ROWS = 64  # images that are read at once
REPAIR = "run `resight repair`"
REBUILT = "nothing: it is built again when it is needed"
LOST = "add the missing images again, or restore a newer backup"
BACKUP = "restore it from a backup"
SEND = "look at the quarantine of `resight serve`, and send these images again"


@dataclass(frozen=True)
class Fault:
    """Something that is not as it was written.

    Attributes:
        file: Path below the collection.
        problem: What is wrong with it.
        fix: What to do.
        images: Ids of the images concerned, if it is known which.
    """

    file: str
    problem: str
    fix: str
    images: tuple[str, ...] = ()


@dataclass(frozen=True)
class Verification:
    """What `verify` has found.

    Attributes:
        faults: Everything that is wrong.
        images: Number of images; 0 if the store cannot be read.
        unchecked: Number of files without a checksum, from before format 2.
    """

    faults: tuple[Fault, ...]
    images: int
    unchecked: int


def verify(folder: Path, deep: bool = False) -> Verification:
    """Compare a collection with its checksums."""
    found = metadata.read(folder)  # without it, nothing is known about the collection
    faults = [*_verify_metadata(folder), *_verify_files(folder), *_verify_calibration(folder)]
    unchecked = 0
    if not is_remote(folder):
        store_faults, unchecked = _verify_store(folder, deep)
        faults += [*store_faults, *_verify_indexes(folder, deep), *_verify_service(folder, deep)]
    images = 0
    try:
        reader = build_store(found.recipe.store.name, folder=folder, **found.recipe.store.settings)
        images = len(reader)
        faults += verify_rows(reader) if deep else []
    except ResightError as error:
        if not any(fault.file.startswith(TABLE) for fault in faults):
            faults.append(Fault(TABLE, f"{error.problem}: {error.actual}", REPAIR))
    return Verification(tuple(faults), images, unchecked)


def _verify_store(folder: Path, deep: bool) -> tuple[list[Fault], int]:
    try:
        faults, unchecked = _upkeep.find_faults(folder, deep)
    except ResightError as error:
        return [Fault(TABLE, _tell(error), REPAIR)], 0
    return [Fault(one.path, one.problem, LOST if one.ids else REPAIR, one.ids) for one in faults], unchecked


def verify_rows(reader: Reader) -> list[Fault]:
    """Read everything that is stored of every image, and name those whose checksums differ."""
    damaged: list[str] = []
    ids = list(reader.stamps)
    for start in range(0, len(ids), ROWS):
        part = ids[start : start + ROWS]
        if not is_readable(reader, part):
            damaged += [id for id in part if not is_readable(reader, [id])]
    problem = f"{len(damaged)} {'image is' if len(damaged) == 1 else 'images are'} damaged"
    return [Fault(TABLE, problem, REPAIR, tuple(damaged))] if damaged else []


def is_readable(reader: Reader, ids: list[str]) -> bool:
    try:
        for _ in reader.metadata(ids):
            pass
        for branch in range(len(reader.layout)):
            for _rows in reader.descriptors(branch, ids):
                pass
    except (CollectionError, ValueError, TypeError):
        return False
    return True


def _verify_metadata(folder: Path) -> Iterator[Fault]:
    for name in (metadata.FILE, metadata.COPY):
        try:
            metadata.read_table(folder, name)
        except FileNotFoundError:
            if metadata.read(folder).format > 1:  # format 1 had no copy
                yield Fault(name, "it is missing", REPAIR)
        except CollectionError as error:
            yield Fault(name, error.actual, REPAIR)


def _verify_files(folder: Path) -> Iterator[Fault]:
    """Code books, heads and weights are named by their content."""
    if is_remote(folder) or not (folder / FILES).is_dir():
        return
    for path in sorted((folder / FILES).iterdir()):
        if fingerprint_file(path, DIGITS) != path.name.partition(".")[0]:
            yield Fault(f"{FILES}/{path.name}", "its content has changed", BACKUP)


def _verify_calibration(folder: Path) -> Iterator[Fault]:
    path = folder / CALIBRATION
    if not is_remote(folder) and path.is_file():
        try:
            calibrations.load(path)
        except (InputError, OSError) as error:
            yield Fault(CALIBRATION, _tell(error), "remove it, or run `resight calibrate` again")


def _verify_indexes(folder: Path, deep: bool) -> Iterator[Fault]:
    if not (folder / INDEXES).is_dir():
        return
    for path in sorted((folder / INDEXES).iterdir()):
        if path.name.startswith("."):
            continue
        try:
            damage = find_damaged_file(path, load_contents(path), deep)
        except (ValueError, OSError) as error:
            damage = _tell(error)
        if damage:
            yield Fault(f"{INDEXES}/{path.name}", damage, REBUILT)


def _verify_service(folder: Path, deep: bool) -> Iterator[Fault]:
    """The files of `resight serve`: its journal, and uploads, which are named by their SHA-256."""
    path = folder / JOBS
    if path.is_file():
        try:
            with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as journal:
                check = "integrity_check" if deep else "quick_check"
                answer = [row[0] for row in journal.execute(f"PRAGMA {check}(3)")]
                if deep and answer == ["ok"]:
                    yield from _verify_items(journal)
        except sqlite3.Error as error:
            answer = [str(error)]
        if answer != ["ok"]:
            yield Fault(JOBS, "; ".join(answer), f"{BACKUP}, or move it away: stored images do not depend on it")
    if deep and (folder / UPLOADS).is_dir():
        for file in sorted((folder / UPLOADS).rglob("*")):
            name = file.name.partition(".")[0]
            if file.is_file() and len(name) == FULL and fingerprint_file(file) != name:
                yield Fault(file.relative_to(folder).as_posix(), "its content has changed", BACKUP)


def _verify_items(journal: sqlite3.Connection) -> Iterator[Fault]:
    """The images that the service has accepted; a journal of an earlier version has no checksums."""
    journal.row_factory = sqlite3.Row
    columns = {row["name"] for row in journal.execute("PRAGMA table_info(items)")}
    if columns >= {*ITEM, "checksum"}:
        rows = journal.execute("SELECT * FROM items WHERE checksum IS NOT NULL")
        damaged = tuple(str(row["id"]) for row in rows if sum_row(row, ITEM) != row["checksum"])
        if damaged:
            yield Fault(JOBS, f"{len(damaged)} accepted uploads have another entry than was written", SEND, damaged)


def _tell(error: Exception) -> str:
    text = f"{error.problem}: {error.actual}" if isinstance(error, ResightError) else str(error)
    return text.partition("\n")[0] or type(error).__name__


def describe(found: Verification, folder: Path) -> str:
    """The verdict in one line."""
    name = to_url(folder)
    if found.faults:
        return f"{name}: {len(found.faults)} {'fault' if len(found.faults) == 1 else 'faults'}"
    unchecked = f"; {found.unchecked} files have no checksum: run `resight upgrade`" if found.unchecked else ""
    return f"{name}: {found.images:,} images, no fault found{unchecked}"
