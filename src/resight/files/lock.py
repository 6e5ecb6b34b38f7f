"""One writer a collection.

In goes the collection's folder, out comes a context in which no other process (nor another thread) holds its lock.
The operating system frees the lock when its process ends in whatever way, so a lock is never left over. The file
`writer.lock` stays; what it says (process, host, since when) is there for the error message of whoever comes second.
"""

import errno
import json
import os
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from resight.errors import CollectionBusy, StorageError

NAME = "writer.lock"
BUSY = (errno.EACCES, errno.EAGAIN, errno.EDEADLK)  # the last one is Windows


@contextmanager
def writer_lock(folder: Path) -> Iterator[None]:
    """Hold the right to write to the collection in `folder`; raises CollectionBusy at once when another has it."""
    path = folder / NAME
    descriptor = _open(path)
    try:
        _acquire(descriptor, path)
        try:
            _sign(descriptor)
            yield
        finally:
            os.ftruncate(descriptor, 0)
            _release(descriptor)
    finally:
        os.close(descriptor)


def _open(path: Path) -> int:
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    except OSError as error:
        raise StorageError(
            f"cannot open {path} to lock the collection",
            expected="a folder that exists and can be written to",
            actual=str(error),
            fix="check the path and its permissions",
        ) from error


def _acquire(descriptor: int, path: Path) -> None:
    try:
        _try_lock(descriptor)
    except OSError as error:
        if error.errno in BUSY:
            raise CollectionBusy(
                f"another process is writing to {path.parent}",
                expected="one writer at a time",
                actual=_read_holder(path),
                fix="wait until it has finished, or stop it",
            ) from error
        raise StorageError(
            f"cannot lock {path}",
            expected="a file system with file locks",
            actual=str(error),
            fix="keep the collection on a local disk",
        ) from error


def _sign(descriptor: int) -> None:
    holder = {
        "pid": os.getpid(),
        "host": socket.gethostname(),
        "since": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    os.ftruncate(descriptor, 0)
    os.lseek(descriptor, 0, os.SEEK_SET)
    os.write(descriptor, json.dumps(holder).encode())


def _read_holder(path: Path) -> str:
    try:
        holder = json.loads(path.read_text(encoding="utf-8"))
        return f"process {holder['pid']} on {holder['host']} has been writing since {holder['since']}"
    except (OSError, ValueError, KeyError):  # the holder has the lock but has not signed yet
        return "a process that has only just begun"


if sys.platform == "win32":
    import msvcrt

    FAR = 1 << 30  # Windows hides locked bytes from other processes, so one far behind the text is locked

    def _try_lock(descriptor: int) -> None:
        os.lseek(descriptor, FAR, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)

    def _release(descriptor: int) -> None:
        os.lseek(descriptor, FAR, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    def _try_lock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def _release(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_UN)
