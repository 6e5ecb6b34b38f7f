"""A collection in one LanceDB table `images`: one row an image, so one commit stores an image with all its descriptors.

In go Records, out come ImageRecords and Descriptors. A commit adds files and never changes one, so a process that is
killed leaves the state of the last commit. What is read is read from one version of the table: rows/snapshot.py. The
folder may lie in an object store, which LanceDB reaches by itself (s3:// with the AWS_… variables).
"""

from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import lancedb

from resight.errors import CollectionError, SpaceMismatch, StorageError
from resight.files.remote import is_remote, to_url
from resight.store import FIELDS, KEEP, Field, Fragment, ImageRecord, Layout, Record
from resight.store.rows.arrow import encode, make_schema, read_layout
from resight.store.rows.fragments import commit_fragments, remove_uncommitted, write_fragments
from resight.store.rows.snapshot import TABLE, Snapshot, split, take_snapshot, tell_unreadable
from resight.types import Descriptors

DELETED_AT_ONCE = 5000
COMPACTING = timedelta(minutes=10)  # it may take: what is old enough at its end need not have been at its beginning
FILES, FILE_BYTES = 64, 16 << 20  # files that a table may have, or bytes for each file of a large one
FULL = ("No space left", "os error 28", "quota exceeded", "os error 122")


@dataclass(frozen=True)
class Config:
    folder: Path
    layout: tuple[Layout, ...] = ()


def build(config: Config) -> "LanceStore":
    if is_remote(config.folder):
        database = _connect_remote(to_url(config.folder))
        return LanceStore(database, _open_table(database, config), config.folder)
    with _writing():
        if config.layout:
            config.folder.mkdir(parents=True, exist_ok=True)
    if not config.folder.is_dir():  # LanceDB would make it, and a mistyped path would leave an empty folder behind
        raise _missing(config.folder)
    database = lancedb.connect(config.folder)
    return LanceStore(database, _open_table(database, config), config.folder)


class LanceStore:
    def __init__(self, database: Any, table: Any, folder: Path) -> None:
        self._folder = folder
        self._database = database
        self._table = table
        self._snapshot: Snapshot | None = None
        self._known: tuple[int, set[str]] | None = None  # version and its ids, so that a write need not read them
        self.layout = read_layout(table.schema)

    def __len__(self) -> int:
        return len(self.snapshot())

    @property
    def version(self) -> int:
        return int(self._table.version)

    @property
    def stamps(self) -> Mapping[str, int]:
        return self.snapshot().stamps

    def snapshot(self) -> Snapshot:
        if self._snapshot is None:
            self._snapshot = take_snapshot(self._database, self._table.version)
        return self._snapshot

    def metadata(self, ids: Sequence[str] | None = None) -> Iterator[ImageRecord]:
        return self.snapshot().metadata(ids)

    def descriptors(
        self, branch: int, ids: Sequence[str] | None = None, *, fields: Sequence[Field] = FIELDS, batch: int = 256
    ) -> Iterator[Descriptors]:
        return self.snapshot().descriptors(branch, ids, fields=fields, batch=batch)

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

    def write_apart(self, records: Sequence[Record]) -> Fragment:
        rows = encode(records, self.layout, self._table.schema)
        with _writing():
            return Fragment(tuple(record.image.id for record in records), write_fragments(rows, self._folder))

    def commit(self, fragments: Sequence[Fragment]) -> None:
        known = self._catch_up()
        ids = [id for fragment in fragments for id in fragment.ids]
        _refuse_twice(ids, known)
        with self._changing():
            files = [file for fragment in fragments for file in fragment.files]
            commit_fragments(files, self._folder, self._table.version)
            self._table.checkout_latest()
        known.update(ids)
        self._known = self._table.version, known

    def sweep(self, keep: timedelta = KEEP) -> None:
        self.refresh()
        with self._changing():
            remove_uncommitted(self._folder, self._find_age(keep))

    def remove(self, ids: Sequence[str]) -> int:
        known = self._catch_up()
        found = [id for id in dict.fromkeys(ids) if id in known]
        if not found:
            return 0
        rows = self.snapshot().stamps
        for part in split(found, DELETED_AT_ONCE):
            with self._changing():
                self._table.delete(f"_rowid IN ({', '.join(str(rows[id]) for id in part)})")
        return len(found)

    @property
    def is_scattered(self) -> bool:
        # Every snapshot opens every file, and compacting writes all of them anew: a large table bears more.
        stats = self._table.stats()
        files, most = stats["fragment_stats"]["num_fragments"], max(FILES, stats["total_bytes"] // FILE_BYTES)
        return bool(files > most)

    def compact(self, keep: timedelta = KEEP) -> None:
        self.refresh()
        with self._changing():
            # The caller holds the writer lock: a file that no version names is what a killed write left behind.
            # At zero LanceDB warns that readers of older versions will fail, which `Writer.compact` says already.
            age = max(self._find_age(keep), timedelta(milliseconds=1))
            self._table.optimize(cleanup_older_than=age, delete_unverified=True)

    def _find_age(self, keep: timedelta) -> timedelta:
        written = [version["timestamp"].astimezone() for version in self._table.list_versions()]
        return find_age(written, datetime.now().astimezone(), keep)

    def _catch_up(self) -> set[str]:
        """The ids of the newest version; another process may have written since this store was opened."""
        self.refresh()
        if self._known is None or self._known[0] != self._table.version:
            self._known = self._table.version, set(self.snapshot().stamps)
        return self._known[1]

    @contextmanager
    def _changing(self) -> Iterator[None]:
        self._snapshot = self._known = None  # before, since a commit that fails or is interrupted may have happened
        with _writing():
            yield


def find_age(written: Sequence[datetime], now: datetime, keep: timedelta) -> timedelta:
    """How old a state has to be to go, where all that were replaced within `keep` stay.

    LanceDB counts from when a state was written. Of those that were written before `keep`, the last one was replaced
    since, or is the present one: somebody may read it.
    """
    before = [time for time in written if time <= now - keep]
    return now - max(before) + COMPACTING if keep and before else keep


def _refuse_twice(ids: Sequence[str], known: Set[str]) -> None:
    """Appended rows replace none, so that an image would be there twice."""
    seen: set[str] = set()
    for id in ids:
        if id in known or id in seen:
            raise CollectionError(
                f"the image {id!r} is stored already",
                expected="each image in one commit, and once",
                actual=f"{id!r}, again",
                fix="write images that are there already in the ordinary way, which replaces them",
            )
        seen.add(id)


def _connect_remote(url: str) -> Any:
    try:
        return lancedb.connect(url)
    except (ValueError, RuntimeError, OSError) as error:
        raise StorageError(
            f"{url} cannot be opened",
            expected="a bucket that is there, and credentials that it accepts",
            actual="there is no such bucket" if "NoSuchBucket" in str(error) else str(error).partition("\n")[0][:300],
            fix="check its name and the AWS_… variables (AWS_ALLOW_HTTP=true where the store has no TLS)",
        ) from error


def _open_table(database: Any, config: Config) -> Any:
    try:
        table = database.open_table(TABLE)
    except ValueError as error:  # what LanceDB raises for a table that is not there
        if not config.layout:
            raise _missing(config.folder) from error
        with _writing():
            return database.create_table(TABLE, schema=make_schema(config.layout))
    except (RuntimeError, OSError) as error:
        raise tell_unreadable(error) from error
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
