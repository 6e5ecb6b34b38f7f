"""The locks of a collection's uploads, among all threads and processes of a service.

- The *turn* belongs to one worker, from claiming a batch to recording its outcome: no other process claims the same.
- The *write lock* is held while the collection changes, which is short: a worker encodes its batch before. A delete
  holds it from looking up ids to removing them, a worker from checking that its images are still wanted to storing
  them, so that neither undoes the other.

The collection's own writer lock is taken below both; any program may hold that one, such as `resight index`.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TypeVar

from resight.errors import CollectionBusy, StorageError
from resight.files.lock import writer_lock

PAUSE = 0.02  # seconds between two tries
TURN = "worker"  # folder
GAP = 0.06  # seconds that the last holder leaves to others before it tries again
Result = TypeVar("Result")


@contextmanager
def hold_turn(uploads: Path) -> Iterator[None]:
    """Have the turn; CollectionBusy when another worker has it."""
    _make_folder(uploads)
    _make_folder(uploads / TURN)
    with writer_lock(uploads / TURN):
        yield


@contextmanager
def hold_write_lock(uploads: Path, patience: float) -> Iterator[None]:
    """Hold the write lock; CollectionBusy when others hold it for `patience` seconds."""
    _make_folder(uploads)
    with ExitStack() as stack:
        retry_while_busy(lambda: stack.enter_context(writer_lock(uploads)), patience)
        yield


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise StorageError(
            f"cannot create {folder}",
            expected="a writable collection",
            actual=str(error),
            fix="check the permissions, or serve it with --read-only",
        ) from error


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
