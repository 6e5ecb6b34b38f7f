"""The last answers of this process, so that "why" need not search again. What is missing here is worked out anew.

The images of a collection in the order of their ids, a page at a time. The last lists asked for are kept.

The thread that prepares what others have written, so that no search waits for an index.

Searches go on with the state before until the new one is ready. What this process adds or deletes is prepared before it
is told to be done; what another process writes is seen within a second or two.

What all routes share: the collections, who works on them, and what is remembered between requests.
"""

import logging
import threading
import time
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Hashable, Iterable, Mapping, Sequence

from resight.apps.service.decoding import DecoderPool
from resight.apps.service.error_responses import refuse_unknown
from resight.apps.service.executor import WorkerPool, limit_threads, step_back
from resight.apps.service.jobs.worker import JobRunner
from resight.apps.service.metrics import Metrics
from resight.apps.service.settings import ServiceSettings
from resight.apps.service.thumbnails import PictureCache
from resight.collection import Answer, Collection, open_collection
from resight.collection.view import Near, View

KEPT = 16  # each keeps the state of the collection that it was found in
LIFETIME = 600.0  # seconds; the store forgets old states after an hour
Found = tuple[View, Answer]


class AnswerCache:
    def __init__(self, size: int = KEPT, lifetime: float = LIFETIME) -> None:
        self._size = size
        self._lifetime = lifetime
        self._lock = threading.Lock()
        self._answers: OrderedDict[Hashable, tuple[float, Found]] = OrderedDict()  # the oldest first

    def get(self, question: Hashable) -> Found | None:
        with self._lock:
            self._drop()
            return self._answers[question][1] if question in self._answers else None

    def put(self, question: Hashable, found: Found) -> None:
        with self._lock:
            self._answers.pop(question, None)
            self._answers[question] = time.monotonic(), found
            self._drop()

    def _drop(self) -> None:
        oldest = time.monotonic() - self._lifetime
        while self._answers and (len(self._answers) > self._size or next(iter(self._answers.values()))[0] < oldest):
            self._answers.popitem(last=False)


KEPT_LISTING = 8


class Listing:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lists: OrderedDict[tuple[object, ...], list[str]] = OrderedDict()

    def page(
        self, view: View, where: Sequence[str], near: Near | None, after: str | None, limit: int
    ) -> tuple[list[str], str | None, int]:
        """Ids of a page, the id that the next one comes after, and how many there are in all."""
        ids = self._find(view, tuple(where), near)
        begin = bisect_right(ids, after) if after is not None else 0
        chosen = ids[begin : begin + limit]
        return chosen, chosen[-1] if begin + limit < len(ids) else None, len(ids)

    def _find(self, view: View, where: tuple[str, ...], near: Near | None) -> list[str]:
        key = view.version, where, near
        with self._lock:
            if key in self._lists:
                self._lists.move_to_end(key)
                return self._lists[key]
        ids = sorted(view.choose(where, near))
        with self._lock:
            self._lists[key] = ids
            while len(self._lists) > KEPT_LISTING:
                self._lists.popitem(last=False)
        return ids


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


class Service:
    """One a process. `start` and `stop` are called once each, by the app's lifespan."""

    def __init__(self, settings: ServiceSettings) -> None:
        self.settings = settings
        self.collections: Mapping[str, Collection] = {
            name: open_collection(path, must_exist=True, engine=settings.engine)
            for name, path in settings.collections.items()
        }
        self.pool = WorkerPool(
            settings.workers, settings.places, settings.timeout, settings.threads, settings.threads_alone
        )
        self.decoders = DecoderPool(settings.workers, settings.max_pixels)
        writable = {} if settings.read_only else self.collections
        self.jobs = JobRunner(writable, count_quiet=self.pool.count_quiet, threads=settings.threads)
        self.watcher = Watcher(self.collections.values(), settings.threads)
        self.answers = AnswerCache()
        self.pictures = {name: PictureCache(path) for name, path in settings.collections.items()}
        self.listings = {name: Listing() for name in settings.collections}
        self.metrics = Metrics(settings.processes)
        self.stopping = threading.Event()  # set as soon as the signal to stop has come: streams end then

    def start(self) -> None:
        """Everything that the first request would otherwise wait for."""
        self.decoders.start()
        for collection in self.collections.values():
            warm_up(collection)
        self.watcher.start()
        self.jobs.start()

    def stop(self) -> None:
        self.stopping.set()
        self.jobs.stop(self.settings.grace)
        self.watcher.stop()
        self.pool.close()
        self.decoders.close()

    def find_collection(self, name: str | None) -> tuple[str, Collection]:
        """By name, or the first where none is given; a 404 for a name that is not served."""
        chosen = name or self.settings.default
        if chosen not in self.collections:
            raise refuse_unknown("collection", chosen[:80], f"one of {', '.join(self.collections)}")
        return chosen, self.collections[chosen]


def warm_up(collection: Collection) -> None:
    """Load the networks and open the indexes."""
    _ = collection.query_side, collection.prepare()
