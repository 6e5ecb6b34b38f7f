"""Rows of the journal ↔ promises, items and jobs; and what both sides of the journal ask of its tables."""

import json
import time
from pathlib import Path
from sqlite3 import Connection, Row
from typing import Any

from resight.apps.service.jobs.job import Item, Job, Promise
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
