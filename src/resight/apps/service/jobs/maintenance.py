"""What may be done when nothing waits: unused uploads and pictures and old jobs are removed, the collection is tidied.

An upload is unused when no stored image and no open job has its hash. Tidying writes all of the store and of the
indexes anew. It is begun after a few changes where nobody has searched for a while, and otherwise after so many that it
costs each of them little: the larger the collection, the more. The longer it takes, the more seldom it is begun.
"""

import contextlib
import logging
import time

from resight.apps.service.jobs.compaction import Tidier, TidyingProcess
from resight.apps.service.jobs.intake import Intake
from resight.apps.service.jobs.turns import take_turn
from resight.apps.service.thumbnails import PictureCache
from resight.errors import CollectionBusy, CollectionError, StorageError

log = logging.getLogger("resight.service.jobs")
SWEEP_EVERY = 30.0  # seconds, at the least
FEW, MANY = 16, 256  # changes after which it is tidied when it is quiet, and in any case
LARGE = 32  # in any case not before one change for so many images
QUIET = 10.0  # seconds without a search
SHARE = 20  # times as long as tidying took, nothing is tidied again


class Housekeeper:
    def __init__(self, intake: Intake, sweep_every: float = SWEEP_EVERY, tidier: Tidier | None = None) -> None:
        self._intake = intake
        self._sweep_every = sweep_every
        self._tidier = tidier or TidyingProcess(intake.collection)
        self._next_sweep = self._next_tidy = 0.0
        self._tidied = self._begun = 0  # how many changes there had been
        intake.littered.set()  # what the last process left

    def work(self, idle: float) -> None:
        """Do what is due; nobody has wanted anything for `idle` seconds, 0 where somebody does now."""
        now = time.monotonic()
        with contextlib.suppress(CollectionBusy):  # it is as well done later
            try:
                if idle and self._intake.littered.is_set() and now >= self._next_sweep:
                    self._next_sweep = now + self._sweep_every
                    sweep(self._intake)
                if self._tidier.is_busy:
                    self._look_after()
                elif now >= self._next_tidy and self._is_untidy(idle):
                    self._tidy()
            except (StorageError, CollectionError) as error:
                if isinstance(error, CollectionBusy):
                    raise
                log.warning("housekeeping of %s waits: %s", self._intake.name, error)

    def stop(self) -> None:
        self._tidier.stop()

    def _is_untidy(self, idle: float) -> bool:
        changes = self._intake.writes - self._tidied
        if changes < FEW or idle >= QUIET:
            return changes >= FEW
        return changes >= MANY and changes >= len(self._intake.collection.view()) // LARGE

    def _tidy(self) -> None:
        self._next_tidy = time.monotonic() + self._sweep_every
        self._begun = self._intake.writes
        self._tidier.start()

    def _look_after(self) -> None:
        self._next_tidy = time.monotonic() + self._sweep_every  # where it has failed
        took = self._tidier.poll()
        if took is not None:
            self._tidied = self._begun
            self._next_tidy = time.monotonic() + max(self._sweep_every, SHARE * took)
            log.info("%s tidied in %.1f s", self._intake.name, took)


def sweep(intake: Intake) -> int:
    """Remove uploads and pictures that nothing refers to, and jobs that were over long ago; gives how many uploads."""
    pictures = PictureCache(intake.collection.path)
    if not intake.uploads.folder.is_dir():  # nobody has uploaded anything: nothing is made
        intake.littered.clear()
        if pictures.folder.is_dir():
            pictures.remove_unused(_list_hashes(intake))
        return 0
    intake.journal.forget()
    with take_turn(intake.uploads.folder, patience=0):  # no item becomes an image meanwhile
        intake.littered.clear()
        present = list(intake.uploads.list_hashes())
        stored = _list_hashes(intake)
        with intake.journal.hold() as promised:
            removed = intake.uploads.remove_unused(iter(present), stored | promised)
        intake.uploads.remove_unfinished()
    pictures.remove_unused(stored)
    if removed:
        log.info("%d uploads removed from %s", removed, intake.name)
    return removed


def _list_hashes(intake: Intake) -> set[str]:
    return {record.sha256 for record in intake.collection.view().records()}
