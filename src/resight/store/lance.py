"""A collection in one Lance table: one row per image, so one commit stores an image with all its descriptors.

In go Records, out come ImageRecords and Descriptors. A commit adds files and never changes one, so a process that is
killed leaves the state of the last commit. All reading goes through a snapshot of one version (`_snapshot`). The folder
may lie in an object store, which Lance reaches by itself (s3:// with the AWS_… variables).

Many processes on many machines may also write fragments at the same time: files that no version names yet, so that none
of them changes the table. Each describes its files in lines of JSON. One process commits the descriptions; the rows
neither pass through it nor are copied. A file whose description is never committed does no harm.
"""

import json
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import lance

from resight.errors import CollectionError, SpaceMismatch, StorageError
from resight.files import remote
from resight.files.remote import is_remote, to_url
from resight.store import FIELDS, KEEP, Field, Fragment, ImageRecord, Layout, Record
from resight.store._arrow import encode, make_schema, read_layout
from resight.store._snapshot import TABLE, Snapshot, locate_table, report_unreadable, split, summarise, take_snapshot
from resight.types import Descriptors

DELETED_AT_ONCE = 5000
COMPACTING = timedelta(minutes=10)  # longest compaction: a state may reach the age to go while it runs
FILES, FILE_BYTES = 64, 16 << 20  # files that a table may have, or bytes for each file of a large one
FULL = ("No space left", "os error 28", "quota exceeded", "os error 122")


@dataclass(frozen=True)
class Config:
    folder: Path  # folder of the collection, also s3://; resight sets it
    layout: tuple[Layout, ...] = ()  # type and width of each branch's vectors, for a new collection; resight sets it


def build(config: Config) -> "LanceStore":
    if not is_remote(config.folder):
        with _writing():
            if config.layout:
                config.folder.mkdir(parents=True, exist_ok=True)
        if not config.folder.is_dir():
            raise _missing(config.folder)
    return LanceStore(_open_table(config), config.folder)


