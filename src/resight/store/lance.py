"""A collection in one Lance table: one row per image, so one commit stores an image with all its descriptors.

In go Records, out come ImageRecords and Descriptors. A commit adds files and never changes one, so a process that is
killed leaves the state of the last commit, and so does a power cut (`_commit`, `_history`, `_recovery`). All reading
goes through a snapshot of one version (`_snapshot`). The folder may lie in an object store, which Lance reaches by
itself (s3:// with the AWS_… variables).

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

from resight.errors import CollectionError, ResightError, SpaceMismatch, StorageError
from resight.files import remote
from resight.files.remote import is_remote, to_url
from resight.store import FIELDS, KEEP, Field, Fragment, ImageRecord, Layout, Record
from resight.store._arrow import encode, make_schema, read_layout
from resight.store._commit import Committer
from resight.store._errors import reading, report_unreadable, summarise, writing
from resight.store._files import FileChecks
from resight.store._history import TABLE, History, list_versions, name_manifest
from resight.store._recovery import find_newest, step_back
from resight.store._snapshot import Snapshot, locate_table, take_snapshot
from resight.types import Descriptors

COMPACTING = timedelta(minutes=10)  # longest compaction: a state may reach the age to go while it runs
FILES, FILE_BYTES = 64, 16 << 20  # files that a table may have, or bytes for each file of a large one


@dataclass(frozen=True)
class Config:
    folder: Path  # folder of the collection, also s3://; resight sets it
    layout: tuple[Layout, ...] = ()  # type and width of each branch's vectors, for a new collection; resight sets it


def build(config: Config) -> "LanceStore":
    if not is_remote(config.folder):
        with writing():
            if config.layout:
                config.folder.mkdir(parents=True, exist_ok=True)
        if not config.folder.is_dir():
            raise _missing(config.folder)
    return LanceStore(config)


class LanceStore:
    def __init__(self, config: Config) -> None:
        self._folder = config.folder
        self._history = History(config.folder)
        self._committer = Committer(config.folder, self._history)
        self._checks = FileChecks(config.folder)
        self._snapshot: Snapshot | None = None
        self._known: tuple[int, set[str]] | None = None  # version and its ids, so that a write need not read them
        self._table = self._open(config.layout)  # a Lance dataset at the version that this store shows
        self._mark = self._stat(self.version)  # of that version
        self.layout = _check_layout(read_layout(self._table.schema), config)

    def __len__(self) -> int:
        return len(self.snapshot())

    @property
    def version(self) -> int:
        return int(self._table.version)

    @property
    def commit_id(self) -> str:
        return self.snapshot().commit_id

    def find_commit(self, version: int) -> str | None:
        return self.snapshot().find_commit(version)

    @property
    def stamps(self) -> Mapping[str, int]:
        return self.snapshot().stamps

    def snapshot(self) -> Snapshot:
        if self._snapshot is None:
            self._snapshot = take_snapshot(self._folder, self._table, self._history, self._checks)
        return self._snapshot

    def metadata(self, ids: Sequence[str] | None = None) -> Iterator[ImageRecord]:
        return self.snapshot().metadata(ids)

    def descriptors(
        self, branch: int, ids: Sequence[str] | None = None, *, fields: Sequence[Field] = FIELDS, batch: int = 256
    ) -> Iterator[Descriptors]:
        return self.snapshot().descriptors(branch, ids, fields=fields, batch=batch)

    def refresh(self) -> bool:
        before = self._mark
        if is_remote(self._folder):
            with reading():
                self._table.checkout_latest()
        elif before != self._stat(next(iter(list_versions(self._folder / TABLE)), 0)):
            self._table = self._open()
        self._mark = self._stat(self.version)
        if self._mark == before:
            return False
        self._snapshot = None
        return True

    def write(self, records: Sequence[Record]) -> None:
        if not records:
            return
        rows = encode(records, self.layout, self._table.schema)
        ids = [record.image.id for record in records]
        known = self._catch_up()
        with self._changing():
            if known.isdisjoint(ids):
                self._table = self._committer.append(self._write_files(rows), self.version, ids)
            else:
                self._table = self._committer.merge(self._table, rows, ids)
        known.update(ids)
        self._known = self.version, known

    def write_apart(self, records: Sequence[Record]) -> Fragment:
        rows = encode(records, self.layout, self._table.schema)
        with writing():
            files = tuple(json.dumps(fragment.to_json()) for fragment in self._write_files(rows))
        return Fragment(tuple(record.image.id for record in records), files)

    def commit(self, fragments: Sequence[Fragment]) -> None:
        known = self._catch_up()
        ids = [id for fragment in fragments for id in fragment.ids]
        _refuse_twice(ids, known)
        with self._changing():
            files = [file for fragment in fragments for file in fragment.files]
            for file in files:
                _check_sizes(json.loads(file), self._folder / TABLE / "data")
            written = [lance.FragmentMetadata.from_json(file) for file in files]
            self._table = self._committer.append(written, self.version, ids)
        known.update(ids)
        self._known = self.version, known

    def sweep(self, keep: timedelta = KEEP) -> None:
        self._catch_up()
        with self._changing():
            self._clean_up(keep)

    def remove(self, ids: Sequence[str]) -> int:
        known = self._catch_up()
        found = [id for id in dict.fromkeys(ids) if id in known]
        if found:
            rows = self.snapshot().stamps
            with self._changing():
                self._table = self._committer.delete(self._table, [rows[id] for id in found])
        return len(found)

    @property
    def is_scattered(self) -> bool:
        # Every snapshot opens every file, and compacting rewrites all of them: a large table may have more.
        totals = self._table.get_version()["metadata"]
        return int(totals["total_fragments"]) > max(FILES, int(totals["total_files_size"]) // FILE_BYTES)

    def compact(self, keep: timedelta = KEEP) -> None:
        self._catch_up()
        with self._changing():
            self._table = self._committer.compact(self._table)
            self._clean_up(keep)

    def _clean_up(self, keep: timedelta) -> None:
        """Remove old states, and files that no state names: with the writer lock held, killed writes left them."""
        written = [version["timestamp"].astimezone() for version in self._table.versions()]
        age = find_age(written, datetime.now().astimezone(), keep)
        # Lance takes an age of zero for none given.
        self._table.cleanup_old_versions(max(age, timedelta(milliseconds=1)), delete_unverified=True)
        self._history.merge()

    def _write_files(self, rows: Any) -> list[Any]:
        """Rows in files of the table's folder that no version names yet."""
        table = locate_table(self._folder)
        return list(lance.fragment.write_fragments(rows, table, schema=rows.schema, mode="append"))

    def _catch_up(self) -> set[str]:
        """The ids of the newest version; another process may have written since this store was opened.

        What a power cut has torn is moved away first. Callers hold the writer lock.
        """
        self.refresh()
        if not is_remote(self._folder):
            with writing():
                step_back(self._folder, self.version, self._table.count_rows(), self._history)
        if self._known is None or self._known[0] != self.version:
            self._known = self.version, set(self.snapshot().stamps)
        return self._known[1]

    @contextmanager
    def _changing(self) -> Iterator[None]:
        self._snapshot = self._known = None  # before, because a commit that fails or is interrupted may have happened
        with writing():
            yield
        self._mark = self._stat(self.version)

    def _open(self, layout: Sequence[Layout] = ()) -> Any:
        """The newest version; with a `layout`, a missing table is created."""
        if is_remote(self._folder):
            found = _open_remote(self._folder)
        else:
            with reading():
                newest = find_newest(self._folder, self._history)
            found = newest and newest[0]
        if found is not None:
            return found
        if not layout:
            raise _missing(self._folder)
        with writing():
            return self._committer.create(make_schema(layout).empty_table())

    def _stat(self, version: int) -> tuple[int, int]:
        """A version and the time of its manifest, which differs if the table went back and was written again."""
        if is_remote(self._folder):
            return version, 0
        path = self._folder / TABLE / name_manifest(version)
        return version, path.stat().st_mtime_ns if path.exists() else 0


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


