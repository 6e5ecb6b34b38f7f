"""The jobs of one collection, in COLLECTION/jobs.sqlite: the clients' side, pending images in, jobs out.

A job is `receiving` while its files are written (so that no process removes them), `waiting` once it is accepted,
`running` from its first batch on, and then over. Of two pending images with one id the later one counts, whichever is
added first. job_queue.py is the worker's side.
"""

import json
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from sqlite3 import Connection, Row
from typing import Any, Protocol

from resight.apps.service.error_responses import ApiError
from resight.apps.service.jobs.database import JobDatabase
from resight.apps.service.jobs.models import CollectionState, Job, Kind, PendingImage
from resight.apps.service.jobs.upload_ledger import (
    UploadLedger,
    add_checksums,
    discard,
    find_common_version,
    record_commit,
)
from resight.types import Skipped

OPEN = "state IN ('waiting', 'running')"
IN_OPEN_JOB = f"job IN (SELECT id FROM jobs WHERE {OPEN})"  # nosec B608  # constant text, values are bound
RECEIVING_TIMEOUT = 600.0  # seconds after which a job whose files never all arrived is forgotten
RETRY = 10.0  # seconds
REPLACED = "a later upload of the same id replaced it before it was added"
DELETED = "it was deleted before it was added"
REVERTED = "the collection went back to an earlier state; its lost images are added again"


class FindPending(Protocol):
    def __call__(self, id: str, *, accepted: bool = False) -> PendingImage | None:
        """See `find_pending`."""


# Given a way to find the pending image of an id: the images to accept, and the skipped files.
Prepare = Callable[[FindPending], tuple[Sequence[PendingImage], Sequence[Skipped]]]


@dataclass(frozen=True)
class QueueLimits:
    """How much may wait at once, and how many finished jobs are remembered."""

    jobs: int = 200
    items: int = 5_000
    bytes: int = 4 * 2**30
    remembered: int = 1_000
    days: float = 7.0


