"""What the service promised to add to one collection: the clients' side of COLLECTION/jobs.sqlite.

In go promises, out come jobs. A job is `receiving` while its files are being written (so that nobody removes them),
`waiting` once it is promised, `running` from its first turn on, and then over. Of two promises for one id the later
one counts, whichever has its turn first. queue.py is the other side.
"""

import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from sqlite3 import Connection, Row
from typing import Protocol

from resight.apps.service.jobs.job import Job, Kind, Promise
from resight.apps.service.jobs.journal_file import JournalFile
from resight.apps.service.jobs.rows import IN_OPEN_JOB, OPEN, find_promised, finish_jobs, read_job, write_promise
from resight.apps.service.refusals import Refusal
from resight.types import Skipped

UNFINISHED = 600.0  # seconds after which a job whose files never all arrived is forgotten
REPLACED = "a later upload of the same id replaced it before it was added"
DELETED = "it was deleted before it was added"
RETRY = 10.0  # seconds


class FindPromised(Protocol):
    def __call__(self, id: str, *, accepted: bool = False) -> Promise | None:
        """See `rows.find_promised`."""


# From a way to find what is promised of an id: what to promise, and what was passed over.
Prepare = Callable[[FindPromised], tuple[Sequence[Promise], Sequence[Skipped]]]


@dataclass(frozen=True)
class Limits:
    """What may wait at once, and what is remembered of what is over."""

    jobs: int = 200
    items: int = 5_000
    bytes: int = 4 * 2**30
    remembered: int = 1_000
    days: float = 7.0


