"""The nodes of the Ray cluster that this process is connected to, each with one actor that holds shards.

A node has one actor per searching process, however many indexes that has open: another shard costs a message, not a
process. The actors end with the process, or when the replica manager closes the pool.
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
from resight.index.shards.node import Ask, HeldShards
from resight.ray_cluster import forbid_auto_connect, refuse_skew, tell_versions
from resight.types import Descriptors

CALL_SECONDS = 120.0  # a call that is not a search may take
PING_SECONDS = 10.0  # a node may be silent before it counts as lost
SLOWEST = 10e6  # bytes a second that a node may take to compare what it was sent
# Calls at once on a node, by their kind: a sign of life must not queue behind shards that are opened.
AT_ONCE = {"search": 16, "open": 4, "care": 4, "sign": 1}
KINDS = {"hold": "open", "sign": "sign"}  # of a call that is not a search; others are "care"
log = logging.getLogger("resight.shards")


@dataclass(eq=False)
class Host:
    """A node's actor, as seen from here."""

    node: str
    name: str  # for people
    weight: float
    actor: Any
    busy: int = 0  # searches that it has not answered yet
    silent: bool = False  # an answer is overdue: others are asked first

    def search(self, asks: Sequence[Ask], query: Descriptors, k: int) -> "Future[Any]":
        found: Future[Any] = self.actor.search.options(concurrency_group="search").remote(list(asks), query, k).future()
        return found

    def call(self, method: str, *arguments: Any, size: int = 0) -> Any:
        """The answer; one that goes through `size` bytes may take longer."""
        return ray.get(self.begin(method, *arguments), timeout=CALL_SECONDS + size / SLOWEST)

    def begin(self, method: str, *arguments: Any) -> Any:
        return getattr(self.actor, method).options(concurrency_group=KINDS.get(method, "care")).remote(*arguments)


@dataclass(frozen=True)
class _Newcomer:
    node: dict[str, Any]
    actor: Any
    versions: Any  # that it will tell

    @property
    def name(self) -> str:
        return f"{self.node['NodeManagerHostname']} ({self.node['NodeManagerAddress']}, {self.node['NodeID'][:8]})"


class HostPool:
    """The hosts of one cluster. Who is in it changes under `lock`."""

    def __init__(self, cache: Path) -> None:
        forbid_auto_connect()  # or `lose`, after Ray was shut down, would start a cluster
        self._cache = cache
        self._starting: dict[str, _Newcomer] = {}
        self.hosts: dict[str, Host] = {}
        self.refused: dict[str, ClusterError] = {}  # nodes that run something else
        self.lock = threading.RLock()

    def refresh(self, wait: float = 0.0) -> None:
        """Start an actor on every node that has none, and forget those whose node is gone.

        An actor may take seconds to start, and for ever on a node that has just died: it is in the pool as soon as it
        has told its versions, now or at a later refresh. Up to `wait` seconds are spent on that now.
        """
        alive = {node["NodeID"]: node for node in ray.nodes() if node["Alive"]}
        with self.lock:
            for table in (self.hosts, self._starting, self.refused):
                for node in [node for node in table if node not in alive]:
                    del table[node]
            for name, node in alive.items():
                if not (name in self.hosts or name in self._starting or name in self.refused):
                    actor = _start_actor(name, self._cache)
                    self._starting[name] = _Newcomer(node, actor, actor.tell.remote())
            starting = list(self._starting.values())
        if starting:
            told, _ = ray.wait([newcomer.versions for newcomer in starting], num_returns=len(starting), timeout=wait)
            for newcomer in starting:
                if newcomer.versions in told:
                    self._admit(newcomer)

    def lose(self, host: Host) -> None:
        """The actor does not live any more, or is not to."""
        with self.lock:
            if self.hosts.get(host.node) is host:
                del self.hosts[host.node]
        with suppress(Exception):  # it is gone already, or its node cannot be reached: either is what we want
            ray.kill(host.actor)

    def check(self) -> None:
        """Ask every host for a sign of life; those that give none for long are lost."""
        with self.lock:
            asked = [(host, host.begin("sign")) for host in self.hosts.values()]
        deadline = time.monotonic() + PING_SECONDS
        for host, answer in asked:
            try:
                ray.get(answer, timeout=max(0.1, deadline - time.monotonic()))
                host.silent = False
            except ray.exceptions.RayError as error:
                log.warning("the node %s is lost: %s", host.name, type(error).__name__)
                self.lose(host)

    def list(self) -> dict[str, Host]:
        with self.lock:
            return dict(self.hosts)

    def is_starting(self) -> bool:
        """Whether there are nodes that have not told yet whether they fit."""
        return bool(self._starting)

    def close(self) -> None:
        for host in self.list().values():
            self.lose(host)

    def _admit(self, newcomer: _Newcomer) -> None:
        node = newcomer.node["NodeID"]
        with self.lock:
            if self._starting.pop(node, None) is None:
                return  # another thread was faster
        try:
            refuse_skew(newcomer.name, ray.get(newcomer.versions), tell_versions())
        except ClusterError as error:
            log.warning("%s", error)
            self.refused[node] = error
            ray.kill(newcomer.actor)
            return
        except ray.exceptions.RayError as error:
            log.warning("no actor starts on the node %s: %s", newcomer.name, type(error).__name__)
            return
        with self.lock:
            weight = float(newcomer.node["Resources"].get("CPU", 0.0))
            self.hosts[node] = Host(node, newcomer.name, weight, newcomer.actor)


def _start_actor(node: str, cache: Path) -> Any:
    settings = {
        "num_cpus": 0,  # shards are served beside whatever else runs; their placement says what a node bears
        "max_restarts": 0,  # the pool starts another, and knows that it holds nothing yet
        "scheduling_strategy": NodeAffinitySchedulingStrategy(node, soft=False),
        "concurrency_groups": AT_ONCE,
    }
    declare: Any = ray.remote  # its types know fewer settings than it has
    return declare(**settings)(HeldShards).remote(cache)
