"""A thread beside the searches that keeps every shard at its number of replicas.

Once a second it pings the hosts, looks for new nodes, and rearranges the shards of all open indexes; at once if a
search has found a host lost. It ends, with all hosts, some time after the last index was closed, so that an index
opened soon after need not start them again. Call `stop_replica_managers` before Ray is shut down; otherwise the thread
ends when it finds Ray gone.
"""

import logging
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import ray

from resight.errors import CollectionError, ResightError
from resight.index.shards.hosts import HostPool
from resight.index.shards.replicas import Replicas

PERIOD = 1.0  # seconds
LINGER = 30.0  # seconds
GATHER_SECONDS = 30.0  # that the first index waits for all nodes, so that no shard has to move at once
START_SECONDS = 120.0  # that nodes may take to start their first actor, as on a busy machine they do
STOP_SECONDS = 30.0  # that the thread may take to finish what it is at
NAP = 0.1  # seconds between looks for a host that is being started
log = logging.getLogger("resight.shards")


@dataclass(frozen=True)
class ClusterState:
    """What a service tells of its cluster."""

    nodes: int  # that hold shards
    shards: int
    replicas: int  # that can be asked
    wanted: int  # replicas that there would be, if there were room and nodes for all


@dataclass(frozen=True)
class Connection:
    """The cluster that this process is connected to."""

    job: str
    address: str


class Keeper:
    def __init__(self, connection: Connection, cache: Path) -> None:
        self.pool = HostPool(cache)
        self._connection = connection
        self._kept: list[Replicas] = []
        self._gone: deque[Replicas] = deque()
        self._told: dict[object, str] = {}  # what went wrong last, of what
        self._woken = threading.Event()
        self._starting = threading.Lock()
        self._thread: threading.Thread | None = None
        self._stopping = False

    def add(self, replicas: Replicas) -> None:
        """Place the shards of an index, and keep them so; an error where a shard lies nowhere."""
        with self._starting:
            self._kept.append(replicas)
            self._start_thread()
        try:
            self._place(replicas)
        except BaseException:
            self.remove(replicas)
            raise

    def remove(self, replicas: Replicas) -> None:
        """May be called by the garbage collector, in any thread: it takes no lock and asks nobody."""
        self._gone.append(replicas)
        self._woken.set()

    def wake(self) -> None:
        """Look after the shards now, with a new thread where the old one has ended."""
        with self._starting:
            self._start_thread()
        self._woken.set()

    def stop(self) -> None:
        """End the thread and all hosts. An index that is opened or asked afterwards starts them again."""
        with self._starting:
            thread, self._stopping = self._thread, True
        self._woken.set()
        if thread is not None:
            thread.join(STOP_SECONDS)
        self.pool.close()
        with self._starting:
            self._stopping = False

    def tell(self) -> ClusterState:
        kept = list(self._kept)
        shards = [len(replicas.manifest.shards) for replicas in kept]
        wanted = sum(count * replicas.replication for count, replicas in zip(shards, kept, strict=True))
        return ClusterState(len(self.pool.list()), sum(shards), sum(replicas.count() for replicas in kept), wanted)

    def _place(self, replicas: Replicas) -> None:
        """Until every shard lies somewhere, or nobody is left who might still take it."""
        deadline = time.monotonic() + START_SECONDS
        while True:
            self.pool.refresh(0.0 if self.pool.list() else min(GATHER_SECONDS, max(0.0, deadline - time.monotonic())))
            hosts = self.pool.list()
            error: ResightError | None = None
            try:
                replicas.arrange()
            except ResightError as failed:  # which may be one node's alone
                error = failed
            if not replicas.list_bare():
                return
            asked = hosts == self.pool.list() and not self.pool.is_starting() and bool(hosts or self.pool.refused)
            if asked or isinstance(error, CollectionError) or time.monotonic() >= deadline:
                raise error or replicas.explain()
            time.sleep(NAP)

    def _start_thread(self) -> None:
        """The caller holds `_starting`."""
        if self._thread is None and not self._stopping:
            self._thread = threading.Thread(target=self._run, name="resight-shards", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        try:
            self._look_until_idle()
        finally:
            with self._starting:
                if self._thread is threading.current_thread():  # else another one has been started since `_end`
                    self._thread = None

    def _look_until_idle(self) -> None:
        idle_since = time.monotonic()
        while True:
            self._woken.wait(PERIOD)
            self._woken.clear()
            if self._stopping or find_connection() != self._connection:
                return
            self._let_go()
            if self._kept:
                idle_since = time.monotonic()
                self._look_after()
            elif time.monotonic() - idle_since > LINGER and self._end():
                return

    def _look_after(self) -> None:
        """One index that cannot be placed, as its files are gone, is no harm to the others."""
        self._try(self, "the cluster", self._look_for_hosts)
        for replicas in list(self._kept):
            self._try(replicas, f"the shards of {replicas.folder}", replicas.arrange)

    def _look_for_hosts(self) -> None:
        self.pool.check()
        self.pool.refresh()

    def _try(self, what: object, name: str, do: Callable[[], None]) -> None:
        """Tell what goes wrong once, however often a search that waits for it wakes us. Nothing may end the thread: the
        other indexes need it."""
        try:
            do()
            self._told.pop(what, None)
        except Exception as error:
            if self._told.get(what) != str(error) and find_connection() == self._connection:
                log.warning("%s could not be seen to, and will be tried again: %s", name, error)
            self._told[what] = str(error)

    def _let_go(self) -> None:
        while self._gone:
            replicas = self._gone.popleft()
            if replicas in self._kept:
                self._kept.remove(replicas)
            self._try(replicas, f"the shards of {replicas.folder}", replicas.drop_all)
            self._told.pop(replicas, None)

    def _end(self) -> bool:
        with self._starting:
            if self._kept:
                return False
            self._thread = None
        self.pool.close()
        return True


_keepers: dict[tuple[Connection, Path], Keeper] = {}
_making = threading.Lock()


def find_keeper(cache: Path | None = None) -> Keeper:
    """Of the cluster that this process is connected to; `cache` is where nodes keep what they fetch."""
    context = ray.get_runtime_context()
    connection = Connection(context.get_job_id(), context.gcs_address)
    folder = cache or Path(tempfile.gettempdir()) / "resight-shards"
    with _making:
        for other in [other for other in _keepers if other[0] != connection]:
            del _keepers[other]  # of a cluster that this process has left: its thread ends by itself
        if (connection, folder) not in _keepers:
            _keepers[connection, folder] = Keeper(connection, folder)
        return _keepers[connection, folder]


def stop_replica_managers() -> None:
    """To be called before Ray is shut down."""
    with _making:
        keepers = list(_keepers.values())
    for keeper in keepers:
        keeper.stop()


def find_connection() -> Connection | None:
    try:
        context = ray.get_runtime_context()
        return Connection(context.get_job_id(), context.gcs_address) if ray.is_initialized() else None
    except Exception:  # Ray is being shut down beside us
        return None
