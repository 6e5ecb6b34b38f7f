"""What waits for one collection is added, a portion at a time.

A portion is as large as can be added in about a second or two, so that deletes, other jobs and other processes get
their turn. When somebody else writes, or the disk is full, it tries again later: a promise is not given up.

The thread of a process that adds what clients were promised, and keeps house when nothing waits.

Every process of a service has one; they take turns, and each goes on with what another left.
"""

import logging
import math
import threading
import time
from collections.abc import Callable, Mapping

from resight.apps.service.error_responses import to_refusal
from resight.apps.service.executor import limit_threads, step_back
from resight.apps.service.jobs.intake import Intake
from resight.apps.service.jobs.maintenance import SWEEP_EVERY, Housekeeper
from resight.apps.service.jobs.models import Item
from resight.apps.service.jobs.store import Limits
from resight.apps.service.jobs.turns import GAP, add_portion, take_turn
from resight.collection import Collection
from resight.errors import (
    CollectionBusy,
    CollectionError,
    MissingExtra,
    ResightError,
    SpaceMismatch,
    StorageError,
    VersionMismatch,
)

log = logging.getLogger("resight.service.jobs")
LARGEST, FIRST = 32, 4  # images of a portion
AIM = 1.5  # seconds of a portion
SHORTEST, BUSY, TROUBLE = 0.1, 1.0, 30.0  # seconds until it is tried again: at first, and at most in either case
HOPELESS = (SpaceMismatch, VersionMismatch, MissingExtra)


class Adder:
    def __init__(self, intake: Intake) -> None:
        self._intake = intake
        self._portion = FIRST
        self._pause = SHORTEST
        self._not_before = 0.0

    def add_next(self) -> bool:
        """Add one portion, if there is one and it is our turn; false when there is nothing to do now."""
        if time.monotonic() < self._not_before:
            return False
        try:
            if not self._intake.queue.has_work():
                return False
            with take_turn(self._intake.uploads.folder, patience=0):
                items = self._intake.queue.claim(self._portion)
                if items:
                    self._add(items)
        except CollectionBusy:
            self._wait(BUSY)
            return False
        except (StorageError, CollectionError) as error:
            log.warning("adding to %s waits: %s", self._intake.name, error)
            self._wait(TROUBLE)
            return False
        self._pause = SHORTEST
        return True

    def _add(self, items: list[Item]) -> None:
        intake = self._intake
        begin = time.monotonic()
        try:
            settled = add_portion(intake.collection, intake.uploads, items)
            intake.collection.prepare()  # who is told that an image is there finds it
        except HOPELESS as error:
            log.error("job %s failed: %s", items[0].job, error)
            intake.queue.fail(items[0].job, to_refusal(error).problem)
            return
        except CollectionBusy:
            intake.queue.release(items)
            raise
        except ResightError as error:
            intake.queue.release(items, to_refusal(error).problem)
            raise
        intake.queue.settle(settled)
        intake.writes += 1
        if any(one.outcome != "added" for one in settled):
            intake.littered.set()
        log.info("job %s: %d images dealt with", items[0].job, len(items))
        self._learn((time.monotonic() - begin) / len(items))

    def _learn(self, seconds: float) -> None:
        """The next portion's size, from the time that an image took."""
        self._portion = max(1, min(LARGEST, 2 * self._portion, int(AIM / max(seconds, 1e-6))))

    def _wait(self, longest: float) -> None:
        self._not_before = time.monotonic() + min(self._pause, longest)
        self._pause = min(2 * self._pause, longest)


log_runner = logging.getLogger("resight.service.jobs")
LOOK_EVERY = 1.0  # seconds: other processes promise, too


class JobRunner:
    def __init__(
        self,
        collections: Mapping[str, Collection],
        *,
        count_quiet: Callable[[], float] = lambda: math.inf,
        threads: int = 1,
        limits: Limits | None = None,
        sweep_every: float = SWEEP_EVERY,
    ) -> None:
        """`count_quiet` gives the seconds since somebody searched: 0 while somebody does, and house is not kept."""
        self._count_quiet = count_quiet
        self._threads = threads
        self.intakes = {name: Intake(name, collection, limits) for name, collection in collections.items()}
        self._adders = [Adder(intake) for intake in self.intakes.values()]
        self._keepers = [Housekeeper(intake, sweep_every) for intake in self.intakes.values()]
        self._wake = threading.Event()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="jobs", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def wake(self) -> None:
        """There is something to do."""
        self._wake.set()

    def stop(self, grace: float) -> None:
        """End after the portion that is being added; what waits is added by whoever starts next."""
        self._stopping.set()
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join(grace)
        if not self._thread.is_alive():
            for keeper in self._keepers:
                keeper.stop()
            for intake in self.intakes.values():
                intake.close()

    def _run(self) -> None:
        limit_threads(self._threads)
        step_back()
        while not self._stopping.is_set():
            self._wake.clear()
            try:
                worked = [adder.add_next() for adder in self._adders]
                for keeper in self._keepers:
                    keeper.work(idle=0.0 if any(worked) else self._count_quiet())
            except Exception:  # a fault here must not end the thread: promises would never be kept
                log_runner.exception("the jobs thread met an error and goes on")
                worked = []
            self._stopping.wait(GAP) if any(worked) else self._wake.wait(LOOK_EVERY)
