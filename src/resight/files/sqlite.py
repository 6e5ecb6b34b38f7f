"""SQLite files whose committed transactions survive a power cut: a path in, a connection out.

The write-ahead log lets readers go on while another process writes; synchronous = FULL puts every commit on the disk.
Callers begin and end their own transactions. SQLite has no checksums of its own: `sum_row` makes one of a row.
"""

import json
import sqlite3
import zlib
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

BUSY_SECONDS = 10.0  # that a writer waits for another one, of this or another process


def connect(path: Path | str) -> sqlite3.Connection:
    """A connection that threads may share if they take turns."""
    connection = sqlite3.connect(path, BUSY_SECONDS, isolation_level=None, check_same_thread=False)
    try:
        for setting in ("journal_mode = WAL", "synchronous = FULL"):
            with closing(connection.execute(f"PRAGMA {setting}")) as answer:
                answer.fetchall()
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def sum_row(row: sqlite3.Row, columns: Sequence[str]) -> int:
    """The checksum (CRC-32) of some columns of a row."""
    return zlib.crc32(json.dumps([row[name] for name in columns], default=repr).encode())
