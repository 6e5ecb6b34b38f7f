"""The SQLite file of a collection's jobs: one connection per process, opened on first use, with durable transactions.

A committed transaction survives a power cut. Readers never wait for a writer; writers of other processes wait for each
other. The file has a schema version (`PRAGMA user_version`). Opening migrates an older version, and refuses a newer one
and a file that is damaged or lacks columns: accepting uploads into such a file would lose them.
"""

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from resight.apps.service.error_responses import JournalError
from resight.errors import StorageError
from resight.files.sqlite import connect

FILE = "jobs.sqlite"
VERSION = 3
TABLES = (
    """CREATE TABLE IF NOT EXISTS jobs (
        number INTEGER PRIMARY KEY,
        id TEXT NOT NULL UNIQUE,
        kind TEXT NOT NULL,
        state TEXT NOT NULL,  -- receiving, then those of models.State
        created REAL NOT NULL,
        served REAL NOT NULL DEFAULT 0,  -- time of its last batch
        finished REAL,
        error TEXT
    )""",
    """CREATE TABLE IF NOT EXISTS items (
        job TEXT NOT NULL,
        number INTEGER NOT NULL,
        id TEXT NOT NULL,
        name TEXT NOT NULL,
        sha256 TEXT NOT NULL,
        bytes INTEGER NOT NULL,
        attributes TEXT NOT NULL,  -- JSON
        box TEXT,  -- JSON
        path TEXT,
        state TEXT NOT NULL,  -- waiting, then an Outcome
        reason TEXT NOT NULL DEFAULT '',
        attempts INTEGER NOT NULL DEFAULT 0,
        version INTEGER,  -- of the collection that first held it; NULL: not stored, deleted, or stored again later
        checksum INTEGER,  -- of the columns up to path; NULL: from before version 3, or accepted as it is now
        PRIMARY KEY (job, number)
    )""",
    """CREATE TABLE IF NOT EXISTS uploads (
        sha256 TEXT PRIMARY KEY,
        version INTEGER  -- of the collection that last held an image of this content; NULL: discarded
    )""",
    """CREATE TABLE IF NOT EXISTS commits (
        version INTEGER PRIMARY KEY,  -- of the collection that holds changes which the service has reported as done
        id TEXT NOT NULL  -- of the commit: a version number may come again if the collection goes back
    )""",
    "CREATE INDEX IF NOT EXISTS waiting_items ON items (id) WHERE state = 'waiting'",
    "CREATE INDEX IF NOT EXISTS open_jobs ON jobs (served) WHERE state IN ('receiving', 'waiting', 'running')",
    "CREATE INDEX IF NOT EXISTS stored_items ON items (id) WHERE version IS NOT NULL",
)
DISCARDED_IN_1 = (  # items of version 1 whose uploads their clients had given up
    "sha256 != '' AND (state = 'cancelled' OR reason LIKE 'a later upload of%' OR reason LIKE 'it was deleted before%')"
)
# Of the present version. Version 1 had no version number, no items.version and not the last two tables;
# version 2 had no items.checksum.
COLUMNS = {
    "jobs": {"number", "id", "kind", "state", "created", "served", "finished", "error"},
    "items": {
        *("job", "number", "id", "name", "sha256", "bytes", "attributes", "box", "path"),
        *("state", "reason", "attempts", "version", "checksum"),
    },
    "uploads": {"sha256", "version"},
    "commits": {"version", "id"},
}


class JobDatabase:
    def __init__(self, folder: Path) -> None:
        self.path = folder / FILE
        self._lock = threading.RLock()
        self._connection: sqlite3.Connection | None = None

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Exclusive write access among all processes; an exception inside rolls everything back."""
        with self._lock, _translate_errors(self.path):
            connection = self._connect()
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
            except BaseException:
                connection.execute("ROLLBACK")
                raise
            connection.execute("COMMIT")

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """One state of the database. It is empty where there is no file: reading creates none."""
        with self._lock, _translate_errors(self.path):
            if self._connection is None and not self.path.exists():
                with closing(_open(":memory:")) as empty:
                    yield empty
                return
            connection = self._connect()
            connection.execute("BEGIN")
            try:
                yield connection
            finally:
                connection.execute("ROLLBACK")

    def close(self) -> None:
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def _connect(self) -> sqlite3.Connection:
        if self._connection is None:
            self._connection = _open(self.path)
        return self._connection


def _open(path: Path | str) -> sqlite3.Connection:
    connection = connect(path)
    connection.row_factory = sqlite3.Row
    try:
        connection.execute("BEGIN IMMEDIATE")
        _migrate(connection)
        _check(connection)
        connection.execute("COMMIT")
    except (sqlite3.Error, StorageError):
        connection.close()  # rolls back
        raise
    return connection


def _migrate(connection: sqlite3.Connection) -> None:
    """Bring a new or older database to the present version; the caller's transaction holds all of it."""
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if version > VERSION:
        raise JournalError(
            "the job database has a newer format than this service knows",
            expected=f"version {VERSION} or older",
            actual=f"version {version}",
            fix="upgrade resight",
        )
    known = _list_columns(connection, "items") if version < VERSION else set()
    for added in ("version", "checksum") if version == 0 else ("checksum",):
        if known and added not in known:
            connection.execute(f"ALTER TABLE items ADD COLUMN {added} INTEGER")
    if version < VERSION:
        for table in TABLES:
            connection.execute(table)
        if version < 2:
            connection.execute(f"INSERT INTO uploads SELECT DISTINCT sha256, NULL FROM items WHERE {DISCARDED_IN_1}")  # nosec B608  # constant text, values are bound
        connection.execute(f"PRAGMA user_version = {VERSION}")


def _check(connection: sqlite3.Connection) -> None:
    for table, columns in COLUMNS.items():
        missing = columns - _list_columns(connection, table)
        if missing:
            raise JournalError(
                "the job database is incomplete",
                expected=f"a table {table} with the columns {', '.join(sorted(columns))}",
                actual=f"without {', '.join(sorted(missing))}",
                fix="restore it from a backup, or move it away: the service then lists its uploads in the quarantine",
            )
    found = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    if found != "ok":
        raise sqlite3.DatabaseError(found)


def _list_columns(connection: sqlite3.Connection, table: str) -> set[str]:
    return {row["name"] for row in connection.execute(f"PRAGMA table_info({table})").fetchall()}


@contextmanager
def _translate_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise JournalError(
            "the job database cannot be used",
            expected="a writable SQLite file, and free space on its disk",
            actual=f"{path}: {error}",
            fix="free some space; you may move a damaged file away: stored images do not depend on it, and the service "
            "then lists its uploads in the quarantine",
        ) from error
