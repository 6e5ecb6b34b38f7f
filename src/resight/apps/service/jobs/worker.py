"""The thread that adds accepted images to the collections, and maintains them when nothing waits.

Each process of a service has one; they alternate, and each continues what another left. A batch is as large as it can
be for about 1.5 seconds of work, so that deletes, other jobs and other processes are not delayed. When another process
writes, or the disk is full, the worker tries again later: an accepted job is never given up.
"""

import logging
import math
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from resight.apps.service.error_responses import to_api_error
from resight.apps.service.executor import limit_threads, lower_priority
from resight.apps.service.jobs.intake import Intake
from resight.apps.service.jobs.maintenance import SWEEP_INTERVAL, Maintenance
from resight.apps.service.jobs.models import Item, ItemResult, Outcome
from resight.apps.service.jobs.store import QueueLimits
from resight.apps.service.jobs.uploads import UploadStore
from resight.apps.service.jobs.write_lock import GAP, hold_turn, hold_write_lock
from resight.collection import Collection
from resight.collection.add import EncodedImages
from resight.errors import (
    CollectionBusy,
    CollectionError,
    MissingExtra,
    ResightError,
    SpaceMismatch,
    StorageError,
    VersionMismatch,
)
from resight.files.lock import writer_lock
from resight.files.remote import to_url
from resight.store import ImageRecord
from resight.types import ImageRef

log = logging.getLogger("resight.service.jobs")
MAX_BATCH, FIRST_BATCH = 32, 4  # images
BATCH_SECONDS = 1.5
WRITE_PATIENCE = 10.0  # seconds: deletes hold the write lock briefly
MIN_PAUSE, MAX_BUSY_PAUSE, MAX_ERROR_PAUSE = 0.1, 1.0, 30.0  # seconds before the next try; it doubles each time
POLL_INTERVAL = 1.0  # seconds: other processes accept jobs, too
CHANGED = "its file has changed on the disk since it was accepted: send it again"
PERMANENT = (SpaceMismatch, VersionMismatch, MissingExtra)


class JobWorker:
    def __init__(
        self,
        collections: Mapping[str, Collection],
        *,
        count_idle_seconds: Callable[[], float] = lambda: math.inf,
        threads: int = 1,
        limits: QueueLimits | None = None,
        sweep_interval: float = SWEEP_INTERVAL,
    ) -> None:
        """`count_idle_seconds` is the time since the last search; at 0 a search runs, and maintenance is skipped."""
        self._count_idle_seconds = count_idle_seconds
        self._threads = threads
        self._limits = limits
        self._sweep_interval = sweep_interval
        self.intakes: dict[str, Intake] = {}  # replaced, never changed: any thread may iterate over it
        self._adders: tuple[BatchAdder, ...] = ()
        self._maintenance: tuple[Maintenance, ...] = ()
        for name, collection in collections.items():
            self.add_collection(name, collection)
        self._wake = threading.Event()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="jobs", daemon=True)

    def add_collection(self, name: str, collection: Collection) -> None:
        """Accept images for a collection, also while the thread runs."""
        intake = Intake(name, collection, self._limits)
        self.intakes = {**self.intakes, name: intake}
        self._adders = (*self._adders, BatchAdder(intake, self._threads))
        self._maintenance = (*self._maintenance, Maintenance(intake, self._sweep_interval))

    def start(self) -> None:
        self._thread.start()

    def wake(self) -> None:
        """Look for work now."""
        self._wake.set()

    def stop(self, grace: float) -> None:
        """Stop after the current batch; the next service to start continues."""
        self._stopping.set()
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join(grace)
        if not self._thread.is_alive():
            for maintenance in self._maintenance:
                maintenance.stop()
            for intake in self.intakes.values():
                intake.close()

    def _run(self) -> None:
        limit_threads(self._threads)
        while not self._stopping.is_set():
            self._wake.clear()
            try:
                worked = [adder.add_next() for adder in self._adders]
                for maintenance in self._maintenance:
                    maintenance.work(idle=0.0 if any(worked) else self._count_idle_seconds())
            except Exception:  # the thread must go on, or accepted jobs would wait for ever
                log.exception("the job worker met an error and continues")
                worked = []
            self._stopping.wait(GAP) if any(worked) else self._wake.wait(POLL_INTERVAL)


