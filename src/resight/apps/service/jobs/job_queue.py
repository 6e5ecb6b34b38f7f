"""The worker's side of the jobs of one collection: items out, results in. store.py is the clients' side.

A process that calls `claim` has the turn (write_lock.py) until `finish` or `release`, so that a claim needs neither
owner nor expiry: another process claims the items of one that died.
"""

import time
from collections.abc import Sequence
from sqlite3 import Connection, Row

from resight.apps.service.jobs.database import JobDatabase
from resight.apps.service.jobs.models import CollectionState, Item, ItemResult
from resight.apps.service.jobs.store import IN_OPEN_JOB, OPEN, finish_jobs, read_image
from resight.apps.service.jobs.upload_ledger import record_commit, record_stored
from resight.collection.upkeep.integrity import ITEM
from resight.files.sqlite import sum_row

SUSPICIOUS, MAX_ATTEMPTS = 2, 5  # interrupted attempts, after which an image is tried alone, and then quarantined
STOPPED = f"the service stopped {MAX_ATTEMPTS} times while it added this image"
CHANGED = "its entry in the job database has changed on the disk: compare its name and attributes before a retry"
STORED = ("added", "updated", "unchanged")


class JobQueue:
    def __init__(self, database: JobDatabase) -> None:
        self._database = database

    def has_work(self) -> bool:
        with self._database.reading() as table:
            return table.execute(f"SELECT 1 FROM jobs WHERE {OPEN} LIMIT 1").fetchone() is not None  # nosec B608  # constant text, values are bound

    def claim(self, limit: int) -> list[Item]:
        """The next items to add, all of one job; the jobs alternate."""
        with self._database.transaction() as table:
            _give_up(table)
            chosen = table.execute(f"SELECT id FROM jobs WHERE {OPEN} ORDER BY served, number LIMIT 1").fetchone()  # nosec B608  # constant text, values are bound
            if chosen is None:
                return []
            rows = table.execute(
                "SELECT rowid, * FROM items WHERE job = ? AND state = 'waiting' ORDER BY attempts, number LIMIT ?",
                (chosen["id"], limit),
            ).fetchall()
            if _set_aside_damaged(table, rows):
                return []  # the next claim finds the others
            items = [read_item(row) for row in rows if row["attempts"] == rows[0]["attempts"]]
            items = items[:1] if items[0].attempts >= SUSPICIOUS else items
            table.execute("UPDATE jobs SET state = 'running', served = ? WHERE id = ?", (time.time(), chosen["id"]))
            _count_attempt(table, items, 1)
        return items

    def keep_waiting(self, items: Sequence[Item]) -> list[Item]:
        """The items that are still to be added."""
        with self._database.reading() as table:
            query = "SELECT state FROM items WHERE job = ? AND number = ?"
            return [item for item in items if table.execute(query, (item.job, item.number)).fetchone()[0] == "waiting"]

    def release(self, items: Sequence[Item], error: str | None = None) -> None:
        """Return items that could not be started, without counting an attempt; `error` is the reason."""
        with self._database.transaction() as table:
            _count_attempt(table, items, -1)
            table.execute(f"UPDATE jobs SET error = ? WHERE id = ? AND {OPEN}", (error, items[0].job))  # nosec B608  # constant text, values are bound

    def finish(self, results: Sequence[ItemResult], state: CollectionState) -> None:
        """Record the outcome of items, after the collection has stored them durably in this state."""
        with self._database.transaction() as table:
            for one in results:
                key = (one.item.job, one.item.number)
                changed = table.execute(
                    "UPDATE items SET state = ?, reason = ? WHERE job = ? AND number = ? AND state != 'skipped'",
                    (one.outcome, one.reason, *key),
                ).rowcount  # skipped: it was deleted again since it was stored
                table.execute(f"UPDATE jobs SET error = NULL WHERE id = ? AND {OPEN}", key[:1])  # nosec B608  # constant text, values are bound
                if one.outcome in STORED and changed:
                    record_stored(table, one.item, state.version)
            record_commit(table, state)
            finish_jobs(table)

    def fail(self, job: str, error: str) -> None:
        """End a job that cannot succeed now; its uploads go to the quarantine."""
        with self._database.transaction() as table:
            table.execute(
                "UPDATE items SET state = 'quarantined', reason = ?"  # nosec B608  # constant text, values are bound
                f" WHERE job = ? AND state = 'waiting' AND {IN_OPEN_JOB}",
                (error, job),
            )
            table.execute(
                f"UPDATE jobs SET state = 'failed', error = ?, finished = ? WHERE id = ? AND {OPEN}",  # nosec B608  # constant text, values are bound
                (error, time.time(), job),
            )


def read_item(row: Row) -> Item:
    return Item(row["job"], row["number"], row["attempts"], read_image(row))


def _give_up(table: Connection) -> None:
    table.execute(
        "UPDATE items SET state = 'quarantined', reason = ?"  # nosec B608  # constant text, values are bound
        f" WHERE state = 'waiting' AND attempts >= ? AND {IN_OPEN_JOB}",
        (STOPPED, MAX_ATTEMPTS),
    )
    finish_jobs(table)


def _set_aside_damaged(table: Connection, rows: Sequence[Row]) -> bool:
    """Put items whose entry is not what was written into the quarantine; whether there are any."""
    damaged = [row for row in rows if row["checksum"] is not None and row["checksum"] != sum_row(row, ITEM)]
    table.executemany(
        "UPDATE items SET state = 'quarantined', reason = ? WHERE rowid = ?",
        [(CHANGED, row["rowid"]) for row in damaged],
    )
    finish_jobs(table)
    return bool(damaged)


def _count_attempt(table: Connection, items: Sequence[Item], change: int) -> None:
    table.executemany(
        "UPDATE items SET attempts = attempts + ? WHERE job = ? AND number = ?",
        [(change, item.job, item.number) for item in items],
    )
