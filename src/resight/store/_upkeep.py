"""Upkeep of a local table: find damage, repair it, add the checksums of format 2, list the files of a backup.

Repairing drops what is damaged and keeps what is whole, in one commit. Rows of a damaged file whose checksums hold are
saved (resight.store._salvage). If the file that lists deleted rows is damaged, deleted images may come back. Callers of
`repair` and `upgrade` hold the writer lock.
"""

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import lance

from resight.store._arrow import add_checks, has_checks, make_schema, read_layout
from resight.store._commit import Committer
from resight.store._errors import reading, report_unreadable, writing
from resight.store._files import FileChecks, list_fragment_files, list_state_files
from resight.store._history import FOLDER as COMMITS
from resight.store._history import TABLE, History
from resight.store._recovery import find_newest, step_back
from resight.store._salvage import salvage


@dataclass(frozen=True)
class FileFault:
    """What is wrong with a file of the table, or of its history."""

    path: str  # below the collection
    problem: str
    ids: tuple[str, ...] = ()  # images concerned, if it is known which


def find_faults(folder: Path, deep: bool) -> tuple[list[FileFault], int]:
    """Faults of the table's files and records, and the number of files without a checksum; `deep` reads all bytes."""
    history = History(folder)
    with reading():
        newest = find_newest(folder, history)
    faults = [FileFault(f"{COMMITS}/{name}", "it cannot be read") for name in sorted(history.damaged)]
    if newest is None:
        return [*faults, FileFault(TABLE, "it is missing")], 0
    table, version = newest
    last = history.newest
    if last is not None and last.version > version:
        lost = f"it went back from state {last.version} with {last.images:,} images to state {version}"
        faults.append(FileFault(TABLE, lost, last.ids))
    damaged, unchecked = _find_damaged(folder, table, history, deep)
    return faults + [FileFault(f"{TABLE}/{path}", problem) for path, problem in damaged.items()], unchecked


def _find_damaged(folder: Path, table: Any, history: History, deep: bool) -> tuple[dict[str, str], int]:
    expected, paths = history.files, list_state_files(table)
    damaged = FileChecks(folder).find_damaged([path for path in paths if path in expected], expected, deep)
    others = [path for path in paths if path not in expected]
    missing = {path: "it is missing" for path in others if not (folder / TABLE / path).is_file()}
    return damaged | missing, len(others) - len(missing)


def list_files(folder: Path) -> tuple[list[str], bytes, int]:
    """The files of the newest state, below the collection; its record by itself, with all checksums; its version."""
    history = History(folder)
    with reading():
        newest = find_newest(folder, history)
    if newest is None:
        raise report_unreadable(FileNotFoundError(f"{folder / TABLE} is missing"))
    table, version = newest
    paths = list_state_files(table)
    return [f"{TABLE}/{path}" for path in paths], history.describe(version, table.count_rows(), paths), version


@dataclass(frozen=True)
class TableRepair:
    """What was done to a table."""

    files: tuple[str, ...] = ()  # damaged ones, which are no longer part of the collection
    records: tuple[str, ...] = ()  # damaged ones, whose checksums are lost; present files have new ones
    saved: int = 0  # images in them that were whole


def repair(folder: Path) -> TableRepair:
    history = History(folder)
    with reading():
        newest = find_newest(folder, history)
    if newest is None:
        return TableRepair()
    table, version = newest
    with writing():
        step_back(folder, version, table.count_rows(), history)
        damaged, _ = _find_damaged(folder, table, history, deep=True)
        broken = {
            fragment.fragment_id: [path for path in list_fragment_files([fragment.metadata]) if path in damaged]
            for fragment in table.get_fragments()
        }
        broken = {number: paths for number, paths in broken.items() if paths}
        saved = _replace(folder, table, list(broken), history) if broken else 0
        records = tuple(f"{COMMITS}/{name}" for name in sorted(history.damaged))
        for record in records:
            (folder / record).unlink(missing_ok=True)
        if records and not broken:
            Committer(folder, history).record(table)
    return TableRepair(tuple(f"{TABLE}/{path}" for paths in broken.values() for path in paths), records, saved)


def _replace(folder: Path, table: Any, fragments: list[int], history: History) -> int:
    """Replace damaged fragments by their whole rows; returns how many."""
    kept = set(fragments)
    others = {
        id
        for fragment in table.get_fragments()
        if fragment.fragment_id not in kept
        for id in fragment.to_table(columns=["id"])["id"].to_pylist()
    }
    new: list[Any] = []
    saved = 0
    with tempfile.TemporaryDirectory(prefix=".salvage-", dir=folder) as scratch:
        for number in fragments:
            rows = salvage(folder / TABLE, table.version, number, Path(scratch) / f"{number}.arrow")
            if rows is None:
                continue
            ids = rows["id"].to_pylist()
            chosen = [row for row, id in enumerate(ids) if id not in others]
            others.update(ids)
            if chosen:
                new += lance.fragment.write_fragments(
                    rows.take(chosen), str(folder / TABLE), schema=table.schema, mode="append"
                )
                saved += len(chosen)
        Committer(folder, history).replace(table, fragments, new)
    return saved


def upgrade(folder: Path) -> bool:
    """Give a table of format 1 its checksums: of every row, and of every file. False if it had them."""
    history = History(folder)
    with reading():
        newest = find_newest(folder, history)
    if newest is None:
        return False
    table, version = newest
    with writing():
        step_back(folder, version, table.count_rows(), history)
        if has_checks(table.schema):
            if history.find(version) is not None:
                return False
            Committer(folder, history).record(table)
        elif table.count_rows() == 0:
            Committer(folder, history).create(make_schema(read_layout(table.schema)).empty_table(), "overwrite")
        else:
            Committer(folder, history).add_columns(table, add_checks(read_layout(table.schema)))
    return True