class LanceStore:
    def __init__(self, table: Any, folder: Path) -> None:
        self._folder = folder
        self._table = table  # a Lance dataset; its methods move it to the version that they write
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
            self._snapshot = take_snapshot(self._folder, self.version, self._table.session())
        return self._snapshot

    def metadata(self, ids: Sequence[str] | None = None) -> Iterator[ImageRecord]:
        return self.snapshot().metadata(ids)

    def descriptors(
        self, branch: int, ids: Sequence[str] | None = None, *, fields: Sequence[Field] = FIELDS, batch: int = 256
    ) -> Iterator[Descriptors]:
        return self.snapshot().descriptors(branch, ids, fields=fields, batch=batch)

    def refresh(self) -> bool:
        before = self.version
        self._table.checkout_latest()
        if self.version == before:
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
                self._table.insert(rows)
            else:
                self._table.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(rows)
        known.update(ids)
        self._known = self.version, known

    def write_apart(self, records: Sequence[Record]) -> Fragment:
        rows = encode(records, self.layout, self._table.schema)
        with _writing():
            table = locate_table(self._folder)
            written = lance.fragment.write_fragments(rows, table, schema=rows.schema, mode="append")
        files = tuple(json.dumps(fragment.to_json()) for fragment in written)
        return Fragment(tuple(record.image.id for record in records), files)

    def commit(self, fragments: Sequence[Fragment]) -> None:
        known = self._catch_up()
        ids = [id for fragment in fragments for id in fragment.ids]
        _refuse_twice(ids, known)
        with self._changing():
            files = [file for fragment in fragments for file in fragment.files]
            for file in files:
                _check_sizes(json.loads(file), self._folder / TABLE / "data")
            operation = lance.LanceOperation.Append([lance.FragmentMetadata.from_json(file) for file in files])
            lance.LanceDataset.commit(locate_table(self._folder), operation, read_version=self.version)
            self._table.checkout_latest()
        known.update(ids)
        self._known = self.version, known

    def sweep(self, keep: timedelta = KEEP) -> None:
        self.refresh()
        with self._changing():
            self._clean_up(keep)

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
        # Every snapshot opens every file, and compacting rewrites all of them: a large table may have more.
        totals = self._table.get_version()["metadata"]
        return int(totals["total_fragments"]) > max(FILES, int(totals["total_files_size"]) // FILE_BYTES)

    def compact(self, keep: timedelta = KEEP) -> None:
        self.refresh()
        with self._changing():
            self._table.optimize.compact_files()
            self._clean_up(keep)

    def _clean_up(self, keep: timedelta) -> None:
        """Remove old states, and files that no state names: with the writer lock held, killed writes left them."""
        written = [version["timestamp"].astimezone() for version in self._table.versions()]
        age = find_age(written, datetime.now().astimezone(), keep)
        # Lance takes an age of zero for none given.
        self._table.cleanup_old_versions(max(age, timedelta(milliseconds=1)), delete_unverified=True)

    def _catch_up(self) -> set[str]:
        """The ids of the newest version; another process may have written since this store was opened."""
        self.refresh()
        if self._known is None or self._known[0] != self.version:
            self._known = self.version, set(self.snapshot().stamps)
        return self._known[1]

    @contextmanager
    def _changing(self) -> Iterator[None]:
        self._snapshot = self._known = None  # before, because a commit that fails or is interrupted may have happened
        with _writing():
            yield


def find_age(written: Sequence[datetime], now: datetime, keep: timedelta) -> timedelta:
    """The age from which a state may go, so that every state that was replaced within `keep` stays.

    Lance counts from when a state was written. The last state written before `keep` was replaced since, or is the
    present one: somebody may still read it.
    """
    before = [time for time in written if time <= now - keep]
    return now - max(before) + COMPACTING if keep and before else keep


def _refuse_twice(ids: Sequence[str], known: Set[str]) -> None:
    """A commit only appends, so it would store an image that is there already a second time."""
    seen: set[str] = set()
    for id in ids:
        if id in known or id in seen:
            raise CollectionError(
                f"the image {id!r} is stored already",
                expected="each image in one commit, and once",
                actual=f"{id!r}, again",
                fix="use the ordinary `write` for images that are there already: it replaces them",
            )
        seen.add(id)


def _check_sizes(fragment: dict[str, Any], folder: Path) -> None:
    """Lance opens a file only when it reads it: a missing one would make the whole table unreadable."""
    for file in fragment["files"]:
        path, expected = folder / file["path"], file["file_size_bytes"]
        actual = _measure(path)
        if actual != expected:
            raise StorageError(
                f"{remote.to_url(path)} is not what a node has written",
                expected=f"{expected:,} bytes",
                actual="no such file" if actual is None else f"{actual:,} bytes",
                fix="check that all nodes see the same folder and that its disk is healthy; then try again",
            )


def _measure(path: Path) -> int | None:
    """Bytes of a local or remote file; None where there is none."""
    if remote.is_remote(path):
        status = remote.stat(path)
        return None if status is None else status.size
    return path.stat().st_size if path.exists() else None


def _open_table(config: Config) -> Any:
    try:
        table = lance.dataset(locate_table(config.folder))
    except (ValueError, RuntimeError, OSError) as error:
        if "was not found" not in str(error):
            raise _explain_open(error, config.folder) from error
        if not config.layout:
            raise _missing(config.folder) from error
        with _writing():
            return lance.write_dataset(make_schema(config.layout).empty_table(), locate_table(config.folder))
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
            actual=summarise(error),
            fix=("free some space" if full else "check the disk and the permissions")
            + " and do it again; nothing that was reported as stored is lost",
        ) from error


def _missing(folder: Path) -> CollectionError:
    return CollectionError(
        f"there is no collection in {folder}",
        expected=f"a folder that holds {TABLE}",
        actual="a folder without it" if folder.is_dir() else "no such folder",
        fix="check the path, or index images into it first",
    )


def _explain_open(error: Exception, folder: Path) -> CollectionError | StorageError:
    """Damaged files, or an object store that refused a request or did not answer it."""
    if not (is_remote(folder) and "Error performing" in str(error)):
        return report_unreadable(error)
    return StorageError(
        f"{to_url(folder)} cannot be opened",
        expected="a bucket that is there, and credentials that it accepts",
        actual="there is no such bucket" if "NoSuchBucket" in str(error) else summarise(error)[:300],
        fix="check its name and the AWS_… variables (AWS_ALLOW_HTTP=true where the store has no TLS)",
    )
