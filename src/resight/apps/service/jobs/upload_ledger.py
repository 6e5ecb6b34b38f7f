"""Which uploads may be removed, and the quarantine: a transaction of the job database in, decisions out.

An upload is removed only when the database says why: its client discarded it (cancelled, deleted, replaced), or the
collection stored it and dropped the image since. A file that the database does not explain (the database was replaced,
or the collection went back to an earlier state) goes to the quarantine, where somebody decides: retry or discard.
"""

import secrets
import time
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from sqlite3 import Connection, Row

from resight.apps.service.jobs.database import JobDatabase
from resight.apps.service.jobs.models import CollectionState, Item, QuarantinedUpload
from resight.collection.upkeep.integrity import ITEM
from resight.files.sqlite import sum_row

UNEXPLAINED = "the service found this upload without a job that needs it"
DISCARDED = "it was discarded from the quarantine"
REMEMBERED = 10_000  # versions of the collection
RECOVERED = "recovered"  # the beginning of the id that such an upload gets


@dataclass(frozen=True)
class Sorted:
    """Uploads on disk that neither an image nor a job needs."""

    removable: frozenset[str]
    unexplained: frozenset[str]


class UploadLedger:
    def __init__(self, table: Connection) -> None:
        self._table = table

    def list_needed(self) -> set[str]:
        """The hashes of the uploads that jobs wait for, and of those in quarantine."""
        rows = self._table.execute("SELECT DISTINCT sha256 FROM items WHERE state IN ('waiting', 'quarantined')")
        return {row["sha256"] for row in rows.fetchall()}

    def sort(self, present: Iterable[str], stored: Set[str], state: CollectionState) -> Sorted:
        """`present`: files on disk; `stored`: hashes of all images in this state of the collection."""
        known = {row["sha256"]: row["version"] for row in self._table.execute("SELECT * FROM uploads").fetchall()}
        held = [sha256 for sha256 in present if sha256 in stored]
        self._table.executemany(
            "INSERT OR REPLACE INTO uploads VALUES (?, ?)",
            [(sha256, state.version) for sha256 in held if known.get(sha256) is None],
        )
        record_commit(self._table, state)
        left = frozenset(present) - stored - self.list_needed()
        removable = frozenset(left & known.keys())  # discarded, or stored and deleted since
        return Sorted(removable, left - removable)

    def forget(self, hashes: Iterable[str]) -> None:
        """Forget uploads whose files were removed."""
        self._table.executemany("DELETE FROM uploads WHERE sha256 = ?", [(sha256,) for sha256 in hashes])

    def reclaim(self, job: str) -> None:
        """A new job needs its uploads, whatever became of earlier ones of the same content."""
        self._table.execute(
            "DELETE FROM uploads WHERE version IS NULL AND sha256 IN (SELECT sha256 FROM items WHERE job = ?)", (job,)
        )

    def quarantine(self, sizes: Mapping[str, int]) -> None:
        """Put unexplained uploads (hash → bytes) into the quarantine, as a job that is over."""
        if not sizes:
            return
        job, now = secrets.token_hex(8), time.time()
        self._table.execute(
            "INSERT INTO jobs (id, kind, state, created, finished) VALUES (?, 'add', 'done', ?, ?)", (job, now, now)
        )
        self._table.executemany(
            "INSERT INTO items (job, number, id, name, sha256, bytes, attributes, state, reason)"
            " VALUES (?, ?, ?, ?, ?, ?, '{}', 'quarantined', ?)",
            [
                (job, number, f"{RECOVERED}-{sha256[:16]}", f"{RECOVERED}-{sha256[:16]}", sha256, size, UNEXPLAINED)
                for number, (sha256, size) in enumerate(sorted(sizes.items()))
            ],
        )
        add_checksums(self._table, job)


def add_checksums(table: Connection, job: str) -> None:
    """Give the items of a new job the checksums of what never changes in them."""
    rows = table.execute("SELECT * FROM items WHERE job = ?", (job,)).fetchall()
    table.executemany(
        "UPDATE items SET checksum = ? WHERE job = ? AND number = ?",
        [(sum_row(row, ITEM), row["job"], row["number"]) for row in rows],
    )


