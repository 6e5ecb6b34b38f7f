"""An index in shards on the nodes of a Ray cluster, each shard on several: the answer is that of `inner` on one
machine.

    id → shard by a hash · each shard is an index of its own · the best k of all shards' best k, equal scores by id

This holds for an inner index whose score of an image depends on no other image (`index.Divisible`): the rows are
partitioned, and each shard is built from its own. It also holds for one that can be split after it was built
(`index.Splittable`), whose codes are learnt from all images. On disk: shards/NNNN/ as `inner` writes them, and
shards.json, written last. Nodes map the shards if they see the folder, and fetch them otherwise. A lost node costs no
answer: every shard lies on `replication` nodes and is restored elsewhere (index/shards/replica_manager.py).
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
from resight.index.shards.replica_manager import Keeper, find_keeper
from resight.index.shards.replicas import Replicas
from resight.index.shards.scatter_gather import Patience, ask
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
    inner: Choice = field(default_factory=lambda: Choice("exact"))
    shards: int = 2
    replication: int = 2  # nodes that hold a shard, where there are so many
    address: str = "ray"  # see resight.ray_cluster; "ray": the cluster that this process is connected to, or a new one
    fetch: Literal["auto", "always"] = "auto"  # auto: nodes that see the folder of the index map it
    cache: Path | None = None  # of a node, for what it fetches; None: below its folder for temporary files
    patience: float = 2.0  # seconds without an answer, until the next replica is asked as well
    wait: float = 30.0  # seconds that a search waits for a shard which nobody holds

    def __post_init__(self) -> None:
        check_range("shards", self.shards, 1, 9999)
        check_range("replication", self.replication, 1, 100)
        check_range("patience", self.patience, 0.01, 3600)
        check_range("wait", self.wait, 0, 86_400)


def build(config: Config) -> "RayShards":
    inner = indexes.build(config.inner.name, **config.inner.settings)
    if not is_spreadable(inner):
        raise RecipeError(
            f"an index {config.inner.name!r} with these settings cannot be kept in shards",
            expected="one that scores each image by itself: exact, asmk_inverted, maxsim without cascade or pq …",
            actual=f"{config.inner.name} {dict(config.inner.settings)}",
            fix="choose another inner index, or keep this one on one machine",
        )
    return RayShards(config, inner)


def is_spreadable(inner: Index) -> bool:
    """Whether shards of this index answer as the whole of it."""
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
        places = [locate_shard(folder, number) for number in range(self._config.shards)]
        for place in places:
            place.mkdir(parents=True)
        inner = self._inner
        if isinstance(inner, Splittable) and inner.splittable:
            shards = _cut(inner, chunks, places, scratch)
        else:
            shards = _deal(inner, chunks, places, scratch)
        shutil.rmtree(scratch, ignore_errors=True)
        write_manifest(Manifest(self._config.inner, tuple(shards)), folder)
        return ShardSearcher(folder, self._config)

    def open(self, folder: Path) -> "ShardSearcher":
        searcher = ShardSearcher(folder, self._config)
        searcher.start()
        return searcher


def _cut(inner: Splittable, chunks: Chunks, places: Sequence[Path], scratch: Path) -> list[Shard]:
    """One index over all images, taken apart."""
    inner.create(chunks, scratch)
    counts = [
        inner.cut(scratch, place, lambda name, number=number: find_shard(name, len(places)) == number)  # type: ignore[misc]
        for number, place in enumerate(places)
    ]
    return [describe_shard(place, images) for place, images in zip(places, counts, strict=True)]


def _deal(inner: Index, chunks: Chunks, places: Sequence[Path], scratch: Path) -> list[Shard]:
    """One index over the rows of each shard."""
    shards = []
    for place, spilled in zip(places, spill(chunks, len(places), scratch), strict=True):
        inner.create(spilled, place)
        shards.append(describe_shard(place, spilled.images))
    return shards


class ShardSearcher:
    """`start` places the shards, or else the first search does. They go with `close`, or with the object."""

    def __init__(self, folder: Path, config: Config) -> None:
        self._folder = folder
        self._config = config
        self._manifest = read_manifest(folder, config.inner)
        self._placed: tuple[Keeper, Replicas] | None = None
        self._close: weakref.finalize[..., Any] | None = None

    def search(self, query: Descriptors, k: int, allowed: frozenset[str] | None = None) -> Ranking:
        keeper, replicas = self.start()
        shards = len(self._manifest.shards)
        parts: dict[int, frozenset[str] | None] = dict.fromkeys(range(shards))
        if allowed is not None:
            # Where nothing is allowed one shard is asked all the same, so that an unfit query is refused as ever.
            parts = {**split_names(allowed, shards)} or {0: frozenset()}
        patience = Patience(self._config.patience, self._config.wait)
        return merge(ask(replicas, parts, query, k, patience, keeper.wake), k)

    def start(self) -> tuple[Keeper, Replicas]:
        """Every shard lies on a node, or else: a ClusterError, or a CollectionError where files here are damaged."""
        if self._placed is None:
            _connect(self._config.address)
            with cluster_errors(f"the shards of {self._folder} cannot be placed"):
                keeper = find_keeper(self._config.cache)
                always = self._config.fetch == "always"
                replicas = Replicas(
                    self._folder, self._manifest, keeper.pool, self._config.replication, always_fetch=always
                )
                keeper.add(replicas)
            self._close = weakref.finalize(self, keeper.remove, replicas)
            self._placed = keeper, replicas
        return self._placed

    def close(self) -> None:
        if self._close is not None:
            self._close()
        self._placed = None


def _connect(address: str) -> None:
    """An address that does not answer is no fault of the index, which whoever keeps indexes would throw away."""
    try:
        connect(address)
    except InputError as error:
        raise ClusterError(error.problem, expected=error.expected, actual=error.actual, fix=error.fix) from error
