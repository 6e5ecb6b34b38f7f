"""A thread beside the searches that keeps every shard at its number of replicas.

Once per second, and at once when a search has lost a host, the thread pings the hosts, looks for new nodes, and
rearranges the shards of all open indexes. Some time after the last index was closed, it ends the hosts and itself; an
index that opens before then finds the hosts still running. Call `stop_replica_managers` before you shut down Ray;
otherwise the thread ends when it finds Ray gone.
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

PERIOD = 1.0  # seconds between two rounds
LINGER = 30.0  # seconds from the last close to the end of the hosts
GATHER_SECONDS = 30.0  # the first index waits so long for all nodes, so that shards need not move right away
START_SECONDS = 120.0  # time limit for nodes to start their first actor, which is slow on a busy machine
STOP_SECONDS = 30.0  # time limit for the thread to finish its current round
NAP = 0.1  # seconds between two looks for a host that is starting
log = logging.getLogger("resight.shards")


@dataclass(frozen=True)
class ClusterState:
    """What a service reports about its cluster."""

    nodes: int  # that hold shards
    shards: int
    replicas: int  # that a search can use now
    wanted: int  # replicas that the settings ask for


@dataclass(frozen=True)
class Connection:
    """The cluster that this process is connected to."""

    job: str
    address: str


class ReplicaManager:
    def __init__(self, connection: Connection, cache: Path) -> None:
        self.pool = HostPool(cache)
        self._connection = connection
        self._open: list[Replicas] = []
        self._closed: deque[Replicas] = deque()
        self._reported: dict[object, str] = {}  # subject → the last error that was logged about it
        self._woken = threading.Event()
        self._starting = threading.Lock()
        self._thread: threading.Thread | None = None
        self._stopping = False

    def add(self, replicas: Replicas) -> None:
        """Place the shards of an index and keep them placed; raise if no node can hold one of them."""
        with self._starting:
            self._open.append(replicas)
            self._start_thread()
        try:
            self._place(replicas)
        except BaseException:
            self.remove(replicas)
            raise

    def remove(self, replicas: Replicas) -> None:
        """Stop keeping an index. It takes no lock: the garbage collector may call it in any thread."""
        self._closed.append(replicas)
        self._woken.set()

    def wake(self) -> None:
        """Run a round now, in a new thread if the old one has ended."""
        with self._starting:
            self._start_thread()
        self._woken.set()

    def stop(self) -> None:
        """End the thread and all hosts. An index that a caller opens or searches later starts them again."""
        with self._starting:
            thread, self._stopping = self._thread, True
        self._woken.set()
        if thread is not None:
            thread.join(STOP_SECONDS)
        self.pool.close()
        with self._starting:
            self._stopping = False

    def describe_state(self) -> ClusterState:
        indexes = list(self._open)
        shards = [len(replicas.manifest.shards) for replicas in indexes]
        wanted = sum(count * replicas.replication for count, replicas in zip(shards, indexes, strict=True))
        return ClusterState(len(self.pool.list()), sum(shards), sum(replicas.count() for replicas in indexes), wanted)

    def _place(self, replicas: Replicas) -> None:
        """Arrange until some host holds every shard, or until no host is left that could take the missing ones."""
        deadline = time.monotonic() + START_SECONDS
        while True:
            self.pool.refresh(0.0 if self.pool.list() else min(GATHER_SECONDS, max(0.0, deadline - time.monotonic())))
            hosts = self.pool.list()
            error: ResightError | None = None
            try:
                replicas.arrange()
            except ResightError as failed:  # perhaps of one node only
                error = failed
            if not replicas.list_unheld():
                return
            asked = hosts == self.pool.list() and not self.pool.is_starting() and bool(hosts or self.pool.refused)
            if asked or isinstance(error, CollectionError) or time.monotonic() >= deadline:
                raise error or replicas.explain()
            time.sleep(NAP)

    def _start_thread(self) -> None:
        """The caller must hold `_starting`."""
        if self._thread is None and not self._stopping:
            self._thread = threading.Thread(target=self._run, name="resight-shards", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        try:
            self._maintain_until_idle()
        finally:
            with self._starting:
                if self._thread is threading.current_thread():  # else another one has been started since `_end`
                    self._thread = None

    def _maintain_until_idle(self) -> None:
        idle_since = time.monotonic()
        while True:
            self._woken.wait(PERIOD)
            self._woken.clear()
            if self._stopping or find_connection() != self._connection:
                return
            self._drop_closed()
            if self._open:
                idle_since = time.monotonic()
                self._maintain()
            elif time.monotonic() - idle_since > LINGER and self._end():
                return

    def _maintain(self) -> None:
        """One round. An index that cannot be placed, perhaps because its files are gone, does not delay the others."""
        self._try(self, "the cluster", self._refresh_hosts)
        for replicas in list(self._open):
            self._try(replicas, f"the shards of {replicas.folder}", replicas.arrange)

    def _refresh_hosts(self) -> None:
        self.pool.check()
        self.pool.refresh()

    def _try(self, subject: object, name: str, act: Callable[[], None]) -> None:
        """Log an error once, although every retry meets it again. No error ends the thread: other indexes need it."""
        try:
            act()
            self._reported.pop(subject, None)
        except Exception as error:
            if self._reported.get(subject) != str(error) and find_connection() == self._connection:
                log.warning("cannot maintain %s, will retry: %s", name, error)
            self._reported[subject] = str(error)

    def _drop_closed(self) -> None:
        while self._closed:
            replicas = self._closed.popleft()
            if replicas in self._open:
                self._open.remove(replicas)
            self._try(replicas, f"the shards of {replicas.folder}", replicas.drop_all)
            self._reported.pop(replicas, None)

    def _end(self) -> bool:
        with self._starting:
            if self._open:
                return False
            self._thread = None
        self.pool.close()
        return True


_managers: dict[tuple[Connection, Path], ReplicaManager] = {}
_making = threading.Lock()


def find_replica_manager(cache: Path | None = None) -> ReplicaManager:
    """The manager for the cluster that this process is connected to; nodes keep fetched shards in `cache`."""
    context = ray.get_runtime_context()
    connection = Connection(context.get_job_id(), context.gcs_address)
    folder = cache or Path(tempfile.gettempdir()) / "resight-shards"
    with _making:
        for other in [other for other in _managers if other[0] != connection]:
            del _managers[other]  # this process has left that cluster; the thread ends by itself
        if (connection, folder) not in _managers:
            _managers[connection, folder] = ReplicaManager(connection, folder)
        return _managers[connection, folder]


def stop_replica_managers() -> None:
    """Stop every manager of this process. Call it before `ray.shutdown()`."""
    with _making:
        managers = list(_managers.values())
    for manager in managers:
        manager.stop()


def find_connection() -> Connection | None:
    try:
        context = ray.get_runtime_context()
        return Connection(context.get_job_id(), context.gcs_address) if ray.is_initialized() else None
    except Exception:  # another thread is shutting Ray down
        return None
