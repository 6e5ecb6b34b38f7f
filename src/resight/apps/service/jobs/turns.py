"""Who may change a collection now: the one that holds the lock of its folder of uploads.

The adder holds it from claiming a portion to noting what became of it, a delete from looking up to removing, so
neither undoes the other, in this process or in another. The collection's own writer lock is taken below it and may be
held by anybody, such as `resight index`.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TypeVar

from resight.errors import CollectionBusy, StorageError
from resight.lock import writer_lock

PAUSE = 0.02  # seconds between two tries
GAP = 0.06  # that whoever had the turn leaves to others before it tries again
Made = TypeVar("Made")


@contextmanager
def take_turn(uploads: Path, patience: float) -> Iterator[None]:
    """Hold the turn; CollectionBusy when others have it for all of `patience` seconds."""
    try:
        uploads.mkdir(exist_ok=True)
    except OSError as error:
        raise StorageError(
            f"cannot make {uploads}",
            expected="a collection that can be written to",
            actual=str(error),
            fix="check the permissions, or serve it with --read-only",
        ) from error
    with ExitStack() as stack:
        keep_trying(lambda: stack.enter_context(writer_lock(uploads)), patience)
        yield


def keep_trying(work: Callable[[], Made], patience: float) -> Made:
    """The result of `work`, tried again while another process is writing."""
    end = time.monotonic() + patience
    while True:
        try:
            return work()
        except CollectionBusy:
            if time.monotonic() >= end:
                raise
            time.sleep(PAUSE)