def _open_remote(folder: Path) -> Any | None:
    try:
        return lance.dataset(locate_table(folder))
    except (ValueError, RuntimeError, OSError) as error:
        if "was not found" in str(error):
            return None
        raise _explain_open(error, folder) from error


def _check_layout(layout: tuple[Layout, ...], config: Config) -> tuple[Layout, ...]:
    if config.layout not in ((), layout):
        raise SpaceMismatch(
            f"the collection in {config.folder} holds descriptors of another kind",
            expected=", ".join(map(str, layout)),
            actual=", ".join(map(str, config.layout)),
            fix="use the recipe that it was made with, or index into a new folder",
        )
    return layout


def _missing(folder: Path) -> CollectionError:
    return CollectionError(
        f"there is no collection in {folder}",
        expected=f"a folder that holds {TABLE}",
        actual="a folder without it" if folder.is_dir() else "no such folder",
        fix="check the path, or index images into it first",
    )


def _explain_open(error: Exception, folder: Path) -> ResightError:
    """Damaged files, or an object store that refused a request or did not answer it."""
    if not (is_remote(folder) and "Error performing" in str(error)):
        return report_unreadable(error)
    return StorageError(
        f"{to_url(folder)} cannot be opened",
        expected="a bucket that is there, and credentials that it accepts",
        actual="there is no such bucket" if "NoSuchBucket" in str(error) else summarise(error)[:300],
        fix="check its name and the AWS_… variables (AWS_ALLOW_HTTP=true where the store has no TLS)",
    )
