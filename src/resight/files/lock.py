"""One writer per collection: a folder in, a context out in which no other process or thread holds the folder's lock.

The operating system releases the lock when the process ends, however it ends, so no stale lock is left. The file
`writer.lock` stays. It holds the process, host and time of the writer, which a second writer's error message names: the
locks of common packages do not record their holder.
"""

import contextlib
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
from resight.files.documents import load_json

NAME = "writer.lock"
BUSY = (errno.EACCES, errno.EAGAIN, errno.EDEADLK)  # EDEADLK on Windows


@contextmanager
def writer_lock(folder: Path) -> Iterator[None]:
    """Hold the writer lock of the collection in `folder`; CollectionBusy at once if another writer holds it."""
    path = folder / NAME
    descriptor = _open(path)
    try:
        _acquire(descriptor, path)
        try:
            _write_holder(descriptor)
            yield
        finally:
            with contextlib.suppress(OSError):
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
            expected="an existing, writable folder",
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


def _write_holder(descriptor: int) -> None:
    """For people: on a full disk the lock holds without it."""
    holder = {
        "pid": os.getpid(),
        "host": socket.gethostname(),
        "since": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    with contextlib.suppress(OSError):
        os.ftruncate(descriptor, 0)
        os.lseek(descriptor, 0, os.SEEK_SET)
        os.write(descriptor, json.dumps(holder).encode())


def _read_holder(path: Path) -> str:
    try:
        holder = load_json(path.read_text(encoding="utf-8"))
        return f"process {holder['pid']} on {holder['host']} has been writing since {holder['since']}"
    except (OSError, ValueError, KeyError):  # the holder has the lock but has not written its name yet
        return "a process that has just started"


if sys.platform == "win32":
    import msvcrt

    FAR = 1 << 30  # Windows hides locked bytes from other processes, so lock one far behind the text

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
