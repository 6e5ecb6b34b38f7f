"""The shards of one index and the hosts that hold them.

`arrange` compares the present state with what `placement.assign_replicas` wants for the hosts that are up. A shard is
copied to its new host before an old one drops it. If a host has no space for a shard, or fails at it, the next host
takes it; a host keeps what it holds as long as others do not hold enough.
"""

import threading
import time
import uuid
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import ray

from resight.errors import ClusterError, CollectionError, MissingExtra, ResightError, StorageError
from resight.index.shards.hosts import Host, HostPool
from resight.index.shards.placement import assign_replicas, list_nodes
from resight.index.shards.shard_manifest import Manifest, compare_files, locate_shard
from resight.index.shards.transfer import send

Barred = tuple[float, ResightError]  # since when, and why
Key = TypeVar("Key")
BARRED_SECONDS = 60.0  # until a node that had no room, or failed at a shard, is tried again


class Replicas:
    def __init__(
        self, folder: Path, manifest: Manifest, pool: HostPool, replication: int, *, always_fetch: bool = False
    ) -> None:
        self.manifest = manifest
        self.pool = pool
        self.replication = replication
        self.folder = folder.absolute()
        self.error: ResightError | None = None  # what went wrong when the shards were last arranged
        self._always_fetch = always_fetch
        self._key = uuid.uuid4().hex
        # Two indexes with the same files prefer the same nodes, and two shards of one index others.
        self._names = [f"{shard.content} {number}" for number, shard in enumerate(manifest.shards)]
        self._held: dict[int, list[Host]] = {number: [] for number in range(len(manifest.shards))}
        self._full: dict[str, Barred] = {}  # nodes without room
        self._failed: dict[tuple[int, str], Barred] = {}  # shards and nodes that cannot open them
        self._compared: set[int] = set()  # shards whose files here are those that were written
        self._arranging = threading.Lock()

    def name_key(self, shard: int) -> str:
        """What a host knows the shard by."""
        return f"{self._key}/{shard}"

    def arrange(self) -> None:
        """Bring every replica to where it belongs, as far as there are hosts with room.

        What cannot be opened or sent is raised at the end, when the other shards are where they belong.
        """
        with self._arranging:
            self._full, self._failed = _forget_old(self._full), _forget_old(self._failed)
            damaged: dict[int, CollectionError] = {}  # by what this process sees
            again = True
            while again:
                hosts = self.pool.list()
                self._forget_lost(hosts.values())
                wanted = self._choose_hosts(hosts)
                missing = [
                    (shard, host)
                    for shard, chosen in wanted.items()
                    for host in chosen
                    if host not in self._held[shard] and shard not in damaged
                ]
                again, found = self._bring(missing)
                damaged |= found
            self._drop_others(wanted)
            errors = [*damaged.values(), *(error for _, error in self._failed.values())]
            self.error = errors[0] if errors else None
            if self.error is not None:
                raise self.error

    def choose(self, shard: int, but: Collection[Host] = ()) -> Host | None:
        """The host that is asked for a shard: of those that answer in time, the least busy."""
        alive = self.pool.list()
        held = [host for host in self._held[shard] if alive.get(host.node) is host and host not in but]
        return min(held, key=lambda host: (host.silent, host.busy), default=None)

    def list_bare(self) -> list[int]:
        """Shards that nobody can be asked for."""
        return [number for number in range(len(self._names)) if self.choose(number) is None]

    def count(self) -> int:
        """Replicas that can be asked."""
        alive = set(self.pool.list().values())
        return sum(host in alive for hosts in list(self._held.values()) for host in hosts)

    def explain(self) -> ClusterError:
        """Why a shard lies nowhere."""
        errors = [error for _, error in list(self._full.values())] + list(self.pool.refused.values())
        if self.error is not None:
            errors.append(self.error)
        reasons = dict.fromkeys(": ".join(filter(None, (error.problem, error.actual))) for error in errors)
        return ClusterError(
            f"no node holds shard {', '.join(map(str, self.list_bare())) or '?'} of {self.folder}",
            expected=f"a node of the cluster that can open or fetch it; {len(self.pool.list())} answer",
            actual="; ".join(reasons) or "those that held it are lost, and no other has taken it yet",
            fix="see `ray status`; add a node, or free disk space on one" if self.error is None else self.error.fix,
        )

    def drop_all(self) -> None:
        with self._arranging:
            for shard, held in self._held.items():
                for host in held:
                    host.begin("drop", self.name_key(shard))
            self._held = {shard: [] for shard in self._held}

    def _forget_lost(self, hosts: Iterable[Host]) -> None:
        alive = set(hosts)
        self._held = {shard: [host for host in held if host in alive] for shard, held in self._held.items()}

    def _choose_hosts(self, hosts: Mapping[str, Host]) -> dict[int, list[Host]]:
        """Who is to hold which shard. Where the best place is barred, whoever holds it keeps it, or another gets it."""
        weights = {node: host.weight for node, host in hosts.items()}
        best = assign_replicas(self._names, self.replication, weights)
        if not (self._full or self._failed):
            return {shard: [hosts[node] for node in nodes] for shard, nodes in list_nodes(best, self._held).items()}
        failures = Counter(shard for shard, _ in self._failed)
        most = self.replication + max(failures.values(), default=0)
        others = assign_replicas(self._names, most, {node: weights[node] for node in hosts if node not in self._full})
        spare = list_nodes(others, self._held)
        wanted = {}
        for shard, nodes in list_nodes(best, self._held).items():
            first, next_ = ([hosts[node] for node in some] for some in (nodes, spare[shard]))
            able = [host for host in first if not self._is_barred(shard, host)]
            open_ = [host for host in next_ if not self._is_barred(shard, host)]
            wanted[shard] = list(dict.fromkeys([*able, *self._held[shard], *open_]))[: len(nodes)]
        return wanted

    def _is_barred(self, shard: int, host: Host) -> bool:
        """What a host holds already takes no more room."""
        return host not in self._held[shard] and (host.node in self._full or (shard, host.node) in self._failed)

    def _bring(self, missing: list[tuple[int, Host]]) -> tuple[bool, dict[int, CollectionError]]:
        """Whether it was in vain for some, so that others are to take theirs; and the shards whose files here are not
        as they were written."""
        begun = [(shard, host, self._begin_hold(shard, host)) for shard, host in missing]
        again, damaged = False, {}
        for shard, host, answer in begun:
            try:
                error = self._finish_hold(shard, host, answer)
            except ray.exceptions.RayError:
                self.pool.lose(host)
                again = True
                continue
            except CollectionError as found:
                damaged[shard] = found
                continue
            if isinstance(error, StorageError):
                self._full[host.node] = time.monotonic(), error
            elif error is not None:
                self._failed[shard, host.node] = time.monotonic(), error
            else:
                self._held[shard] = [*self._held[shard], host]
            again = again or error is not None
        return again, damaged

    def _begin_hold(self, shard: int, host: Host) -> ray.ObjectRef[Any]:
        folder = None if self._always_fetch else locate_shard(self.folder, shard)
        arguments = self.name_key(shard), self.manifest.inner, self.manifest.shards[shard], folder
        reference: ray.ObjectRef[Any] = host.begin("hold", *arguments)
        return reference

    def _finish_hold(self, shard: int, host: Host, answer: "ray.ObjectRef[Any]") -> ResightError | None:
        """Nothing, where the host holds the shard now. A RayError that is raised says that the host is lost."""
        try:
            outcome = ray.get(answer)
            if outcome == "absent":
                folder = locate_shard(self.folder, shard)
                outcome = send(self.manifest.shards[shard], folder, host) or ray.get(self._begin_hold(shard, host))
        except ray.exceptions.RayTaskError as error:  # of this shard alone: the host serves others well
            outcome = ClusterError("an error that nobody expected", actual=str(error).strip().splitlines()[-1])
        if isinstance(outcome, ResightError):
            return outcome if isinstance(outcome, StorageError) else self._blame(shard, host, outcome)
        return None

    def _blame(self, number: int, host: Host, error: ResightError) -> ResightError:
        """Whose fault it is that a host cannot open a shard: that of the files, if they are not as they were written
        (a CollectionError is raised), and otherwise the node's, which is no reason to throw the index away."""
        if number not in self._compared:
            compare_files(locate_shard(self.folder, number), self.manifest.shards[number].files)
            self._compared.add(number)
        if isinstance(error, MissingExtra):
            return error
        return ClusterError(
            f"the node {host.name} cannot hold shard {number} of {self.folder}: {error.problem}",
            expected=error.expected or "a node that opens what is whole on this one",
            actual=error.actual,
            fix="see what is wrong on that node, or take it out of the cluster",
        )

    def _drop_others(self, wanted: Mapping[int, list[Host]]) -> None:
        """A shard stays where it is until those who are to hold it do, and never loses its last replica."""
        for shard, held in self._held.items():
            kept = [host for host in held if host in wanted[shard]]
            if kept and len(kept) == len(wanted[shard]):
                for host in held:
                    if host not in kept:
                        host.begin("drop", self.name_key(shard))
                self._held[shard] = kept


def _forget_old(barred: Mapping[Key, Barred]) -> dict[Key, Barred]:
    now = time.monotonic()
    return {key: (since, error) for key, (since, error) in barred.items() if now - since < BARRED_SECONDS}