def discard(table: Connection, items: str, values: tuple[object, ...]) -> None:
    """Allow the uploads of these items (a condition on `items`) to be removed, once nothing else needs them."""
    table.execute(
        f"INSERT OR REPLACE INTO uploads SELECT DISTINCT sha256, NULL FROM items WHERE sha256 != '' AND {items}",  # nosec B608  # constant text, values are bound
        values,
    )


def record_stored(table: Connection, item: Item, version: int) -> None:
    """Remember in which version the collection holds an item; it replaces earlier items of the same id."""
    table.execute("UPDATE items SET version = NULL WHERE id = ? AND version IS NOT NULL", (item.image.id,))
    table.execute("UPDATE items SET version = ? WHERE job = ? AND number = ?", (version, item.job, item.number))
    table.execute("INSERT OR REPLACE INTO uploads VALUES (?, ?)", (item.image.sha256, version))


def record_commit(table: Connection, state: CollectionState) -> None:
    """Remember that the collection was in this state."""
    table.execute("INSERT OR REPLACE INTO commits VALUES (?, ?)", (state.version, state.commit_id))
    table.execute("DELETE FROM commits WHERE version <= ?", (state.version - REMEMBERED,))


def find_common_version(table: Connection, state: CollectionState) -> int:
    """The newest version before the first one recorded that is not in the history of this state."""
    for row in table.execute("SELECT version, id FROM commits ORDER BY version").fetchall():
        if row["version"] > state.version or state.find_commit(row["version"]) not in (None, row["id"]):
            return int(row["version"]) - 1
    return state.version


class Quarantine:
    """The uploads of one collection that were accepted, could not be added, and are kept."""

    def __init__(self, database: JobDatabase, collection: str) -> None:
        self._database = database
        self._collection = collection

    def count(self) -> int:
        with self._database.reading() as table:
            return int(table.execute("SELECT count(*) FROM items WHERE state = 'quarantined'").fetchone()[0])

    def list_uploads(self, limit: int) -> list[QuarantinedUpload]:
        """The newest first."""
        with self._database.reading() as table:
            rows = table.execute(
                "SELECT items.*, jobs.created FROM items JOIN jobs ON jobs.id = items.job"
                " WHERE items.state = 'quarantined' ORDER BY jobs.number DESC, items.number LIMIT ?",
                (limit,),
            ).fetchall()
        return [_read(row, self._collection) for row in rows]

    def retry(self, keys: Sequence[str]) -> set[str]:
        """Queue uploads again; returns the keys that were found."""
        with self._database.transaction() as table:
            found = {key for key in keys if _is_quarantined(table, key)}
            for job, number in map(_split, found):
                table.execute(
                    "UPDATE items SET state = 'waiting', reason = '', attempts = 0, checksum = NULL"  # as it is now
                    " WHERE job = ? AND number = ?",
                    (job, number),
                )
                table.execute("UPDATE jobs SET state = 'waiting', finished = NULL, error = NULL WHERE id = ?", (job,))
        return found

    def discard(self, keys: Sequence[str]) -> set[str]:
        """Give uploads up: their files are removed soon. Returns the keys that were found."""
        with self._database.transaction() as table:
            found = {key for key in keys if _is_quarantined(table, key)}
            for job, number in map(_split, found):
                discard(table, "job = ? AND number = ?", (job, number))
                table.execute(
                    "UPDATE items SET state = 'skipped', reason = ? WHERE job = ? AND number = ?",
                    (DISCARDED, job, number),
                )
        return found


def _is_quarantined(table: Connection, key: str) -> bool:
    query = "SELECT 1 FROM items WHERE job = ? AND number = ? AND state = 'quarantined'"
    return table.execute(query, _split(key)).fetchone() is not None


def _split(key: str) -> tuple[str, int]:
    job, _, number = key.partition("-")
    return job, int(number) if number.isdecimal() and len(number) < 10 else -1


def _read(row: Row, collection: str) -> QuarantinedUpload:
    return QuarantinedUpload(
        f"{row['job']}-{row['number']}",
        row["job"],
        collection,
        row["id"],
        row["name"],
        row["bytes"],
        row["reason"],
        row["created"],
    )
