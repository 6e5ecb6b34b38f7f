"""The lock that a process holds while it changes a collection over HTTP: that of the folder of uploads.

The worker holds it from claiming a batch to recording its outcome, a delete from looking up ids to removing them, so
that neither undoes the other, in this process or another. The collection's own writer lock is taken below it; any
program may hold that one, such as `resight index`.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TypeVar

from resight.errors import CollectionBusy, StorageError
from resight.files.lock import writer_lock

PAUSE = 0.02  # seconds between two tries
GAP = 0.06  # seconds that the last holder leaves to others before it tries again
Result = TypeVar("Result")


@contextmanager
def hold_write_lock(uploads: Path, patience: float) -> Iterator[None]:
    """Hold the lock; CollectionBusy when others hold it for `patience` seconds."""
    try:
        uploads.mkdir(exist_ok=True)
    except OSError as error:
        raise StorageError(
            f"cannot create {uploads}",
            expected="a writable collection",
            actual=str(error),
            fix="check the permissions, or serve it with --read-only",
        ) from error
    with ExitStack() as stack:
        retry_while_busy(lambda: stack.enter_context(writer_lock(uploads)), patience)
        yield


def retry_while_busy(work: Callable[[], Result], patience: float) -> Result:
    """The result of `work`, tried again for `patience` seconds while another process writes."""
    end = time.monotonic() + patience
    while True:
        try:
            return work()
        except CollectionBusy:
            if time.monotonic() >= end:
                raise
            time.sleep(PAUSE)
