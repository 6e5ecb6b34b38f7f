"""The shards of one index and the hosts that hold them: brought where they belong, found when they are wanted.

`arrange` compares what is with what `placement.place` wants for the hosts that are there. A shard is brought to its new
host before an old one drops it, and what a host has no room for goes to the next.
"""

import threading
import time
import uuid
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any

import ray

from resight.errors import ClusterError, ResightError, StorageError
from resight.index.shards.hosts import Host, HostPool
from resight.index.shards.manifest import Manifest, locate_shard
from resight.index.shards.placement import place

PIECE = 16 << 20  # bytes of a file that are sent at a time
FULL_SECONDS = 60.0  # until a node that had no room is tried again


class Replicas:
    def __init__(
        self, folder: Path, manifest: Manifest, pool: HostPool, replication: int, *, always_fetch: bool = False
    ) -> None:
        self.manifest = manifest
        self.pool = pool
        self.replication = replication
        self.folder = folder.absolute()
        self._always_fetch = always_fetch
        self._key = uuid.uuid4().hex
        # Two indexes with the same files prefer the same nodes, and two shards of one index others.
        self._names = [f"{shard.content} {number}" for number, shard in enumerate(manifest.shards)]
        self._held: dict[int, list[Host]] = {number: [] for number in range(len(manifest.shards))}
        self._full: dict[str, tuple[float, StorageError]] = {}
        self._arranging = threading.Lock()

    def name_key(self, shard: int) -> str:
        """What a host knows the shard by."""
        return f"{self._key}/{shard}"

    def arrange(self) -> None:
        """Bring every replica to where it belongs, as far as there are hosts with room."""
        with self._arranging:
            while True:
                hosts = self.pool.list()
                self._forget_lost(hosts.values())
                now = time.monotonic()
                self._full = {node: full for node, full in self._full.items() if now - full[0] < FULL_SECONDS}
                weights = {host.node: host.weight for host in hosts.values() if host.node not in self._full}
                placed = place(self._names, self.replication, weights)
                wanted = [(shard, hosts[node]) for (shard, _), node in placed.items()]
                missing = [(shard, host) for shard, host in wanted if host not in self._held[shard]]
                if not self._bring(missing):
                    break
            self._drop_others(wanted)

    def choose(self, shard: int, but: Collection[Host] = ()) -> Host | None:
        """The host that is asked for a shard: of those that answer in time, the least busy."""
        alive = self.pool.list()
        held = [host for host in self._held[shard] if alive.get(host.node) is host and host not in but]
        return min(held, key=lambda host: (host.silent, host.busy), default=None)

    def count(self) -> int:
        """Replicas that can be asked."""
        alive = set(self.pool.list().values())
        return sum(host in alive for hosts in list(self._held.values()) for host in hosts)

    def explain(self) -> ClusterError:
        """Why a shard lies nowhere."""
        bare = [number for number in self._held if self.choose(number) is None]
        reasons = [error.problem for _, error in self._full.values()]
        reasons += [error.problem for error in self.pool.refused.values()]
        return ClusterError(
            f"no node holds shard {', '.join(map(str, bare)) or '?'} of {self.folder}",
            expected=f"a node of the cluster that can open or fetch it; {len(self.pool.list())} answer",
            actual="; ".join(reasons) or "those that held it are lost, and no other has taken it yet",
            fix="see `ray status`; add a node, or free disk space on one",
        )

    def drop_all(self) -> None:
        with self._arranging:
            self._drop_others([])

    def _forget_lost(self, hosts: Iterable[Host]) -> None:
        alive = set(hosts)
        self._held = {shard: [host for host in held if host in alive] for shard, held in self._held.items()}

    def _bring(self, missing: list[tuple[int, Host]]) -> bool:
        """Whether it was in vain for some, so that others are to take theirs."""
        begun = [(shard, host, self._begin_hold(shard, host)) for shard, host in missing]
        again = False
        for shard, host, answer in begun:
            try:
                outcome = ray.get(answer)
                if outcome == "absent":
                    outcome = self._send(shard, host) or ray.get(self._begin_hold(shard, host))
            except ray.exceptions.RayError:
                self.pool.lose(host)
                again = True
                continue
            if isinstance(outcome, StorageError):
                self._full[host.node] = time.monotonic(), outcome
                again = True
            elif isinstance(outcome, ResightError):
                raise outcome
            else:
                self._held[shard] = [*self._held[shard], host]
        return again

    def _begin_hold(self, shard: int, host: Host) -> ray.ObjectRef[Any]:
        folder = None if self._always_fetch else locate_shard(self.folder, shard)
        arguments = self.name_key(shard), self.manifest.inner, self.manifest.shards[shard], folder
        reference: ray.ObjectRef[Any] = host.begin("hold", *arguments)
        return reference

    def _send(self, number: int, host: Host) -> ResightError | None:
        """The files of a shard to a host that does not see them, one piece after the other."""
        shard, folder = self.manifest.shards[number], locate_shard(self.folder, number)
        error: ResightError | None = host.call("prepare", shard)
        for file in shard.files:
            with (folder / file.name).open("rb") as opened:
                while error is None and ((piece := opened.read(PIECE)) or opened.tell() == 0):
                    error = host.call("receive", shard, file.name, piece)
                    if not piece:
                        break
        return error or host.call("settle", shard)

    def _drop_others(self, wanted: list[tuple[int, Host]]) -> None:
        for shard, held in self._held.items():
            kept = [host for host in held if (shard, host) in wanted]
            if wanted and len(kept) < min(self.replication, len(held)):
                continue  # what is to replace it is not there yet
            for host in held:
                if host not in kept:
                    host.begin("drop", self.name_key(shard))
            self._held[shard] = kept
