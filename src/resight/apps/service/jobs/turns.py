"""A portion of items in, stored images and what became of each item out.

An error that one image causes costs that image only: the portion is then added one by one. Errors that concern the
collection or its disk go to the caller. Adding what is stored already changes nothing.

Who may change a collection now: the one that holds the lock of its folder of uploads.

The adder holds it from claiming a portion to noting what became of it, a delete from looking up to removing, so
neither undoes the other, in this process or in another. The collection's own writer lock is taken below it and may be
held by anybody, such as `resight index`.
"""

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TypeVar

from resight.apps.service.jobs.models import Item, Outcome, Settled
from resight.apps.service.jobs.uploads import Uploads
from resight.collection import Collection
from resight.errors import CollectionBusy, CollectionError, MissingExtra, StorageError
from resight.files.lock import writer_lock
from resight.files.remote import to_url
from resight.store import ImageRecord

log = logging.getLogger("resight.service.jobs")


def add_portion(collection: Collection, uploads: Uploads, items: Sequence[Item]) -> list[Settled]:
    """Add the images of the items; what is given back is stored."""
    try:
        return _add(collection, uploads, items)
    except (CollectionError, StorageError, MissingExtra):
        raise
    except Exception as error:  # whatever an encoder makes of an odd picture must not stop the others
        if len(items) == 1:
            log.warning("an image could not be added", exc_info=error)
            return [Settled(items[0], "skipped", "it could not be described")]
    return [settled for item in items for settled in add_portion(collection, uploads, [item])]


def _add(collection: Collection, uploads: Uploads, items: Sequence[Item]) -> list[Settled]:
    refs = [item.ref(uploads.path(item.promise.sha256)) for item in items]
    before = _read(collection, items)
    report = collection.add(refs, tidy=False)  # housekeeping.py sees to that
    after = _read(collection, items)
    reasons = {one.path: one.reason for one in report.skipped}
    return [
        Settled(item, "skipped", reasons[to_url(ref.path)])
        if to_url(ref.path) in reasons
        else Settled(item, _compare(item, before.get(ref.id), after.get(ref.id)))
        for item, ref in zip(items, refs, strict=True)
    ]


def _compare(item: Item, before: ImageRecord | None, after: ImageRecord | None) -> Outcome:
    if before is None:
        return "added"
    if before != after:
        return "updated"
    return "added" if item.attempts else "unchanged"  # an attempt that was cut short had stored it


def _read(collection: Collection, items: Sequence[Item]) -> dict[str, ImageRecord]:
    view = collection.view()
    found = (view.find(item.promise.id) for item in items)
    return {record.id: record for record in found if record is not None}


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
