"""Work that may be done when nothing waits: removing orphaned uploads, thumbnails and old jobs, and compaction.

An upload is orphaned when neither a stored image nor a job needs its content; it is removed if the job database says
why, and goes to the quarantine otherwise (upload_ledger.py). Compaction rewrites the whole store and
its indexes. It starts after a few changes once no search has run for a while, and otherwise after so many changes that
it costs each of them little: the larger the collection, the more. The longer it takes, the less often it runs.
"""

import contextlib
import logging
import time

from resight.apps.service.jobs.compaction import CompactionProcess, Compactor
from resight.apps.service.jobs.intake import Intake
from resight.apps.service.jobs.write_lock import hold_write_lock
from resight.apps.service.thumbnails import ThumbnailCache
from resight.errors import CollectionBusy, CollectionError, StorageError

log = logging.getLogger("resight.service.jobs")
SWEEP_INTERVAL = 30.0  # seconds, at least
FEW, MANY = 16, 256  # changes before a compaction: while the service is idle, and in any case
IMAGES_PER_CHANGE = 32  # in any case at least one change per so many images
IDLE = 10.0  # seconds without a search
PAUSE_FACTOR = 20  # the pause after a compaction, in multiples of its duration


class Maintenance:
    """The maintenance of one collection by one process."""

    def __init__(
        self, intake: Intake, sweep_interval: float = SWEEP_INTERVAL, compactor: Compactor | None = None
    ) -> None:
        self._intake = intake
        self._sweep_interval = sweep_interval
        self._compactor = compactor or CompactionProcess(intake.collection)
        self._next_sweep = self._next_compaction = 0.0
        self._compacted = self._started = 0  # `intake.writes` at the last compaction, and when it started
        intake.has_orphans.set()  # the last process may have left some

    def work(self, idle: float) -> None:
        """Do what is due. `idle`: seconds since the last work for a client; 0 while there is some."""
        now = time.monotonic()
        with contextlib.suppress(CollectionBusy):  # later is as good
            try:
                if idle and self._intake.has_orphans.is_set() and now >= self._next_sweep:
                    self._next_sweep = now + self._sweep_interval
                    sweep(self._intake)
                if self._compactor.is_busy:
                    self._check_compaction()
                elif now >= self._next_compaction and self._needs_compaction(idle):
                    self._start_compaction()
            except (StorageError, CollectionError) as error:
                if isinstance(error, CollectionBusy):
                    raise
                log.warning("maintenance of %s waits: %s", self._intake.name, error)

    def stop(self) -> None:
        self._compactor.stop()

    def _needs_compaction(self, idle: float) -> bool:
        changes = self._intake.writes - self._compacted
        if changes < FEW or idle >= IDLE:
            return changes >= FEW
        return changes >= MANY and changes >= len(self._intake.collection.view()) // IMAGES_PER_CHANGE

    def _start_compaction(self) -> None:
        self._next_compaction = time.monotonic() + self._sweep_interval
        self._started = self._intake.writes
        self._compactor.start()

    def _check_compaction(self) -> None:
        self._next_compaction = time.monotonic() + self._sweep_interval  # in case it has failed
        seconds = self._compactor.poll()
        if seconds is not None:
            self._compacted = self._started
            self._next_compaction = time.monotonic() + max(self._sweep_interval, PAUSE_FACTOR * seconds)
            log.info("%s compacted in %.1f s", self._intake.name, seconds)


def sweep(intake: Intake) -> int:
    """Remove orphaned uploads and thumbnails, and jobs that ended long ago; returns the number of removed uploads."""
    thumbnails = ThumbnailCache(intake.collection.path)
    if not intake.uploads.folder.is_dir():  # nothing was ever uploaded: create no files
        intake.has_orphans.clear()
        if thumbnails.folder.is_dir():
            thumbnails.remove_unused(_list_hashes(intake))
        return 0
    intake.store.forget()
    with hold_write_lock(intake.uploads.folder, patience=0):  # no item becomes an image meanwhile
        intake.has_orphans.clear()
        intake.requeue_lost()
        present = list(intake.uploads.list_hashes())
        view = intake.collection.view()
        stored = {record.sha256 for record in view.records()}
        with intake.store.hold() as ledger:
            found = ledger.sort(present, stored, view)
            removed = intake.uploads.remove(found.removable)
            ledger.forget(found.removable)
            ledger.quarantine(intake.uploads.measure(found.unexplained))
        intake.uploads.remove_temporary()
    thumbnails.remove_unused(stored)
    if removed:
        log.info("%d orphaned uploads removed from %s", removed, intake.name)
    if found.unexplained:
        log.warning("%d uploads of %s belong to no job and are in the quarantine", len(found.unexplained), intake.name)
    return removed


def _list_hashes(intake: Intake) -> set[str]:
    return {record.sha256 for record in intake.collection.view().records()}
