"""The SQLite file of a collection's jobs: one connection per process, opened on first use, with durable transactions.

A committed transaction survives a power cut. Readers never wait for a writer; writers of other processes wait for each
other.
"""

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from resight.errors import StorageError
from resight.files.sqlite import connect

FILE = "jobs.sqlite"
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
        PRIMARY KEY (job, number)
    )""",
    "CREATE INDEX IF NOT EXISTS waiting_items ON items (id) WHERE state = 'waiting'",
    "CREATE INDEX IF NOT EXISTS open_jobs ON jobs (served) WHERE state IN ('receiving', 'waiting', 'running')",
)


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
        for table in TABLES:
            connection.execute(table)
        connection.execute("COMMIT")
    except sqlite3.Error:
        connection.close()
        raise
    return connection


@contextmanager
def _translate_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise StorageError(
            f"cannot use the job database {path}",
            expected="a writable SQLite file, and free space on its disk",
            actual=str(error),
            fix="free some space; you may move a damaged file away, since stored images do not depend on it",
        ) from error
