"""The shards of one index and the hosts that hold them.

`arrange` moves shards until they lie where `placement.assign_replicas` puts them for the hosts that are up. A new host
receives a shard before an old one drops it. If a host has no space for a shard, or fails to open it, the next host
takes it; a host keeps its shards until enough other hosts hold them.
"""

import threading
import time
import uuid
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

import ray

from resight.errors import ClusterError, CollectionError, MissingExtra, ResightError, StorageError
from resight.index.shards.hosts import Host, HostPool
from resight.index.shards.placement import assign_replicas, list_nodes
from resight.index.shards.shard_manifest import (
    REBUILD,
    Manifest,
    Shard,
    check_sizes,
    locate_file,
    locate_shard,
    verify_checksums,
)

Barred = tuple[float, ResightError]  # since when, and why
Key = TypeVar("Key")
PIECE = 16 << 20  # bytes of a file that a host receives per call
BARRED_SECONDS = 60.0  # pause before `arrange` tries a node again that had no space or failed to open a shard


class Replicas:
    def __init__(
        self, folder: Path, manifest: Manifest, pool: HostPool, replication: int, *, always_fetch: bool = False
    ) -> None:
        self.manifest = manifest
        self.pool = pool
        self.replication = replication
        self.folder = folder.absolute()
        self.error: ResightError | None = None  # the first error of the last `arrange`
        self._always_fetch = always_fetch
        self._key = uuid.uuid4().hex
        # Two indexes with the same files prefer the same nodes; equal shards of one index prefer different ones.
        self._names = [f"{shard.content} {number}" for number, shard in enumerate(manifest.shards)]
        self._held: dict[int, list[Host]] = {number: [] for number in range(len(manifest.shards))}
        self._full: dict[str, Barred] = {}  # nodes without space
        self._failed: dict[tuple[int, str], Barred] = {}  # (shard, node that cannot open it)
        self._verified: set[int] = set()  # shards whose files here have the right checksums
        self._arranging = threading.Lock()

    def name_key(self, shard: int) -> str:
        """The key of a shard on its hosts."""
        return f"{self._key}/{shard}"

    def arrange(self) -> None:
        """Bring every replica to its host, as far as hosts have space.

        If a host cannot open a shard, or this process cannot send it, the error is raised after all other shards are
        in position.
        """
        with self._arranging:
            self._full, self._failed = _forget_old(self._full), _forget_old(self._failed)
            damaged: dict[int, CollectionError] = {}  # shards with damaged files here
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
                again, found = self._place(missing)
                damaged |= found
            self._drop_others(wanted)
            errors = [*damaged.values(), *(error for _, error in self._failed.values())]
            self.error = errors[0] if errors else None
            if self.error is not None:
                raise self.error

    def choose(self, shard: int, but: Collection[Host] = ()) -> Host | None:
        """The host that should search a shard: the least busy of those that answer in time; None: no host holds it."""
        alive = self.pool.list()
        held = [host for host in self._held[shard] if alive.get(host.node) is host and host not in but]
        return min(held, key=lambda host: (host.silent, host.busy), default=None)

    def list_unheld(self) -> list[int]:
        """Shards that no reachable host holds."""
        return [number for number in range(len(self._names)) if self.choose(number) is None]

    def count(self) -> int:
        """Number of replicas on hosts that are up."""
        alive = set(self.pool.list().values())
        return sum(host in alive for hosts in list(self._held.values()) for host in hosts)

    def explain(self) -> ClusterError:
        """The error for shards that no host holds, with the reasons."""
        errors = [error for _, error in list(self._full.values())] + list(self.pool.refused.values())
        if self.error is not None:
            errors.append(self.error)
        reasons = dict.fromkeys(": ".join(filter(None, (error.problem, error.actual))) for error in errors)
        return ClusterError(
            f"no node holds shard {', '.join(map(str, self.list_unheld())) or '?'} of {self.folder}",
            expected=f"a node of the cluster that can open or fetch it; {len(self.pool.list())} answer",
            actual="; ".join(reasons) or "the nodes that held it are lost, and no other node has taken it yet",
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
        """The hosts that should hold each shard. If the best one is barred, the present holder or another host does."""
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
        """Whether a host cannot take a shard now; a host may always keep a shard that it holds."""
        return host not in self._held[shard] and (host.node in self._full or (shard, host.node) in self._failed)

    def _place(self, missing: list[tuple[int, Host]]) -> tuple[bool, dict[int, CollectionError]]:
        """Have hosts open the missing shards. Returns whether some failed, so that other hosts should take them, and
        the shards whose files here are damaged."""
        begun = [(shard, host, self._begin_open(shard, host)) for shard, host in missing]
        again, damaged = False, {}
        for shard, host, answer in begun:
            try:
                error = self._finish_open(shard, host, answer)
            except ray.exceptions.RayError:
                self.pool.discard(host)
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

    def _begin_open(self, shard: int, host: Host) -> ray.ObjectRef[Any]:
        folder = None if self._always_fetch else locate_shard(self.folder, shard)
        arguments = self.name_key(shard), self.manifest.inner, self.manifest.shards[shard], folder
        reference: ray.ObjectRef[Any] = host.begin("open_shard", *arguments)
        return reference

    def _finish_open(self, shard: int, host: Host, answer: "ray.ObjectRef[Any]") -> ResightError | None:
        """None if the host now holds the shard, else its error. A raised RayError means that the host is lost."""
        try:
            outcome = ray.get(answer)
            if outcome == "absent":
                folder = locate_shard(self.folder, shard)
                outcome = send(self.manifest.shards[shard], folder, host) or ray.get(self._begin_open(shard, host))
        except ray.exceptions.RayTaskError as error:  # concerns this shard only: the host serves others
            outcome = ClusterError("an unexpected error", actual=str(error).strip().splitlines()[-1])
        if isinstance(outcome, ResightError):
            return outcome if isinstance(outcome, StorageError) else self._attribute(shard, host, outcome)
        return None

    def _attribute(self, number: int, host: Host, error: ResightError) -> ResightError:
        """Find why a host cannot open a shard. Raises a CollectionError if the files here are damaged; otherwise the
        cause lies on the node, and the index need not be rebuilt."""
        if number not in self._verified:
            verify_checksums(locate_shard(self.folder, number), self.manifest.shards[number].files)
            self._verified.add(number)
        if isinstance(error, MissingExtra):
            return error
        return ClusterError(
            f"the node {host.name} cannot hold shard {number} of {self.folder}: {error.problem}",
            expected=error.expected or "a node that can open the files, which are intact on this one",
            actual=error.actual,
            fix="check that node, or remove it from the cluster",
        )

    def _drop_others(self, wanted: Mapping[int, list[Host]]) -> None:
        """Drop a shard from other hosts once all wanted hosts hold it; its last replica always stays."""
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


def send(shard: Shard, folder: Path, host: Host) -> ResightError | None:
    """Send the files of a shard to a host that does not see their folder, piece by piece.

    Returns the host's error, or None. Raises a CollectionError if the files in `folder` are incomplete.
    """
    check_sizes(folder, shard.files)
    error: ResightError | None = host.call("prepare", shard)
    for file in shard.files:
        for piece in _read(locate_file(folder, file.name)):
            error = error or host.call("receive", shard, file.name, piece)
            if error is not None:
                return error
    return error or host.call("commit", shard, size=shard.size)


def _read(path: Path) -> Iterator[bytes]:
    """The pieces of a file; an empty file gives one empty piece."""
    try:
        with path.open("rb") as opened:
            yield opened.read(PIECE)
            while piece := opened.read(PIECE):
                yield piece
    except OSError as error:
        raise CollectionError(f"{path} cannot be read", actual=str(error), fix=REBUILD) from error
