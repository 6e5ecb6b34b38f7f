"""Repair a collection: drop what is damaged, keep what is whole, and say what is lost.

In: the folder of a collection. Out: a RepairReport. Lost images can be added again from their files; the report names
them as far as an index still knows their ids. What can be made again (indexes, the copy of collection.json) is.
"""

import shutil
from dataclasses import dataclass
from pathlib import Path

from resight.collection import metadata
from resight.collection.indexes import FOLDER as INDEXES
from resight.collection.location import write_file
from resight.collection.segments import find_damaged_file, load_contents
from resight.collection.upkeep.integrity import Verification, verify, verify_rows
from resight.errors import CollectionError
from resight.files.lock import writer_lock
from resight.files.remote import is_remote
from resight.store import _upkeep
from resight.store import build as build_store


@dataclass(frozen=True)
class RepairReport:
    """What `repair` has done.

    Attributes:
        done: Each step in a line.
        saved: Number of images that were whole in damaged files.
        lost: Ids of images that are no longer in the collection, as far as an index knew them.
        left: What is still wrong.
    """

    done: tuple[str, ...]
    saved: int
    lost: tuple[str, ...]
    left: Verification


def repair(folder: Path) -> RepairReport:
    """Repair a collection in a local folder."""
    if is_remote(folder):
        raise CollectionError(
            "a remote collection cannot be repaired in place",
            expected="a local folder",
            actual=str(folder),
            fix="copy it to this machine, repair it there, and copy it back",
        )
    with writer_lock(folder):
        done = _repair_metadata(folder)
        known, removed = _repair_indexes(folder)
        repaired = _upkeep.repair(folder)
        found = metadata.read(folder)
        store = build_store(found.recipe.store.name, folder=folder, **found.recipe.store.settings)
        damaged = [id for fault in verify_rows(store) for id in fault.images]
        if damaged:
            store.remove(damaged)
        lost = tuple(sorted((known | set(damaged)) - store.stamps.keys()))
    done += [f"{name}: removed; the next search builds it again" for name in removed]
    done += [f"{path}: taken out of the collection" for path in repaired.files]
    done += [f"{path}: written again" for path in repaired.records]
    done += [f"{id}: removed, its data was damaged" for id in damaged]
    return RepairReport(tuple(done), repaired.saved, lost, verify(folder, deep=True))


def _repair_metadata(folder: Path) -> list[str]:
    """Write `collection.json` and its copy again from the whole one of the two."""
    tables, damaged = [], []
    for name in (metadata.FILE, metadata.COPY):
        try:
            metadata.read_table(folder, name)
            tables.append((folder / name).read_bytes())
        except (CollectionError, FileNotFoundError):
            damaged.append(name)
    if not tables:
        metadata.read(folder)  # says what is wrong
    if metadata.read(folder).format == 1:  # had no copy
        return []
    for name in damaged:
        write_file(folder, name, tables[0])
    return [f"{name}: written again" for name in damaged]


def _repair_indexes(folder: Path) -> tuple[set[str], list[str]]:
    """Remove damaged indexes; returns the ids that all indexes knew, and the names of those removed."""
    known: set[str] = set()
    removed = []
    for path in sorted((folder / INDEXES).glob("*")) if (folder / INDEXES).is_dir() else []:
        try:
            contents = load_contents(path)
            known |= contents.stamps.keys()
            damage = find_damaged_file(path, contents, deep=True)
        except (ValueError, FileNotFoundError) as error:
            damage = str(error)
        if damage:
            shutil.rmtree(path, ignore_errors=True)
            removed.append(f"{INDEXES}/{path.name}")
    return known, removed
