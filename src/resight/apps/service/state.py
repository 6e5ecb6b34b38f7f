"""What all routes share: the collections, who works on them, and what is remembered between requests."""

import threading
from collections.abc import Mapping

from resight.apps.service.answers import AnswerCache
from resight.apps.service.decoders import DecoderPool
from resight.apps.service.jobs.runner import JobRunner
from resight.apps.service.listing import Listing
from resight.apps.service.metrics import Metrics
from resight.apps.service.pictures import PictureCache
from resight.apps.service.refusals import refuse_unknown
from resight.apps.service.settings import ServiceSettings
from resight.apps.service.watching import Watcher
from resight.apps.service.workers import WorkerPool
from resight.collection import Collection, open_collection


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
