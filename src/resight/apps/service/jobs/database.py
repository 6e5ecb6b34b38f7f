"""The SQLite file of a journal: one connection a process, opened at its first use, and transactions that are durable.

A transaction that has ended survives a power cut. Readers never wait for a writer; writers of other processes wait for
each other.
"""

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from resight.errors import StorageError
from resight.files.atomic import connect

FILE = "jobs.sqlite"
TABLES = (
    """CREATE TABLE IF NOT EXISTS jobs (
        number INTEGER PRIMARY KEY,
        id TEXT NOT NULL UNIQUE,
        kind TEXT NOT NULL,
        state TEXT NOT NULL,  -- receiving, then those of job.State
        created REAL NOT NULL,
        served REAL NOT NULL DEFAULT 0,  -- when it last had its turn
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


class JournalFile:
    def __init__(self, folder: Path) -> None:
        self.path = folder / FILE
        self._lock = threading.RLock()
        self._connection: sqlite3.Connection | None = None

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """The right to change the journal, alone among all processes; what fails inside leaves no trace."""
        with self._lock, _explain(self.path):
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
        """One state of the journal, an empty one where there is no file: to look makes none."""
        with self._lock, _explain(self.path):
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


def _open(place: Path | str) -> sqlite3.Connection:
    connection = connect(place)
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
def _explain(path: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise StorageError(
            f"cannot use the journal {path}",
            expected="a SQLite file that can be written, with space left on its disk",
            actual=str(error),
            fix="free some space; a damaged journal may be moved away: images that are stored do not depend on it",
        ) from error
