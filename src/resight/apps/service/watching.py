"""The thread that prepares what others have written, so that no search waits for an index.

Searches go on with the state before until the new one is ready. What this process adds or deletes is prepared before it
is told to be done; what another process writes is seen within a second or two.
"""

import logging
import threading
from collections.abc import Iterable

from resight.apps.service.threads import limit_threads, step_back
from resight.collection import Collection

log = logging.getLogger("resight.service")
LOOK_EVERY = 1.0  # seconds


class Watcher:
    def __init__(self, collections: Iterable[Collection], threads: int = 1, look_every: float = LOOK_EVERY) -> None:
        self._collections = tuple(collections)
        self._threads = threads
        self._look_every = look_every
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="watcher", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        limit_threads(self._threads)
        step_back()
        while not self._stopping.wait(self._look_every):
            for collection in self._collections:
                try:
                    collection.prepare()
                except Exception:  # a fault here must not end the thread: searches would see an old state for good
                    log.exception("the newest state of %s cannot be opened: the one before serves", collection.path)
