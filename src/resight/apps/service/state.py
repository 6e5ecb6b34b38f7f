"""The state that all routes share: the open collections, the threads and processes that work on them, and caches.

`Service` builds all of it from the settings. A background thread prepares the newest state of each collection, so that
no search waits for an index: searches use the previous state until then. They see this process's own writes at once,
and those of other processes within a second or two.
"""

import logging
import threading
import time
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from pathlib import Path

from resight.apps.service.api_keys import CALLER
from resight.apps.service.audit_log import AuditLog
from resight.apps.service.decode_pool import DecodePool
from resight.apps.service.error_responses import ASK_ADMINISTRATOR, ApiError, not_found
from resight.apps.service.executor import SearchExecutor, limit_threads, lower_priority
from resight.apps.service.jobs.intake import Intake
from resight.apps.service.jobs.worker import JobWorker
from resight.apps.service.metrics import Metrics, measure_memory
from resight.apps.service.rate_limit import KeyGuard
from resight.apps.service.registry import CollectionRegistry
from resight.apps.service.settings import ServiceSettings
from resight.apps.service.thumbnails import ThumbnailCache
from resight.collection import Collection, open_collection
from resight.collection.answer import Answer
from resight.collection.view import View
from resight.errors import ResightError, StorageError
from resight.search.filters import Filter

log = logging.getLogger("resight.service")
REFRESH_INTERVAL = 1.0  # seconds
RESULTS = 16  # cached answers
STATES = 4  # of collections that cached answers keep alive, with their indexes
RESULT_LIFETIME = 600.0  # seconds; the store forgets old states after an hour
LISTS = 8  # cached lists of ids per collection
Result = tuple[View, Answer]


class Service:
    """One instance per process. The app's lifespan calls `start` and `stop` once each."""

    def __init__(self, settings: ServiceSettings) -> None:
        self.settings = settings
        self.metrics = Metrics()
        self.key_guard = KeyGuard(settings.keys)
        self.audit = AuditLog(settings.audit_log)
        self.decode_pool = DecodePool(settings.workers, settings.max_pixels)
        self.executor = SearchExecutor(
            settings.workers, settings.slots, settings.timeout, settings.threads, settings.threads_alone
        )
        self.jobs = JobWorker({}, count_idle_seconds=self.executor.count_idle_seconds, threads=settings.threads)
        self.registry = CollectionRegistry(settings.collections, self._open, self._welcome)
        self.refresher = Refresher(self.refresh, settings.threads)
        self.results = ResultCache()
        self.thumbnails = {name: ThumbnailCache(path) for name, path in settings.collections.items()}
        self.paginators = {name: Paginator() for name in settings.collections}
        self.stopping = threading.Event()  # set by the signal to stop: streams then end

    def start(self) -> None:
        """Load everything that the first request would otherwise wait for."""
        self.decode_pool.start()
        self.registry.refresh()
        self.refresher.start()
        self.jobs.start()

    def stop(self) -> None:
        self.stopping.set()
        self.jobs.stop(self.settings.grace)
        self.refresher.stop()
        self.executor.close()
        self.decode_pool.close()

    @property
    def collections(self) -> Mapping[str, Collection]:
        """Those that can be searched and that the caller may use, by name."""
        return {name: collection for name, collection in self.registry.ready.items() if is_visible(name)}

    def list_faults(self) -> dict[str, list[str]]:
        """Name of a collection that the caller may use → what is wrong with it; empty where all is well."""
        faults = self.registry.list_faults()
        for name, intake in self.jobs.intakes.items():
            if intake.fault:
                faults.setdefault(name, []).append(f"images cannot be added: {intake.fault}")
        return {name: words for name, words in faults.items() if is_visible(name)}

    def find_collection(self, name: str | None) -> tuple[str, Collection]:
        """The collection of this name, or the first that the caller may use; a 404 for an unknown name."""
        visible = [one for one in self.settings.collections if is_visible(one)]
        chosen = name or next(iter(visible), self.settings.default)
        if chosen not in visible:
            raise not_found("collection", chosen[:80], f"one of {', '.join(visible)}")
        return chosen, self.registry.find(chosen)

    def find_intake(self, name: str | None) -> Intake:
        """The writing side of a collection; a 403 where the service is read-only."""
        chosen, _ = self.find_collection(name)
        if chosen not in self.jobs.intakes:
            raise ApiError(403, "read-only access", expected="a service without --read-only", fix=ASK_ADMINISTRATOR)
        return self.jobs.intakes[chosen]

    def find_intakes(self, name: str | None) -> list[Intake]:
        """The writing side of one collection, or of all; none where the service is read-only."""
        names = [self.find_collection(name)[0]] if name else list(self.collections)
        return [intake for name, intake in self.jobs.intakes.items() if name in names]

    def find_view(self, name: str, collection: Collection) -> View:
        """The state to search: the last prepared one, with every change that a client was told is done.

        Another process of the service may have made the change; its indexes are then on disk already.
        """
        view = collection.prepared()
        if self.settings.processes == 1 or name not in self.jobs.intakes:
            return view
        try:
            return collection.prepare() if self.jobs.intakes[name].store.read_settled() > view.version else view
        except ResightError as error:  # searches go on with what there is
            log.warning("cannot open the newest state of %s: %s", name, error)
            return view

    def count_images(self) -> int:
        """In the states that searches use: this needs no disk."""
        return sum(len(collection.prepared()) for collection in self.collections.values())

    def count_quarantined(self) -> int | None:
        """Uploads in quarantine; None where a job database cannot be read."""
        try:
            return sum(intake.quarantine.count() for intake in self.find_intakes(None))
        except StorageError:
            return None

    def refresh(self) -> None:
        self.registry.refresh()
        self.update_gauges()

    def update_gauges(self) -> None:
        """Record the current load of this process."""
        self.metrics.set(
            {
                "resight_searches_running": self.executor.running,
                "resight_searches_waiting": self.executor.waiting,
                "resight_decoders_replaced": self.decode_pool.replaced,
                "resight_memory_bytes": measure_memory(),
            }
        )

    def _open(self, path: Path) -> Collection:
        return open_collection(path, must_exist=True, engine=self.settings.engine, read=self.decode_pool.read)

    def _welcome(self, name: str, collection: Collection) -> None:
        if not self.settings.read_only:
            self.jobs.add_collection(name, collection)


