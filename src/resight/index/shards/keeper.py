"""A thread beside the searches that sees to it that every shard has its replicas.

Once a second it asks the hosts for a sign of life, looks for nodes that came, and arranges the shards of all open
indexes anew; at once where a search has found a host lost. It ends, with all hosts, a while after the last index was
closed: another one that is opened by then need not start them again.
"""

import functools
import logging
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import ray

from resight.errors import ResightError
from resight.index.shards.hosts import HostPool
from resight.index.shards.replicas import Replicas

PERIOD = 1.0  # seconds
LINGER = 30.0  # seconds
START_SECONDS = 30.0  # that nodes may take to start their first actor
log = logging.getLogger("resight.shards")


@dataclass(frozen=True)
class ClusterState:
    """What a service tells of its cluster."""

    nodes: int  # that hold shards
    shards: int
    replicas: int  # that can be asked
    wanted: int  # replicas that there would be, if there were room and nodes for all


class Keeper:
    def __init__(self, job: str, cache: Path) -> None:
        self.pool = HostPool(cache)
        self._job = job
        self._kept: list[Replicas] = []
        self._gone: deque[Replicas] = deque()
        self._told: dict[str, str] = {}  # what went wrong last, of what
        self._woken = threading.Event()
        self._starting = threading.Lock()
        self._thread: threading.Thread | None = None

    def add(self, replicas: Replicas) -> None:
        """Place the shards of an index, and keep them so; an error where a shard lies nowhere."""
        with self._starting:
            self._kept.append(replicas)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="resight-shards", daemon=True)
                self._thread.start()
        try:
            self.pool.refresh(0.0 if self.pool.hosts else START_SECONDS)
            replicas.arrange()
            if any(replicas.choose(shard) is None for shard in range(len(replicas.manifest.shards))):
                raise replicas.explain()
        except BaseException:
            self.remove(replicas)
            raise

    def remove(self, replicas: Replicas) -> None:
        """May be called by the garbage collector, in any thread: it takes no lock and asks nobody."""
        self._gone.append(replicas)
        self._woken.set()

    def wake(self) -> None:
        self._woken.set()

    def tell(self) -> ClusterState:
        kept = list(self._kept)
        shards = [len(replicas.manifest.shards) for replicas in kept]
        wanted = sum(count * replicas.replication for count, replicas in zip(shards, kept, strict=True))
        return ClusterState(len(self.pool.list()), sum(shards), sum(replicas.count() for replicas in kept), wanted)

    def _run(self) -> None:
        idle_since = time.monotonic()
        while True:
            self._woken.wait(PERIOD)
            self._woken.clear()
            if not _is_connected(self._job):
                return
            self._let_go()
            if self._kept:
                idle_since = time.monotonic()
                self._look_after()
            elif time.monotonic() - idle_since > LINGER and self._end():
                return

    def _look_after(self) -> None:
        """One index that cannot be placed, as its files are gone, is no harm to the others."""
        self._try("the cluster", self._look_for_hosts)
        for replicas in list(self._kept):
            self._try(f"the shards of {replicas.folder}", replicas.arrange)

    def _look_for_hosts(self) -> None:
        self.pool.check()
        self.pool.refresh()

    def _try(self, what: str, do: Callable[[], None]) -> None:
        """Tell what goes wrong once, however often a search that waits for it wakes us."""
        try:
            do()
            self._told.pop(what, None)
        except (ResightError, ray.exceptions.RayError, OSError) as error:
            if self._told.get(what) != str(error):
                log.warning("%s could not be seen to, and will be tried again: %s", what, error)
            self._told[what] = str(error)

    def _let_go(self) -> None:
        while self._gone:
            replicas = self._gone.popleft()
            if replicas in self._kept:
                self._kept.remove(replicas)
            self._told.pop(f"the shards of {replicas.folder}", None)
            replicas.drop_all()

    def _end(self) -> bool:
        with self._starting:
            if self._kept:
                return False
            self._thread = None
        self.pool.close()
        return True


def find_keeper(cache: Path | None = None) -> Keeper:
    """Of the cluster that this process is connected to; `cache` is where nodes keep what they fetch."""
    context = ray.get_runtime_context()
    folder = cache or Path(tempfile.gettempdir()) / "resight-shards"
    return _make_keeper(context.get_job_id(), context.gcs_address, folder)


@functools.lru_cache(maxsize=8)
def _make_keeper(job: str, address: str, cache: Path) -> Keeper:  # noqa: ARG001 - it tells one cluster from the next
    return Keeper(job, cache)


def _is_connected(job: str) -> bool:
    return bool(ray.is_initialized()) and ray.get_runtime_context().get_job_id() == job
