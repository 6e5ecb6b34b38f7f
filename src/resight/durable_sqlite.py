"""SQLite files whose transactions survive a power cut: a path in, a connection out.

Write-ahead log, so that readers never wait for a writer; synchronous = FULL, so that what has been committed is on the
disk. Transactions are begun and ended by whoever holds the connection.
"""

import sqlite3
from contextlib import closing
from pathlib import Path

PATIENCE = 10.0  # seconds that a writer waits for another, of whatever process


def connect(place: Path | str) -> sqlite3.Connection:
    """Threads may share the connection, if they take turns."""
    connection = sqlite3.connect(place, PATIENCE, isolation_level=None, check_same_thread=False)
    try:
        for setting in ("journal_mode = WAL", "synchronous = FULL"):
            with closing(connection.execute(f"PRAGMA {setting}")) as answer:
                answer.fetchall()
    except sqlite3.Error:
        connection.close()
        raise
    return connection