class BatchAdder:
    """Adds the waiting images of one collection, one batch at a time."""

    def __init__(self, intake: Intake, threads: int = 1) -> None:
        self._intake = intake
        self._threads = threads
        self._batch = FIRST_BATCH
        self._pause = MIN_PAUSE
        self._not_before = 0.0

    def add_next(self) -> bool:
        """Add one batch; false when nothing waits, or nothing can be added now."""
        intake = self._intake
        if time.monotonic() < self._not_before:
            return False
        try:
            if intake.may_have_lost():
                with hold_write_lock(intake.uploads.folder, patience=0):
                    intake.requeue_lost()
            if not intake.queue.has_work():
                intake.fault = ""
                return False
            with hold_turn(intake.uploads.folder):
                items = intake.queue.claim(self._batch)
                if items:
                    self._add(items)
        except CollectionBusy:
            self._wait(MAX_BUSY_PAUSE)
            return False
        except (StorageError, CollectionError) as error:
            log.warning("adding to %s waits: %s", intake.name, error)
            intake.fault = to_api_error(error).problem
            self._wait(MAX_ERROR_PAUSE)
            return False
        intake.fault = ""
        self._pause = MIN_PAUSE
        return True

    def _add(self, items: list[Item]) -> None:
        intake = self._intake
        begin = time.monotonic()
        try:
            results = self._store(items)
            state = intake.collection.prepare()  # a client that reads "added" can search for the image
        except PERMANENT as error:
            log.error("job %s failed: %s", items[0].job, error)
            intake.queue.fail(items[0].job, to_api_error(error).problem)
            return
        except CollectionBusy:
            intake.queue.release(items)
            raise
        except ResightError as error:
            intake.queue.release(items, to_api_error(error).problem)
            raise
        intake.queue.finish(results, state)
        intake.writes += 1
        if any(one.outcome != "added" for one in results):
            intake.has_orphans.set()
        log.info("job %s: %d images processed", items[0].job, len(items))
        self._adapt((time.monotonic() - begin) / len(items))

    def _store(self, items: list[Item]) -> list[ItemResult]:
        intake = self._intake
        with writer_lock(intake.collection.local_folder):  # else the batch would be encoded for nothing
            pass
        items, changed = divide_by_content(intake.uploads, items)
        encoded = encode_batch(intake.collection, intake.uploads, items, self._threads) if items else None
        with hold_write_lock(intake.uploads.folder, WRITE_PATIENCE):
            wanted = intake.queue.keep_waiting(items)  # a client may have deleted, replaced or cancelled some
            added = add_batch(intake.collection, intake.uploads, wanted, encoded) if wanted else []
            changed = intake.queue.keep_waiting(changed)
        return added + [ItemResult(item, "quarantined", CHANGED) for item in changed]

    def _adapt(self, seconds: float) -> None:
        """Choose the size of the next batch from the seconds per image."""
        self._batch = max(1, min(MAX_BATCH, 2 * self._batch, int(BATCH_SECONDS / max(seconds, 1e-6))))

    def _wait(self, longest: float) -> None:
        self._not_before = time.monotonic() + min(self._pause, longest)
        self._pause = min(2 * self._pause, longest)


def divide_by_content(uploads: UploadStore, items: Sequence[Item]) -> tuple[list[Item], list[Item]]:
    """Items whose uploads hold what was accepted, and those whose uploads have changed on the disk since."""
    whole: list[Item] = []
    changed: list[Item] = []
    for item in items:
        is_whole = item.image.path is not None or uploads.is_whole(item.image.sha256)
        (whole if is_whole else changed).append(item)
    return whole, changed


def encode_batch(
    collection: Collection, uploads: UploadStore, items: Sequence[Item], threads: int = 1
) -> EncodedImages | None:
    """The images, encoded; None when one of them breaks the encoder, for `add_batch` to find out which.

    It runs at low priority in a thread of its own. The caller's thread keeps its priority: it takes locks that searches
    and deletes wait for.
    """

    def work() -> EncodedImages:
        limit_threads(threads)
        lower_priority()
        return collection.encode_images(make_refs(uploads, items))

    try:
        with ThreadPoolExecutor(1, thread_name_prefix="encode-batch") as encoder:
            return encoder.submit(work).result()
    except (CollectionError, StorageError, MissingExtra):
        raise
    except Exception:
        log.warning("cannot encode a batch; its images are added one by one", exc_info=True)
        return None


def add_batch(
    collection: Collection, uploads: UploadStore, items: Sequence[Item], encoded: EncodedImages | None = None
) -> list[ItemResult]:
    """Add the images of the items, and return the outcome of each once they are stored.

    When one image makes the batch fail, its images are added one by one. Errors of the collection or its disk are
    raised. Adding a stored image again changes nothing.
    """
    try:
        return _add_all(collection, uploads, items, encoded)
    except (CollectionError, StorageError, MissingExtra):
        raise
    except Exception as error:  # an unusual image may break an encoder in any way
        if len(items) == 1:
            log.warning("cannot add an image", exc_info=error)
            return [ItemResult(items[0], "quarantined", "it could not be encoded")]
    return [result for item in items for result in add_batch(collection, uploads, [item])]


def make_refs(uploads: UploadStore, items: Sequence[Item]) -> list[ImageRef]:
    return [item.ref(uploads.path(item.image.sha256)) for item in items]


def _add_all(
    collection: Collection, uploads: UploadStore, items: Sequence[Item], encoded: EncodedImages | None
) -> list[ItemResult]:
    refs = make_refs(uploads, items)
    before = _find_records(collection, items)
    report = collection.add(refs, tidy=False, encoded=encoded)  # maintenance.py compacts
    after = _find_records(collection, items)
    reasons = {one.path: one.reason for one in report.skipped}
    return [
        ItemResult(item, "quarantined", reasons[to_url(ref.path)])
        if to_url(ref.path) in reasons
        else ItemResult(item, _compare(item, before.get(ref.id), after.get(ref.id)))
        for item, ref in zip(items, refs, strict=True)
    ]


def _compare(item: Item, before: ImageRecord | None, after: ImageRecord | None) -> Outcome:
    if before is None:
        return "added"
    if before != after:
        return "updated"
    return "added" if item.attempts else "unchanged"  # an interrupted attempt had stored it


def _find_records(collection: Collection, items: Sequence[Item]) -> dict[str, ImageRecord]:
    view = collection.view()
    found = (view.find(item.image.id) for item in items)
    return {record.id: record for record in found if record is not None}