class Journal:
    def __init__(self, file: JournalFile, collection: str, limits: Limits | None = None) -> None:
        self.collection = collection
        self._file = file
        self._limits = limits or Limits()

    def receive(self, kind: Kind, prepare: Prepare) -> str:
        """Note what is about to be promised, where there is room for it; gives the id of the job.

        `prepare` makes the promises while nobody else can make any, so that no two choose the same id.
        """
        job = secrets.token_hex(8)
        with self._file.transaction() as table:
            promises, skipped = prepare(partial(find_promised, table))
            self._check_room(table, promises)
            passed_over = [Promise("", one.path, "", 0) for one in skipped]
            reasons = [""] * len(promises) + [one.reason for one in skipped]
            rows = [
                {**write_promise(promise), "job": job, "number": number, "reason": reason}
                for number, (promise, reason) in enumerate(zip([*promises, *passed_over], reasons, strict=True))
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
        return job

    def accept(self, job: str) -> Job:
        """The files are there: from now on it is a promise."""
        with self._file.transaction() as table:
            table.execute(
                "UPDATE items SET state = 'skipped', reason = :reason WHERE state = 'waiting'"
                f" AND {IN_OPEN_JOB} AND id IN (SELECT id FROM items WHERE job = :job)",
                {"reason": REPLACED, "job": job},
            )
            table.execute("UPDATE jobs SET state = 'waiting' WHERE id = ? AND state = 'receiving'", (job,))
            finish_jobs(table)
            return _read(table, job, self.collection)

    def abandon(self, job: str) -> None:
        """Forget a job that was never accepted."""
        with self._file.transaction() as table:
            _forget(table, "state = 'receiving' AND id = ?", (job,))

    def cancel(self, job: str) -> Job | None:
        """Leave out what is not stored yet; None when there is no such job."""
        with self._file.transaction() as table:
            table.execute(
                f"UPDATE items SET state = 'cancelled' WHERE job = ? AND state = 'waiting' AND {IN_OPEN_JOB}", (job,)
            )
            table.execute(
                f"UPDATE jobs SET state = 'cancelled', error = NULL, finished = ? WHERE id = ? AND {OPEN}",
                (time.time(), job),
            )
        return self.find(job)

    def drop(self, ids: Sequence[str]) -> set[str]:
        """Leave out images that wait, since they are deleted; gives the ids of those that did."""
        with self._file.transaction() as table:
            waiting = {id for id in ids if _is_waiting(table, id)}
            table.executemany(
                f"UPDATE items SET state = 'skipped', reason = ? WHERE id = ? AND state = 'waiting' AND {IN_OPEN_JOB}",
                [(DELETED, id) for id in waiting],
            )
            finish_jobs(table)
        return waiting

    def find(self, job: str) -> Job | None:
        with self._file.reading() as table:
            known = table.execute("SELECT 1 FROM jobs WHERE id = ? AND state != 'receiving'", (job,)).fetchone()
            return _read(table, job, self.collection) if known else None

    def list_jobs(self, limit: int = 100) -> list[Job]:
        """The newest first."""
        with self._file.reading() as table:
            newest = "SELECT id FROM jobs WHERE state != 'receiving' ORDER BY number DESC LIMIT ?"
            return [_read(table, row["id"], self.collection) for row in table.execute(newest, (limit,)).fetchall()]

    @contextmanager
    def hold(self) -> Iterator[set[str]]:
        """The hashes of the uploads that jobs need; as long as this lasts, no job can come to need another."""
        with self._file.transaction() as table:
            rows = table.execute("SELECT DISTINCT sha256 FROM items WHERE state = 'waiting'").fetchall()
            yield {row["sha256"] for row in rows}

    def forget(self) -> None:
        """Remove jobs that were over long ago or are too many, and those whose files never all arrived."""
        now = time.time()
        newest = "SELECT id FROM jobs WHERE finished IS NOT NULL ORDER BY number DESC LIMIT ?"
        with self._file.transaction() as table:
            _forget(table, "state = 'receiving' AND created < ?", (now - UNFINISHED,))
            _forget(table, "finished < ?", (now - self._limits.days * 86400,))
            _forget(table, f"finished IS NOT NULL AND id NOT IN ({newest})", (self._limits.remembered,))

    def _check_room(self, table: Connection, promises: Sequence[Promise]) -> None:
        limits = self._limits
        jobs = table.execute(f"SELECT count(*) FROM jobs WHERE {OPEN} OR state = 'receiving'").fetchone()[0]
        items, size = table.execute(
            "SELECT count(*), coalesce(sum(bytes), 0) FROM items WHERE state = 'waiting'"
        ).fetchone()
        after = (jobs + 1, items + len(promises), size + sum(promise.bytes for promise in promises))
        if any(wanted > most for wanted, most in zip(after, (limits.jobs, limits.items, limits.bytes), strict=True)):
            raise Refusal(
                429,
                "too much waits to be added already",
                expected=f"at most {limits.jobs:,} jobs with {limits.items:,} images of {limits.bytes:,} bytes in all",
                actual=f"{jobs:,} jobs with {items:,} images of {size:,} bytes wait",
                fix="wait until some of it is done, then send it again",
                retry_after=RETRY,
            )


def _read(table: Connection, job: str, collection: str) -> Job:
    (row,) = table.execute("SELECT * FROM jobs WHERE id = ?", (job,)).fetchall()
    counted = table.execute("SELECT state, count(*) FROM items WHERE job = ? GROUP BY state", (job,)).fetchall()
    skipped: list[Row] = table.execute(
        "SELECT name, reason FROM items WHERE job = ? AND state = 'skipped' ORDER BY number", (job,)
    ).fetchall()
    return read_job(row, dict(counted), skipped, collection)


def _is_waiting(table: Connection, id: str) -> bool:
    query = f"SELECT 1 FROM items WHERE id = ? AND state = 'waiting' AND {IN_OPEN_JOB}"
    return table.execute(query, (id,)).fetchone() is not None


def _forget(table: Connection, condition: str, values: tuple[object, ...]) -> None:
    table.execute(f"DELETE FROM items WHERE job IN (SELECT id FROM jobs WHERE {condition})", values)
    table.execute(f"DELETE FROM jobs WHERE {condition}", values)