class JobStore:
    def __init__(self, database: JobDatabase, collection: str, limits: QueueLimits | None = None) -> None:
        self.collection = collection
        self._database = database
        self._limits = limits or QueueLimits()

    def receive(self, kind: Kind, prepare: Prepare) -> str:
        """Record a job before its files are written; returns its id, or raises a 429 where too much waits.

        `prepare` runs inside the transaction, so that no two jobs choose the same id.
        """
        job = secrets.token_hex(8)
        with self._database.transaction() as table:
            images, skipped = prepare(partial(find_pending, table))
            self._check_limits(table, images)
            rejected = [PendingImage("", one.path, "", 0) for one in skipped]
            reasons = [""] * len(images) + [one.reason for one in skipped]
            rows = [
                {**to_row(image), "job": job, "number": number, "reason": reason}
                for number, (image, reason) in enumerate(zip([*images, *rejected], reasons, strict=True))
            ]
            table.execute(
                "INSERT INTO jobs (id, kind, state, created) VALUES (?, ?, 'receiving', ?)", (job, kind, time.time())
            )
            table.executemany(
                "INSERT INTO items (job, number, id, name, sha256, bytes, attributes, box, path, state, reason)"
                " VALUES (:job, :number, :id, :name, :sha256, :bytes, :attributes, :box, :path,"
                " CASE :reason WHEN '' THEN 'waiting' ELSE 'skipped' END, :reason)",
                rows,
            )
            add_checksums(table, job)
        return job

    def accept(self, job: str) -> Job:
        """Accept a job whose files are stored: from now on the service will carry it out."""
        with self._database.transaction() as table:
            replaced = f"state = 'waiting' AND {IN_OPEN_JOB} AND id IN (SELECT id FROM items WHERE job = ?)"  # nosec B608  # constant text, values are bound
            discard(table, replaced, (job,))
            table.execute(f"UPDATE items SET state = 'skipped', reason = ? WHERE {replaced}", (REPLACED, job))  # nosec B608  # constant text, values are bound
            table.execute("UPDATE jobs SET state = 'waiting' WHERE id = ? AND state = 'receiving'", (job,))
            UploadLedger(table).reclaim(job)
            finish_jobs(table)
            return _read(table, job, self.collection)

    def abandon(self, job: str) -> None:
        """Remove a job that was never accepted."""
        with self._database.transaction() as table:
            _forget(table, "state = 'receiving' AND id = ?", (job,))

    def cancel(self, job: str) -> Job | None:
        """Skip the images that are not stored yet; None when there is no such job."""
        with self._database.transaction() as table:
            waiting = f"job = ? AND state = 'waiting' AND {IN_OPEN_JOB}"
            discard(table, waiting, (job,))
            table.execute(f"UPDATE items SET state = 'cancelled' WHERE {waiting}", (job,))  # nosec B608  # constant text, values are bound
            table.execute(
                f"UPDATE jobs SET state = 'cancelled', error = NULL, finished = ? WHERE id = ? AND {OPEN}",  # nosec B608  # constant text, values are bound
                (time.time(), job),
            )
        return self.find(job)

    def drop(self, ids: Sequence[str], deleted: Sequence[str] = (), state: CollectionState | None = None) -> set[str]:
        """Skip waiting images, since they are deleted; returns their ids.

        `deleted` are the hashes of the stored images that were deleted with them: their uploads are no longer needed.
        `state` of the collection is without them.
        """
        with self._database.transaction() as table:
            waiting = {id for id in ids if _is_waiting(table, id)}
            for id in waiting:
                dropped = f"id = ? AND state = 'waiting' AND {IN_OPEN_JOB}"
                discard(table, dropped, (id,))
                table.execute(f"UPDATE items SET state = 'skipped', reason = ? WHERE {dropped}", (DELETED, id))  # nosec B608  # constant text, values are bound
            table.executemany(
                "UPDATE items SET version = NULL WHERE id = ? AND version IS NOT NULL", [(id,) for id in ids]
            )
            table.executemany("INSERT OR REPLACE INTO uploads VALUES (?, NULL)", [(sha256,) for sha256 in deleted])
            if state is not None:
                record_commit(table, state)
            finish_jobs(table)
        return waiting

    def read_settled(self) -> int:
        """The version of the collection that holds every change that a client was told of; 0 where there is none."""
        with self._database.reading() as table:
            return int(table.execute("SELECT coalesce(max(version), 0) FROM commits").fetchone()[0])

    def check(self) -> None:
        """Raises a StorageError where the database cannot be used."""
        with self._database.reading():
            pass

    def requeue_lost(self, state: CollectionState) -> int:
        """Queue images again that were stored in a version that is not in the history of this state; returns how many.

        The collection has gone back: it was restored from a backup, or lost its newest state.
        """
        lost = f"version > ? AND id NOT IN (SELECT id FROM items WHERE state = 'waiting' AND {IN_OPEN_JOB})"  # nosec B608  # constant text, values are bound
        with self._database.transaction() as table:
            version = find_common_version(table, state)
            jobs = [
                (REVERTED, *row)
                for row in table.execute(f"SELECT DISTINCT job FROM items WHERE {lost}", (version,))  # nosec B608  # constant text, values are bound
            ]
            count = table.execute(
                f"UPDATE items SET state = 'waiting', reason = '', attempts = 0, version = NULL WHERE {lost}",  # nosec B608  # constant text, values are bound
                (version,),
            ).rowcount
            table.execute("UPDATE items SET version = NULL WHERE version > ?", (version,))
            table.execute("DELETE FROM uploads WHERE version > ?", (version,))  # without a job: to the quarantine
            table.execute("DELETE FROM commits WHERE version > ?", (version,))
            table.executemany("UPDATE jobs SET state = 'waiting', finished = NULL, error = ? WHERE id = ?", jobs)
        return count

    def find(self, job: str) -> Job | None:
        with self._database.reading() as table:
            known = table.execute("SELECT 1 FROM jobs WHERE id = ? AND state != 'receiving'", (job,)).fetchone()
            return _read(table, job, self.collection) if known else None

    def list_jobs(self, limit: int = 100) -> list[Job]:
        """The newest first."""
        with self._database.reading() as table:
            newest = "SELECT id FROM jobs WHERE state != 'receiving' ORDER BY number DESC LIMIT ?"
            return [_read(table, row["id"], self.collection) for row in table.execute(newest, (limit,)).fetchall()]

    @contextmanager
    def hold(self) -> Iterator[UploadLedger]:
        """The ledger of uploads; inside the block, no job can add another upload."""
        with self._database.transaction() as table:
            yield UploadLedger(table)

    def forget(self) -> None:
        """Remove jobs that ended long ago or are too many, and those whose files never all arrived."""
        now = time.time()
        newest = "SELECT id FROM jobs WHERE finished IS NOT NULL ORDER BY number DESC LIMIT ?"
        over = "finished IS NOT NULL AND id NOT IN (SELECT job FROM items WHERE state = 'quarantined')"
        with self._database.transaction() as table:
            _forget(table, "state = 'receiving' AND created < ?", (now - RECEIVING_TIMEOUT,))
            _forget(table, f"{over} AND finished < ?", (now - self._limits.days * 86400,))
            _forget(table, f"{over} AND id NOT IN ({newest})", (self._limits.remembered,))

    def _check_limits(self, table: Connection, images: Sequence[PendingImage]) -> None:
        limits = self._limits
        jobs = table.execute(f"SELECT count(*) FROM jobs WHERE {OPEN} OR state = 'receiving'").fetchone()[0]  # nosec B608  # constant text, values are bound
        items, size = table.execute(
            "SELECT count(*), coalesce(sum(bytes), 0) FROM items WHERE state = 'waiting'"
        ).fetchone()
        after = (jobs + 1, items + len(images), size + sum(image.bytes for image in images))
        if any(wanted > most for wanted, most in zip(after, (limits.jobs, limits.items, limits.bytes), strict=True)):
            raise ApiError(
                429,
                "the upload queue is full",
                expected=f"at most {limits.jobs:,} jobs with {limits.items:,} images and {limits.bytes:,} bytes",
                actual=f"{jobs:,} jobs with {items:,} images and {size:,} bytes are waiting",
                fix="wait until some jobs are done, then send it again",
                retry_after=RETRY,
            )


