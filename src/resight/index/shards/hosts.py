"""The nodes of the Ray cluster that this process is connected to, each with one actor that holds shards.

Each searching process starts one actor per node, which serves all indexes that the process has open: another shard
costs a message, not a process. The actors end with the process, or when the replica manager closes the pool.
"""

import logging
import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from resight.errors import ClusterError
from resight.index.shards.node import ShardRequest, ShardServer
from resight.ray_cluster import forbid_auto_connect, list_versions, refuse_skew
from resight.types import Descriptors

CALL_SECONDS = 120.0  # time limit of a call that is not a search
PING_SECONDS = 10.0  # a node that does not answer a ping for so long counts as lost
SLOWEST = 10e6  # bytes per second: the slowest rate at which a node may verify the files it received
# Concurrent calls on a node, by group: a ping must not queue behind shards that the node is opening.
CONCURRENT_CALLS = {"search": 16, "open": 4, "maintain": 4, "ping": 1}
GROUPS = {"open_shard": "open", "ping": "ping"}  # group of a call that is not a search; others are "maintain"
log = logging.getLogger("resight.shards")


@dataclass(eq=False)
class Host:
    """The searching process's view of a node's actor."""

    node: str
    name: str  # for messages
    weight: float
    actor: Any
    busy: int = 0  # searches that wait for its answer
    silent: bool = False  # an answer is overdue: a search prefers other hosts

    def search(self, requests: Sequence[ShardRequest], query: Descriptors, k: int) -> "Future[Any]":
        search = self.actor.search.options(concurrency_group="search")
        found: Future[Any] = search.remote(list(requests), query, k).future()
        return found

    def call(self, method: str, *arguments: Any, size: int = 0) -> Any:
        """Wait for the answer; a call that reads `size` bytes gets more time."""
        return ray.get(self.begin(method, *arguments), timeout=CALL_SECONDS + size / SLOWEST)

    def begin(self, method: str, *arguments: Any) -> Any:
        return getattr(self.actor, method).options(concurrency_group=GROUPS.get(method, "maintain")).remote(*arguments)


@dataclass(frozen=True)
class _StartingHost:
    node: dict[str, Any]
    actor: Any
    versions: Any  # reference to the answer of `describe_versions`

    @property
    def name(self) -> str:
        return f"{self.node['NodeManagerHostname']} ({self.node['NodeManagerAddress']}, {self.node['NodeID'][:8]})"


class HostPool:
    """The hosts of one cluster. `lock` guards their list."""

    def __init__(self, cache: Path) -> None:
        forbid_auto_connect()  # otherwise `discard` would start a new cluster after Ray was shut down
        self._cache = cache
        self._starting: dict[str, _StartingHost] = {}
        self.hosts: dict[str, Host] = {}
        self.refused: dict[str, ClusterError] = {}  # nodes that run other versions
        self.lock = threading.RLock()

    def refresh(self, wait: float = 0.0) -> None:
        """Start an actor on every node that has none, and forget the actors of nodes that are gone.

        An actor may take seconds to start; on a node that has just died it never does. It joins the pool when it has
        reported its versions: within `wait` seconds, or at a later refresh.
        """
        alive = {node["NodeID"]: node for node in ray.nodes() if node["Alive"]}
        with self.lock:
            for table in (self.hosts, self._starting, self.refused):
                for node in [node for node in table if node not in alive]:
                    del table[node]
            for name, node in alive.items():
                if not (name in self.hosts or name in self._starting or name in self.refused):
                    actor = _start_actor(name, self._cache)
                    self._starting[name] = _StartingHost(node, actor, actor.describe_versions.remote())
            starting = list(self._starting.values())
        if starting:
            ready, _ = ray.wait([joining.versions for joining in starting], num_returns=len(starting), timeout=wait)
            for joining in starting:
                if joining.versions in ready:
                    self._admit(joining)

    def discard(self, host: Host) -> None:
        """Remove a host from the pool and end its actor, which may be gone already."""
        with self.lock:
            if self.hosts.get(host.node) is host:
                del self.hosts[host.node]
        with suppress(Exception):  # the actor is gone already, or its node is unreachable
            ray.kill(host.actor)

    def check(self) -> None:
        """Ping every host, and discard those that do not answer in time."""
        with self.lock:
            pings = [(host, host.begin("ping")) for host in self.hosts.values()]
        deadline = time.monotonic() + PING_SECONDS
        for host, answer in pings:
            try:
                ray.get(answer, timeout=max(0.1, deadline - time.monotonic()))
                host.silent = False
            except ray.exceptions.RayError as error:
                log.warning("the node %s is lost: %s", host.name, type(error).__name__)
                self.discard(host)

    def list(self) -> dict[str, Host]:
        with self.lock:
            return dict(self.hosts)

    def is_starting(self) -> bool:
        """Whether some nodes have not reported their versions yet."""
        return bool(self._starting)

    def close(self) -> None:
        for host in self.list().values():
            self.discard(host)

    def _admit(self, joining: _StartingHost) -> None:
        node = joining.node["NodeID"]
        with self.lock:
            if self._starting.pop(node, None) is None:
                return  # another thread was faster
        try:
            refuse_skew(joining.name, ray.get(joining.versions), list_versions())
        except ClusterError as error:
            log.warning("%s", error)
            self.refused[node] = error
            ray.kill(joining.actor)
            return
        except ray.exceptions.RayError as error:
            log.warning("the node %s cannot start an actor: %s", joining.name, type(error).__name__)
            return
        with self.lock:
            weight = float(joining.node["Resources"].get("CPU", 0.0))
            self.hosts[node] = Host(node, joining.name, weight, joining.actor)


def _start_actor(node: str, cache: Path) -> Any:
    settings = {
        "num_cpus": 0,  # shards need no reserved cores: placement weighs nodes by their cores already
        "max_restarts": 0,  # the pool starts another one itself, and knows that it holds no shard yet
        "scheduling_strategy": NodeAffinitySchedulingStrategy(node, soft=False),
        "concurrency_groups": CONCURRENT_CALLS,
    }
    declare: Any = ray.remote  # Ray's type hints lack some of these settings
    return declare(**settings)(ShardServer).remote(cache)
