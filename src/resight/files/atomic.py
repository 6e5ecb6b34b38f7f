"""SQLite files whose transactions survive a power cut: a path in, a connection out.

Write-ahead log, so that readers never wait for a writer; synchronous = FULL, so that what has been committed is on the
disk. Transactions are begun and ended by whoever holds the connection.

Files that are there whole or not at all: written under another name, then renamed.

Also where the user keeps what can be made again.
"""

import contextlib
import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from resight.errors import StorageError

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


UNFINISHED = ".tmp"  # how names of files end that are being written, or that nobody finished


@contextlib.contextmanager
def write_whole(path: Path, problem: str = "", fix: str = "choose another place") -> Iterator[Path]:
    """A name beside `path` to write to, in a folder that is made when missing; it becomes `path` when the block ends.

    Where the disk refuses, StorageError says `problem` (by default that `path` cannot be written) and `fix`.
    """
    temporary = path.with_name(f"{path.name}.{os.getpid()}-{threading.get_ident()}{UNFINISHED}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield temporary
        temporary.replace(path)
    except OSError as error:
        raise StorageError(
            problem or f"cannot write {path}",
            expected="a place that can be written to, with space left",
            actual=str(error),
            fix=fix,
        ) from error
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)


def find_cache() -> Path:
    """resight's folder below the user's cache directory, as the XDG base directory specification has it."""
    named = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(named) if Path(named).is_absolute() else Path.home() / ".cache") / "resight"
