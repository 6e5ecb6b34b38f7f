"""An index in shards on the nodes of a Ray cluster, each shard on several: the answer is that of `inner` on one
machine.

    id → shard by a hash · each shard is an index of its own · the best k of all shards' best k, equal scores by id

Two kinds of inner index give the same answer in shards. If the score of an image depends on no other image
(`index.Divisible`), `create` partitions the rows and builds each shard from its own. If an index can be split after it
was built (`index.Splittable`), `create` learns its codes from all images, then splits it.

On disk: shards/NNNN/ as `inner` writes them, and shards.json, written last. Nodes map the shards if they see the
folder, and fetch them otherwise. Searches survive the loss of a node: every shard lies on `replication` nodes, and
index/shards/replica_manager.py restores a lost replica on another node.
"""

import shutil
import weakref
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from resight import index as indexes
from resight.errors import ClusterError, InputError, RecipeError
from resight.index import Chunks, Divisible, Index, Splittable
from resight.index._segments import merge
from resight.index.shards.placement import find_shard, split_names
from resight.index.shards.replica_manager import ReplicaManager, find_replica_manager
from resight.index.shards.replicas import Replicas
from resight.index.shards.scatter_gather import Timeouts, search_shards
from resight.index.shards.shard_manifest import (
    Manifest,
    Shard,
    describe_shard,
    locate_shard,
    read_manifest,
    write_manifest,
)
from resight.index.shards.spill import spill
from resight.plugins import check_range
from resight.ray_cluster import cluster_errors, connect
from resight.types import Choice, Descriptors, Ranking


@dataclass(frozen=True)
class Config:
    inner: Choice = field(default_factory=lambda: Choice("exact"))  # index of each shard, alone or with settings
    shards: int = 2  # number of shards; a hash of its id assigns each image
    replication: int = 2  # nodes that hold each shard, if the cluster has so many
    address: str = "ray"  # cluster: "ray" (the process's own, or a new one), "ray://HOST:PORT" or "ray://auto"
    fetch: Literal["auto", "always"] = "auto"  # auto: nodes that see the index's folder map it; always: they copy it
    cache: Path | None = None  # folder on each node for fetched shards; None: in its temporary folder
    patience: float = 2.0  # seconds without an answer before the next replica is asked too
    wait: float = 30.0  # seconds that a search waits for a shard that no node holds

    def __post_init__(self) -> None:
        check_range("shards", self.shards, 1, 9999)
        check_range("replication", self.replication, 1, 100)
        check_range("patience", self.patience, 0.01, 3600)
        check_range("wait", self.wait, 0, 86_400)


def build(config: Config) -> "RayShards":
    inner = indexes.build(config.inner.name, **config.inner.settings)
    if not is_spreadable(inner):
        raise RecipeError(
            f"an index {config.inner.name!r} with these settings cannot be split into shards",
            expected="one that scores each image by itself: exact, asmk_inverted, maxsim without cascade or pq …",
            actual=f"{config.inner.name} {dict(config.inner.settings)}",
            fix="choose another inner index, or keep this one on one machine",
        )
    return RayShards(config, inner)


def is_spreadable(inner: Index) -> bool:
    """Whether shards of this index give the same answers as the whole index."""
    return (isinstance(inner, Divisible) and inner.divisible) or (isinstance(inner, Splittable) and inner.splittable)


class RayShards:
    def __init__(self, config: Config, inner: Index) -> None:
        self._config = config
        self._inner = inner

    @property
    def divisible(self) -> bool:
        return isinstance(self._inner, Divisible) and self._inner.divisible

    def create(self, chunks: Chunks, folder: Path) -> "ShardSearcher":
        scratch = folder / "scratch"
        scratch.mkdir()
        folders = [locate_shard(folder, number) for number in range(self._config.shards)]
        for shard_folder in folders:
            shard_folder.mkdir(parents=True)
        inner = self._inner
        if isinstance(inner, Splittable) and inner.splittable:
            shards = _split_index(inner, chunks, folders, scratch)
        else:
            shards = _partition_rows(inner, chunks, folders, scratch)
        shutil.rmtree(scratch, ignore_errors=True)
        write_manifest(Manifest(self._config.inner, tuple(shards)), folder)
        return ShardSearcher(folder, self._config)

    def open(self, folder: Path) -> "ShardSearcher":
        searcher = ShardSearcher(folder, self._config)
        searcher.start()
        return searcher


def _split_index(inner: Splittable, chunks: Chunks, folders: Sequence[Path], scratch: Path) -> list[Shard]:
    """Build one index over all images, then write each shard's part of it."""
    inner.create(chunks, scratch)
    counts = [
        inner.write_subset(scratch, folder, lambda name, number=number: find_shard(name, len(folders)) == number)  # type: ignore[misc]
        for number, folder in enumerate(folders)
    ]
    return [describe_shard(folder, images) for folder, images in zip(folders, counts, strict=True)]


def _partition_rows(inner: Index, chunks: Chunks, folders: Sequence[Path], scratch: Path) -> list[Shard]:
    """Partition the rows, then build one index per shard."""
    shards = []
    for folder, spilled in zip(folders, spill(chunks, len(folders), scratch), strict=True):
        inner.create(spilled, folder)
        shards.append(describe_shard(folder, spilled.images))
    return shards


class ShardSearcher:
    """`start` or the first search places the shards on nodes; `close` or the end of this object drops them."""

    def __init__(self, folder: Path, config: Config) -> None:
        self._folder = folder
        self._config = config
        self._manifest = read_manifest(folder, config.inner)
        self._placed: tuple[ReplicaManager, Replicas] | None = None
        self._close: weakref.finalize[..., Any] | None = None

    def search(self, query: Descriptors, k: int, allowed: frozenset[str] | None = None) -> Ranking:
        manager, replicas = self.start()
        shards = len(self._manifest.shards)
        parts: dict[int, frozenset[str] | None] = dict.fromkeys(range(shards))
        if allowed is not None:
            # If no image is allowed, ask one shard all the same: it refuses an unfit query.
            parts = {**split_names(allowed, shards)} or {0: frozenset()}
        timeouts = Timeouts(self._config.patience, self._config.wait)
        return merge(search_shards(replicas, parts, query, k, timeouts, manager.wake), k)

    def start(self) -> tuple[ReplicaManager, Replicas]:
        """Place every shard on a node. Raises a ClusterError, or a CollectionError if files here are damaged."""
        if self._placed is None:
            _connect(self._config.address)
            with cluster_errors(f"the shards of {self._folder} cannot be placed"):
                manager = find_replica_manager(self._config.cache)
                always = self._config.fetch == "always"
                replicas = Replicas(
                    self._folder, self._manifest, manager.pool, self._config.replication, always_fetch=always
                )
                manager.add(replicas)
            self._close = weakref.finalize(self, manager.remove, replicas)
            self._placed = manager, replicas
        return self._placed

    def close(self) -> None:
        if self._close is not None:
            self._close()
        self._placed = None


def _connect(address: str) -> None:
    """Connect to the cluster. A failure is a ClusterError; after an InputError the caller would discard the index."""
    try:
        connect(address)
    except InputError as error:
        raise ClusterError(error.problem, expected=error.expected, actual=error.actual, fix=error.fix) from error