def is_visible(name: str) -> bool:
    """Whether the sender of the current request may use a collection. Threads of the service see all of them."""
    caller = CALLER.get()
    return caller is None or not caller.collections or name in caller.collections


class Refresher:
    """The thread that calls `refresh` again and again."""

    def __init__(self, refresh: Callable[[], None], threads: int = 1, interval: float = REFRESH_INTERVAL) -> None:
        self._refresh = refresh
        self._threads = threads
        self._interval = interval
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="refresher", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        limit_threads(self._threads)
        lower_priority()
        while not self._stopping.wait(self._interval):
            try:
                self._refresh()
            except Exception:  # the thread must go on, or searches would see an old state for ever
                log.exception("the refresher met an error and continues")


class ResultCache:
    """The last answers of this process, so that "why" need not search again."""

    def __init__(self, size: int = RESULTS, lifetime: float = RESULT_LIFETIME) -> None:
        self._size = size
        self._lifetime = lifetime
        self._lock = threading.Lock()
        self._results: OrderedDict[Hashable, tuple[float, Result]] = OrderedDict()  # the oldest first

    def get(self, key: Hashable) -> Result | None:
        with self._lock:
            self._evict()
            return self._results[key][1] if key in self._results else None

    def put(self, key: Hashable, result: Result) -> None:
        with self._lock:
            self._results.pop(key, None)
            self._results[key] = time.monotonic(), result
            self._evict()

    def _evict(self) -> None:
        oldest = time.monotonic() - self._lifetime
        while self._results and (
            len(self._results) > self._size
            or next(iter(self._results.values()))[0] < oldest
            or len({id(view) for _, (view, _) in self._results.values()}) > STATES
        ):
            self._results.popitem(last=False)


class Paginator:
    """Pages of a collection's image ids, in their order. It caches the last lists."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lists: OrderedDict[tuple[object, ...], list[str]] = OrderedDict()

    def page(
        self, view: View, filters: tuple[Filter, ...], after: str | None, limit: int
    ) -> tuple[list[str], str | None, int]:
        """The ids of a page, the `after` of the next page, and the number of ids in total."""
        ids = self._find(view, filters)
        begin = bisect_right(ids, after) if after is not None else 0
        chosen = ids[begin : begin + limit]
        return chosen, chosen[-1] if begin + limit < len(ids) else None, len(ids)

    def _find(self, view: View, filters: tuple[Filter, ...]) -> list[str]:
        key = view.version, filters
        with self._lock:
            if key in self._lists:
                self._lists.move_to_end(key)
                return self._lists[key]
        ids = sorted(view.filter_images(filters))
        with self._lock:
            self._lists[key] = ids
            while len(self._lists) > LISTS:
                self._lists.popitem(last=False)
        return ids