def to_row(image: PendingImage) -> dict[str, Any]:
    """Columns of `items`."""
    return {
        "id": image.id,
        "name": image.name,
        "sha256": image.sha256,
        "bytes": image.bytes,
        "attributes": json.dumps(dict(image.attributes)),
        "box": None if image.box is None else json.dumps(image.box),
        "path": None if image.path is None else str(image.path),
    }


def read_image(row: Row) -> PendingImage:
    box, path = row["box"], row["path"]
    return PendingImage(
        row["id"],
        row["name"],
        row["sha256"],
        row["bytes"],
        json.loads(row["attributes"]),
        None if box is None else tuple(json.loads(box)),
        None if path is None else Path(path),
    )


def read_job(row: Row, counts: dict[str, int], skipped: list[Row], collection: str) -> Job:
    """`counts`: items per state; `skipped`: the rows of skipped and quarantined items."""
    total = sum(counts.values())
    return Job(
        id=row["id"],
        kind=row["kind"],
        collection=collection,
        state=row["state"],
        done=total - counts.get("waiting", 0) - counts.get("cancelled", 0),
        total=total,
        added=counts.get("added", 0),
        updated=counts.get("updated", 0),
        quarantined=counts.get("quarantined", 0),
        skipped=tuple(Skipped(one["name"], one["reason"]) for one in skipped),
        error=row["error"],
        created=row["created"],
        finished=row["finished"],
    )


def find_pending(table: Connection, id: str, *, accepted: bool = False) -> PendingImage | None:
    """The pending image of an id, of any job or of `accepted` ones only."""
    among = f"AND {IN_OPEN_JOB}" if accepted else ""
    row = table.execute(
        f"SELECT * FROM items WHERE id = ? AND state = 'waiting' {among} ORDER BY rowid DESC LIMIT 1",  # nosec B608  # constant text, values are bound
        (id,),
    ).fetchone()
    return None if row is None else read_image(row)


def finish_jobs(table: Connection) -> None:
    """Mark jobs without waiting items as done."""
    table.execute(
        f"UPDATE jobs SET state = 'done', error = NULL, finished = ? WHERE {OPEN}"  # nosec B608  # constant text, values are bound
        " AND NOT EXISTS (SELECT 1 FROM items WHERE items.job = jobs.id AND items.state = 'waiting')",
        (time.time(),),
    )


def _read(table: Connection, job: str, collection: str) -> Job:
    (row,) = table.execute("SELECT * FROM jobs WHERE id = ?", (job,)).fetchall()
    counted = table.execute("SELECT state, count(*) FROM items WHERE job = ? GROUP BY state", (job,)).fetchall()
    skipped: list[Row] = table.execute(
        "SELECT name, reason FROM items WHERE job = ? AND state IN ('skipped', 'quarantined') ORDER BY number", (job,)
    ).fetchall()
    return read_job(row, dict(counted), skipped, collection)


def _is_waiting(table: Connection, id: str) -> bool:
    query = f"SELECT 1 FROM items WHERE id = ? AND state = 'waiting' AND {IN_OPEN_JOB}"  # nosec B608  # constant text, values are bound
    return table.execute(query, (id,)).fetchone() is not None


def _forget(table: Connection, condition: str, values: tuple[object, ...]) -> None:
    discard(table, f"state = 'waiting' AND job IN (SELECT id FROM jobs WHERE {condition})", values)  # nosec B608  # constant text, values are bound
    table.execute(f"DELETE FROM items WHERE job IN (SELECT id FROM jobs WHERE {condition})", values)  # nosec B608  # constant text, values are bound
    table.execute(f"DELETE FROM jobs WHERE {condition}", values)  # nosec B608  # constant text, values are bound
