"""Send a query to one replica of every shard, or to the next if one is lost or silent: one ranking per shard."""

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass
from typing import Any

import ray

from resight.errors import ResightError
from resight.index.shards.hosts import Host
from resight.index.shards.replicas import Replicas
from resight.types import Descriptors, Ranking

Parts = Mapping[int, frozenset[str] | None]  # shard → which of its images are allowed; None: all
NAP = 0.05  # seconds between two looks for a replica that the manager is restoring
_counting = threading.Lock()


@dataclass(frozen=True)
class Timeouts:
    answer: float  # seconds without any answer before the search also asks other replicas
    restore: float  # seconds to wait for a shard that no host holds


def search_shards(
    replicas: Replicas, parts: Parts, query: Descriptors, k: int, timeouts: Timeouts, wake: Callable[[], None]
) -> list[Ranking]:
    """The ranking of each shard in `parts`; `wake` makes the manager restore shards that no host holds."""
    search = _Search(replicas, parts, query, k)
    deadline = float("inf")
    while search.missing:
        search.send()
        if search.pending:
            deadline = float("inf")
            search.receive(timeouts.answer)
            continue
        deadline = min(deadline, time.monotonic() + timeouts.restore)
        if time.monotonic() >= deadline:
            raise replicas.explain()
        wake()
        time.sleep(NAP)
    return [search.found[shard] for shard in parts]


class _Search:
    """The state of one query: rankings found, calls pending, shards still to send."""

    def __init__(self, replicas: Replicas, parts: Parts, query: Descriptors, k: int) -> None:
        self._replicas = replicas
        self._parts = parts
        self._query = query
        self._k = k
        self._unsent = set(parts)
        self._tried: dict[int, list[Host]] = {shard: [] for shard in parts}
        self.found: dict[int, Ranking] = {}
        self.pending: dict[Future[Any], tuple[Host, list[int]]] = {}

    @property
    def missing(self) -> bool:
        return len(self.found) < len(self._parts)

    def send(self) -> None:
        """Send the query for every unsent shard, in one call per host."""
        calls: dict[Host, list[int]] = {}
        for shard in sorted(self._unsent):
            host = self._replicas.choose(shard, self._tried[shard])
            if host is not None:
                calls.setdefault(host, []).append(shard)
                self._tried[shard].append(host)
                self._unsent.discard(shard)
        for host, shards in calls.items():
            requests = [(self._replicas.name_key(shard), self._parts[shard]) for shard in shards]
            _count(host, 1)
            future = host.search(requests, self._query, self._k)
            future.add_done_callback(lambda _, host=host: _count(host, -1))  # type: ignore[misc]
            self.pending[future] = host, shards

    def receive(self, timeout: float) -> None:
        """Take the answers that arrive first; if none does within `timeout` seconds, let other hosts answer too."""
        done, _ = wait(self.pending, timeout=timeout, return_when=FIRST_COMPLETED)
        for future in done:
            host, shards = self.pending.pop(future)
            self._take(host, shards, future)
        if not done:
            for host, shards in self.pending.values():
                host.silent = True
                self._resend(shards)

    def _take(self, host: Host, shards: list[int], future: "Future[Any]") -> None:
        try:
            answer = future.result()
        except ray.exceptions.RayTaskError:
            raise  # a programming error, which the next replica would meet too
        except ray.exceptions.RayError:
            self._replicas.pool.discard(host)
            self._resend(shards)
            return
        if isinstance(answer, ResightError):
            raise answer
        host.silent = False
        for shard, ranking in zip(shards, answer, strict=True):
            if ranking is not None:
                self.found[shard] = ranking
        self._resend(shards)  # the shards that this host does not hold any more

    def _resend(self, shards: Iterable[int]) -> None:
        self._unsent.update(shard for shard in shards if shard not in self.found)


def _count(host: Host, change: int) -> None:
    with _counting:
        host.busy += change
