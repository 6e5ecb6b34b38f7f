"""What waits to be added to one collection: the runner's side of COLLECTION/jobs.sqlite.

Out come items, in go outcomes. Whoever calls `claim` has the turn (turns.py) and keeps it until `settle` or `release`,
so a claim needs no owner and no expiry: what a process claimed that died is simply claimed again.
"""

import time
from collections.abc import Sequence
from sqlite3 import Connection

from resight.apps.service.jobs.job import Item, Settled
from resight.apps.service.jobs.journal_file import JournalFile
from resight.apps.service.jobs.rows import IN_OPEN_JOB, OPEN, finish_jobs, read_item

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
