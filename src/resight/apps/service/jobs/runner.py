"""The thread of a process that adds what clients were promised, and keeps house when nothing waits.

Every process of a service has one; they take turns, and each goes on with what another left.
"""

import logging
import math
import threading
from collections.abc import Callable, Mapping

from resight.apps.service.jobs.adder import Adder
from resight.apps.service.jobs.housekeeping import SWEEP_EVERY, Housekeeper
from resight.apps.service.jobs.intake import Intake
from resight.apps.service.jobs.journal import Limits
from resight.apps.service.jobs.turns import GAP
from resight.apps.service.threads import limit_threads, step_back
from resight.collection import Collection

log = logging.getLogger("resight.service.jobs")
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
                log.exception("the jobs thread met an error and goes on")
                worked = []
            self._stopping.wait(GAP) if any(worked) else self._wake.wait(LOOK_EVERY)
