"""The files of one state of a table: their names, syncing them, and checking them against the history.

Reading a damaged Lance file may give wrong rows, panic or allocate gigabytes, so a snapshot checks the files of its
state before Lance reads them: of a small collection every byte, of a large one the sizes, and the end of each file,
which holds its tables. Rows have checksums of their own (resight.store._arrow). A process checks a file once.
"""

import json
import os
import struct
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from resight.errors import CollectionError
from resight.files.checksum import BLOCK, FileSum, find_damage
from resight.files.durable import sync_files, sync_folder
from resight.store._history import TABLE, name_manifest

CHECKED_BYTES = 1 << 28  # of the files that are new to a process: read completely up to this size
FOOTER = struct.Struct("<QQQIIHH4s")  # starts of column metadata, their table, the table of global buffers; counts; …
SUFFIXES = {"array": "arrow", "bitmap": "bin"}  # of deletion files
DATA, DELETIONS = "data", "_deletions"


def list_fragment_files(fragments: Iterable[Any]) -> Iterator[str]:
    """Paths below the table of the data and deletion files of Lance's FragmentMetadata."""
    for fragment in fragments:
        yield from (f"{DATA}/{file.path}" for file in fragment.files)
        if fragment.deletion_file is not None:
            table = fragment.to_json()
            deleted = (json.loads(table) if isinstance(table, str) else table)["deletion_file"]
            suffix = SUFFIXES[deleted["file_type"]]
            yield f"{DELETIONS}/{fragment.id}-{deleted['read_version']}-{deleted['id']}.{suffix}"


def list_state_files(table: Any) -> list[str]:
    """Paths below the table of all files that a Lance dataset reads, its manifest first."""
    fragments = (fragment.metadata for fragment in table.get_fragments())
    return [name_manifest(table.version), *list_fragment_files(fragments)]


def sync_state(folder: Path, version: int) -> None:
    """Sync what a commit adds besides its data: manifest and transaction."""
    table = folder / TABLE
    transactions = (table / "_transactions").glob(f"{version - 1}-*.txn")
    sync_files([*transactions, table / name_manifest(version)])
    sync_folder(table)


class FileChecks:
    """Remembers which files of a table this process has checked."""

    def __init__(self, folder: Path) -> None:
        self._table = folder / TABLE
        self._checked: set[tuple[str, int, int]] = set()  # path, size, time of change

    def check(self, paths: Iterable[str], expected: dict[str, FileSum]) -> None:
        """CollectionError that names the files which have changed since they were written.

        Files without a record, of a collection of format 1, are not checked.
        """
        new = {path: mark for path in paths if path in expected and (mark := self._mark(path)) not in self._checked}
        damaged = self.find_damaged(new, expected)
        if damaged:
            raise report_damage(self._table.parent, damaged)
        self._checked.update(new.values())

    def find_damaged(self, paths: Iterable[str], expected: dict[str, FileSum], deep: bool = False) -> dict[str, str]:
        """The damaged ones of these files, and what is wrong; `deep` reads large ones completely, too."""
        chosen = list(paths)
        whole = deep or sum(expected[path].bytes for path in chosen) <= CHECKED_BYTES
        return {path: damage for path in chosen if (damage := self._find_damage(path, expected[path], whole))}

    def _mark(self, path: str) -> tuple[str, int, int]:
        try:
            status = (self._table / path).stat()
        except FileNotFoundError:
            return path, -1, 0
        return path, status.st_size, status.st_mtime_ns

    def _find_damage(self, path: str, expected: FileSum, whole: bool) -> str:
        file = self._table / path
        if whole or not path.startswith(f"{DATA}/") or expected.bytes < BLOCK:
            return find_damage(file, expected)
        # The last block first: it holds the footer, which says where the tables begin.
        return find_damage(file, expected, expected.bytes - FOOTER.size) or find_damage(
            file, expected, min(_find_tables(file), expected.bytes - FOOTER.size)
        )


def report_damage(folder: Path, damaged: dict[str, str]) -> CollectionError:
    first, problem = next(iter(damaged.items()))
    more = f", and {len(damaged) - 1} more" if len(damaged) > 1 else ""
    return CollectionError(
        f"{folder} is damaged",
        expected="files as they were written",
        actual=f"{TABLE}/{first}: {problem}{more}",
        fix="`resight verify` lists the damage, `resight repair` saves what is whole; or restore a backup",
    )


def _find_tables(path: Path) -> int:
    """The first byte of the tables at the end of a Lance file."""
    with path.open("rb") as file:
        file.seek(-FOOTER.size, os.SEEK_END)
        return int(FOOTER.unpack(file.read(FOOTER.size))[0])
