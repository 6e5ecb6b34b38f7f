"""Rows of the journal ↔ promises, items and jobs; and what both sides of the journal ask of its tables.

What the service promised to add to one collection: the clients' side of COLLECTION/jobs.sqlite.

In go promises, out come jobs. A job is `receiving` while its files are being written (so that nobody removes them),
`waiting` once it is promised, `running` from its first turn on, and then over. Of two promises for one id the later
one counts, whichever has its turn first. queue.py is the other side.

What waits to be added to one collection: the runner's side of COLLECTION/jobs.sqlite.

Out come items, in go outcomes. Whoever calls `claim` has the turn (turns.py) and keeps it until `settle` or `release`,
so a claim needs no owner and no expiry: what a process claimed that died is simply claimed again.
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

from resight.apps.service.error_responses import Refusal
from resight.apps.service.jobs.database import JournalFile
from resight.apps.service.jobs.models import Item, Job, Kind, Promise, Settled
from resight.types import Skipped

OPEN = "state IN ('waiting', 'running')"
IN_OPEN_JOB = f"job IN (SELECT id FROM jobs WHERE {OPEN})"


def write_promise(promise: Promise) -> dict[str, Any]:
    """Columns of `items`."""
    return {
        "id": promise.id,
        "name": promise.name,
        "sha256": promise.sha256,
        "bytes": promise.bytes,
        "attributes": json.dumps(dict(promise.attributes)),
        "box": None if promise.box is None else json.dumps(promise.box),
        "path": None if promise.path is None else str(promise.path),
    }


def read_promise(row: Row) -> Promise:
    box, path = row["box"], row["path"]
    return Promise(
        row["id"],
        row["name"],
        row["sha256"],
        row["bytes"],
        json.loads(row["attributes"]),
        None if box is None else tuple(json.loads(box)),
        None if path is None else Path(path),
    )


def read_item(row: Row) -> Item:
    return Item(row["job"], row["number"], row["attempts"], read_promise(row))


def read_job(row: Row, counts: dict[str, int], skipped: list[Row], collection: str) -> Job:
    """`counts`: how many items are in which state; `skipped`: those that were passed over."""
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
        skipped=tuple(Skipped(one["name"], one["reason"]) for one in skipped),
        error=row["error"],
        created=row["created"],
        finished=row["finished"],
    )


def find_promised(table: Connection, id: str, *, accepted: bool = False) -> Promise | None:
    """What is promised of an image, or about to be, and not yet kept; `accepted`: only what is promised."""
    among = f"AND {IN_OPEN_JOB}" if accepted else ""
    row = table.execute(
        f"SELECT * FROM items WHERE id = ? AND state = 'waiting' {among} ORDER BY rowid DESC LIMIT 1", (id,)
    ).fetchone()
    return None if row is None else read_promise(row)


def finish_jobs(table: Connection) -> None:
    """Jobs of which nothing waits any more are done."""
    table.execute(
        f"UPDATE jobs SET state = 'done', error = NULL, finished = ? WHERE {OPEN}"
        " AND NOT EXISTS (SELECT 1 FROM items WHERE items.job = jobs.id AND items.state = 'waiting')",
        (time.time(),),
    )


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


SUSPICIOUS, HOPELESS = 2, 5  # attempts that came to no end, after which an image is tried alone, and not at all
STOPPED = f"the service stopped {HOPELESS} times while it added this image"


class Queue:
    def __init__(self, file: JournalFile) -> None:
        self._file = file

    def has_work(self) -> bool:
        with self._file.reading() as table:
            return table.execute(f"SELECT 1 FROM jobs WHERE {OPEN} LIMIT 1").fetchone() is not None

    def claim(self, limit: int) -> list[Item]:
        """The next items to add, all of one job; jobs take turns."""
        with self._file.transaction() as table:
            _give_up(table)
            chosen = table.execute(f"SELECT id FROM jobs WHERE {OPEN} ORDER BY served, number LIMIT 1").fetchone()
            if chosen is None:
                return []
            rows = table.execute(
                "SELECT * FROM items WHERE job = ? AND state = 'waiting' ORDER BY attempts, number LIMIT ?",
                (chosen["id"], limit),
            ).fetchall()
            items = [read_item(row) for row in rows if row["attempts"] == rows[0]["attempts"]]
            items = items[:1] if items[0].attempts >= SUSPICIOUS else items
            table.execute("UPDATE jobs SET state = 'running', served = ? WHERE id = ?", (time.time(), chosen["id"]))
            _count_attempt(table, items, 1)
        return items

    def release(self, items: Sequence[Item], error: str | None = None) -> None:
        """Nobody could begin to add them, which was no attempt; `error` says why."""
        with self._file.transaction() as table:
            _count_attempt(table, items, -1)
            table.execute(f"UPDATE jobs SET error = ? WHERE id = ? AND {OPEN}", (error, items[0].job))

    def settle(self, settled: Sequence[Settled]) -> None:
        """Note what became of items, after the collection has stored them."""
        with self._file.transaction() as table:
            for one in settled:
                place = (one.item.job, one.item.number)
                table.execute(
                    "UPDATE items SET state = ?, reason = ? WHERE job = ? AND number = ?",
                    (one.outcome, one.reason, *place),
                )
                table.execute(f"UPDATE jobs SET error = NULL WHERE id = ? AND {OPEN}", place[:1])
            finish_jobs(table)

    def fail(self, job: str, error: str) -> None:
        """End a job that cannot be done."""
        with self._file.transaction() as table:
            table.execute(
                f"UPDATE items SET state = 'skipped', reason = ? WHERE job = ? AND state = 'waiting' AND {IN_OPEN_JOB}",
                (error, job),
            )
            table.execute(
                f"UPDATE jobs SET state = 'failed', error = ?, finished = ? WHERE id = ? AND {OPEN}",
                (error, time.time(), job),
            )


def _give_up(table: Connection) -> None:
    table.execute(
        f"UPDATE items SET state = 'skipped', reason = ? WHERE state = 'waiting' AND attempts >= ? AND {IN_OPEN_JOB}",
        (STOPPED, HOPELESS),
    )
    finish_jobs(table)


def _count_attempt(table: Connection, items: Sequence[Item], change: int) -> None:
    table.executemany(
        "UPDATE items SET attempts = attempts + ? WHERE job = ? AND number = ?",
        [(change, item.job, item.number) for item in items],
    )
