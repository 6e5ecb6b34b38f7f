"""The served collections: those that can be searched, and why others cannot.

A collection that cannot be opened does not stop the service: its routes answer 503 with the reason, the health check
reports it, and `refresh` tries again. If the newest state of an open collection cannot be prepared (a full disk, a
damaged index), searches go on with the previous state, and the health check reports that too.
"""

import logging
import shutil
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from resight.apps.service.error_responses import ApiError
from resight.collection import Collection
from resight.errors import ResightError
from resight.files.remote import is_remote

log = logging.getLogger("resight.service")
RETRY = 5.0  # seconds between two attempts to open a collection
LOW_SPACE = 64 * 2**20  # bytes

Open = Callable[[Path], Collection]
Welcome = Callable[[str, Collection], None]


class CollectionRegistry:
    def __init__(self, paths: Mapping[str, Path], open_one: Open, welcome: Welcome) -> None:
        """`welcome` is called once with each collection that can be searched."""
        self.ready: dict[str, Collection] = {}  # replaced, never changed: any thread may iterate over it
        self.known: dict[str, Collection] = {}  # those whose description could be read, ready or not
        self._paths = paths
        self._open_one = open_one
        self._welcome = welcome
        self._faults: dict[str, str] = {}
        self._not_before: dict[str, float] = {}
        for name in paths:
            self._attempt(name, self._describe)

    def refresh(self) -> None:
        """Prepare the newest state of each collection; open those that are not open yet."""
        for name in self._paths:
            if name in self.ready:
                self._attempt(name, self._prepare)
            elif time.monotonic() >= self._not_before.get(name, 0.0):
                self._not_before[name] = time.monotonic() + RETRY
                self._attempt(name, self._open)

    def find(self, name: str) -> Collection:
        """A 503 for a collection that cannot be searched now."""
        if name in self.ready:
            return self.ready[name]
        raise ApiError(
            503,
            "the collection cannot be opened",
            expected="a collection that is complete and readable",
            actual=self._faults.get(name, "it is being opened"),
            fix="ask the administrator of this service, who finds the reason in its log; it tries again by itself",
            retry_after=RETRY,
        )

    def list_faults(self) -> dict[str, list[str]]:
        """Name → what is wrong with a collection; those without faults are left out."""
        found = {name: [*filter(None, [self._faults.get(name)]), *self._check_space(name)] for name in self._paths}
        return {name: faults for name, faults in found.items() if faults}

    def _describe(self, name: str) -> None:
        self.known[name] = self._open_one(self._paths[name])

    def _open(self, name: str) -> None:
        if name not in self.known:
            self._describe(name)
        collection = self.known[name]
        _ = collection.query_side, collection.prepare()  # loads the networks, opens the indexes
        ready = {**self.ready, name: collection}
        self.ready = {name: ready[name] for name in self._paths if name in ready}
        self._welcome(name, collection)

    def _prepare(self, name: str) -> None:
        self.ready[name].prepare()

    def _attempt(self, name: str, work: Callable[[str], None]) -> None:
        try:
            work(name)
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # a damaged store may also panic below Python
            fault = self._word(name, error)
            if fault != self._faults.get(name):
                expected = isinstance(error, ResightError)
                log.error(
                    "%s is degraded: %s", name, error if expected else fault, exc_info=None if expected else error
                )
            self._faults[name] = fault
        else:
            if name in self.ready and self._faults.pop(name, ""):
                log.warning("%s is well again", name)

    def _word(self, name: str, error: BaseException) -> str:
        """The reason for clients, who need not know where the collection lies."""
        if isinstance(error, ResightError):
            return error.problem.replace(str(self._paths[name]), name)
        return f"internal error ({type(error).__name__}); see the log of the service"

    def _check_space(self, name: str) -> list[str]:
        if is_remote(self._paths[name]):
            return []
        try:
            free = shutil.disk_usage(self._paths[name]).free
        except OSError:
            return []  # it cannot be opened either
        return [f"only {free / 2**20:.0f} MiB are free on its disk"] if free < LOW_SPACE else []
