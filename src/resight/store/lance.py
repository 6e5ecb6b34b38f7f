"""A collection in one LanceDB table `images`: one row an image, so one commit stores an image with all its descriptors.

In go Records, out come ImageRecords and Descriptors. A commit adds files and never changes one, so a process that is
killed leaves the state of the last commit.

Rows are fetched by position. The map of id → position is read once a table version (from the id column alone), which
makes thirty images of a thousand local features each a matter of milliseconds, and keeps ids out of query texts.
Scans go through the same door in bounded portions, because LanceDB's own scanner reads ahead by a gigabyte.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from itertools import chain
from pathlib import Path
from typing import Any

import lancedb
import numpy as np
from numpy.typing import NDArray

from resight.errors import CollectionError, SpaceMismatch, StorageError
from resight.store import FIELDS, KEEP, Field, ImageRecord, Layout, Record
from resight.store.rows.decode import decode_descriptors, decode_images
from resight.store.rows.encode import encode
from resight.store.rows.schema import IMAGE_COLUMNS, column, make_schema, read_layout
from resight.types import Descriptors

TABLE = "images"
IMAGES_AT_ONCE = 4096
DELETED_AT_ONCE = 5000
FULL = ("No space left", "os error 28", "quota exceeded", "os error 122")


@dataclass(frozen=True)
class Config:
    folder: Path
    layout: tuple[Layout, ...] = ()


def build(config: Config) -> "LanceStore":
    with _writing():
        if config.layout:
            config.folder.mkdir(parents=True, exist_ok=True)
    if not config.folder.is_dir():  # LanceDB would make it, and a mistyped path would leave an empty folder behind
        raise _missing(config.folder)
    database = lancedb.connect(config.folder)
    return LanceStore(database, _open_table(database, config))


class LanceStore:
    def __init__(self, database: Any, table: Any) -> None:
        self._database = database
        self._table = table
        self._snapshot: Snapshot | None = None
        self._known: tuple[int, set[str]] | None = None  # version and its ids, so that a write need not read them
        self.layout = read_layout(table.schema)
        self._columns = frozenset(table.schema.names)

    def __len__(self) -> int:
        return len(self._current().rows)

    @property
    def version(self) -> int:
        return int(self._table.version)

    def metadata(self, ids: Sequence[str] | None = None) -> Iterator[ImageRecord]:
        snapshot = self._current()
        parts = _split(snapshot.locate(ids), IMAGES_AT_ONCE)
        return chain.from_iterable(decode_images(*snapshot.fetch(part, IMAGE_COLUMNS)) for part in parts)

    def descriptors(
        self, branch: int, ids: Sequence[str] | None = None, *, fields: Sequence[Field] = FIELDS, batch: int = 256
    ) -> Iterator[Descriptors]:
        if branch not in range(len(self.layout)):
            raise CollectionError(f"no branch {branch}", expected=f"0 to {len(self.layout) - 1}", actual=str(branch))
        snapshot = self._current()
        fields = [name for name in fields if column(branch, name) in self._columns]
        columns = [column(branch, name) for name in ("count", "vectors", *fields)]
        return (
            decode_descriptors(*snapshot.fetch(part, columns), tuple(part), branch, self.layout[branch], fields)
            for part in _split(snapshot.locate(ids), batch)
        )

    def refresh(self) -> bool:
        before = self._table.version
        self._table.checkout_latest()
        if self._table.version == before:
            return False
        self._snapshot = None
        return True

    def write(self, records: Sequence[Record]) -> None:
        if not records:
            return
        rows = encode(records, self.layout, self._table.schema)
        ids = {record.image.id for record in records}
        known = self._catch_up()
        with self._changing():
            if known.isdisjoint(ids):
                self._table.add(rows)
            else:
                self._table.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(rows)
        known.update(ids)
        self._known = self._table.version, known

    def remove(self, ids: Sequence[str]) -> int:
        known = self._catch_up()
        found = [id for id in dict.fromkeys(ids) if id in known]
        if not found:
            return 0
        rows = self._current().rows
        for part in _split(found, DELETED_AT_ONCE):
            with self._changing():
                self._table.delete(f"_rowid IN ({', '.join(str(rows[id]) for id in part)})")
        return len(found)

    def compact(self, keep: timedelta = KEEP) -> None:
        self.refresh()
        with self._changing():
            # The caller holds the writer lock: a file that no version names is what a killed write left behind.
            # At zero LanceDB warns that readers of older versions will fail, which `Writer.compact` says already.
            self._table.optimize(cleanup_older_than=max(keep, timedelta(milliseconds=1)), delete_unverified=True)

    def _current(self) -> "Snapshot":
        if self._snapshot is None:
            self._snapshot = _take_snapshot(self._database, self._table.version)
        return self._snapshot

    def _catch_up(self) -> set[str]:
        """The ids of the newest version; another process may have written since this store was opened."""
        self.refresh()
        if self._known is None or self._known[0] != self._table.version:
            self._known = self._table.version, set(self._current().rows)
        return self._known[1]

    @contextmanager
    def _changing(self) -> Iterator[None]:
        self._snapshot = self._known = None  # before, since a commit that fails or is interrupted may have happened
        with _writing():
            yield


@dataclass(frozen=True)
class Snapshot:
    """One version of the table, and where each image is in it."""

    table: Any
    rows: dict[str, int]  # id → position

    def locate(self, ids: Sequence[str] | None) -> Sequence[str]:
        """The ids to read, all of them there."""
        if ids is None:
            return list(self.rows)
        missing = [id for id in ids if id not in self.rows]
        if missing:
            raise CollectionError(
                f"{len(missing)} of the {len(ids)} images asked for are not in the collection",
                expected=f"ids of its {len(self.rows)} images",
                actual=", ".join(map(repr, missing[:3])) + (", …" if len(missing) > 3 else ""),
                fix="check the ids; refresh or open the collection again if another process may have removed them",
            )
        return ids

    def fetch(self, ids: Sequence[str], columns: Sequence[str]) -> tuple[Any, NDArray[np.intp]]:
        """An arrow table with the rows of `ids`, and the row of each id in it."""
        wanted = np.array([self.rows[id] for id in ids], np.uint64)
        try:
            found = self.table.take_row_ids(np.unique(wanted).tolist()).select(list(columns)).with_row_id().to_arrow()
        except (RuntimeError, OSError) as error:
            raise _unreadable(error) from error
        positions = found["_rowid"].to_numpy()
        order = np.argsort(positions)
        return found, order[np.searchsorted(positions, wanted, sorter=order)]


def _take_snapshot(database: Any, version: int) -> Snapshot:
    try:
        table = database.open_table(TABLE)
        table.checkout(version)
        found = table.search().select(["id"]).with_row_id(True).to_arrow().sort_by("_rowid")
    except (ValueError, RuntimeError, OSError) as error:
        raise _unreadable(error) from error
    return Snapshot(table, dict(zip(found["id"].to_pylist(), found["_rowid"].to_pylist(), strict=True)))


def _open_table(database: Any, config: Config) -> Any:
    try:
        table = database.open_table(TABLE)
    except ValueError as error:  # what LanceDB raises for a table that is not there
        if not config.layout:
            raise _missing(config.folder) from error
        with _writing():
            return database.create_table(TABLE, schema=make_schema(config.layout))
    except (RuntimeError, OSError) as error:
        raise _unreadable(error) from error
    layout = read_layout(table.schema)
    if config.layout not in ((), layout):
        raise SpaceMismatch(
            f"the collection in {config.folder} holds descriptors of another kind",
            expected=", ".join(map(str, layout)),
            actual=", ".join(map(str, config.layout)),
            fix="use the recipe that it was made with, or index into a new folder",
        )
    return table


@contextmanager
def _writing() -> Iterator[None]:
    try:
        yield
    except (RuntimeError, OSError) as error:
        full = any(sign in str(error) for sign in FULL)
        raise StorageError(
            "the disk is full" if full else "the collection cannot be written",
            expected="room for the new images" if full else "a folder that can be written to",
            actual=str(error).partition("\n")[0],
            fix=("free some space" if full else "check the disk and the permissions")
            + " and do it again; nothing that was reported as stored is lost",
        ) from error


def _missing(folder: Path) -> CollectionError:
    return CollectionError(
        f"there is no collection in {folder}",
        expected=f"a folder that holds {TABLE}.lance",
        actual="a folder without it" if folder.is_dir() else "no such folder",
        fix="check the path, or index images into it first",
    )


def _unreadable(error: Exception) -> CollectionError:
    return CollectionError(
        "the collection cannot be read",
        expected="the files of one of its states",
        actual=str(error).partition("\n")[0],
        fix="open it again: another process may have compacted or removed it; if that fails too, its files are damaged",
    )


def _split(ids: Sequence[str], size: int) -> Iterator[Sequence[str]]:
    return (ids[start : start + size] for start in range(0, len(ids), size))
