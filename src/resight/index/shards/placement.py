"""Which shard holds an image, and which nodes hold a shard: the same answer wherever it is computed, and few moves.

An id always belongs to the same shard. Replicas are assigned by rendezvous hashing: every node draws a number for every
shard, weighted by the node's resources, and the highest wins (C. Schindelhauer and G. Schomaker, Weighted distributed
hash tables, 2005):

    score = -weight / ln(u),    u in (0, 1) from a hash of shard and node

A node that leaves passes its shards to the next in their order, and one that joins takes those that it wins; the others
stay. That alone spreads few shards badly, so no node takes more than its share, rounded up, of first replicas, nor of
first and second ones together, as long as another node has capacity and does not hold the shard yet (V. Mirrokni et
al., Consistent hashing with bounded loads, 2018).
"""

import hashlib
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from resight.types import Descriptors

EXTRAS = ("boxes", "weights", "points", "words", "seeds")  # what rows may have beside their vectors


def find_shard(name: str, shards: int) -> int:
    """The number of the shard that holds the image."""
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "big") % shards


def split_names(names: Iterable[str], shards: int) -> dict[int, frozenset[str]]:
    """Ids by the shard that holds them; shards that hold none of them are not named."""
    parts: dict[int, set[str]] = {}
    for name in names:
        parts.setdefault(find_shard(name, shards), set()).add(name)
    return {shard: frozenset(part) for shard, part in sorted(parts.items())}


def deal(chunk: Descriptors, shards: int) -> dict[int, Descriptors]:
    """The images of a chunk by the shard that they belong to, with their rows."""
    numbers = np.array([find_shard(name, shards) for name in chunk.ids], np.int64)
    return {int(shard): take_images(chunk, numbers == shard) for shard in np.unique(numbers)}


def take_images(chunk: Descriptors, kept: NDArray[np.bool_]) -> Descriptors:
    """The images that are `kept` [N]."""
    rows = kept[chunk.owners] if len(chunk.owners) else np.zeros(0, bool)
    numbers = np.cumsum(kept) - 1
    arrays = {name: array[rows] for name in EXTRAS if (array := getattr(chunk, name)) is not None}
    return replace(
        chunk,
        ids=tuple(name for name, keep in zip(chunk.ids, kept, strict=True) if keep),
        vectors=chunk.vectors[rows],
        owners=numbers[chunk.owners[rows]].astype(np.int32),
        **arrays,
    )


Placement = dict[tuple[int, int], str]  # (shard, replica) → node


def assign_replicas(shards: Sequence[str], replication: int, nodes: Mapping[str, float]) -> Placement:
    """`shards` are names that stay the same, `nodes` have weights (0: takes nothing, where another has more).

    Replicas of a shard lie on different nodes; there are fewer of them where there are fewer nodes.
    """
    weights = {node: weight for node, weight in nodes.items() if weight > 0} or dict.fromkeys(nodes, 1.0)
    total = sum(weights.values())
    loads = dict.fromkeys(weights, 0)
    orders = [sorted(weights, key=lambda node: (-draw(name, node, weights[node]), node)) for name in shards]
    placed: Placement = {}
    for replica in range(min(replication, len(weights))):
        most = {node: math.ceil(len(shards) * (replica + 1) * weight / total) for node, weight in weights.items()}
        for shard, order in enumerate(orders):
            held = {placed[shard, other] for other in range(replica)}
            free = [node for node in order if node not in held]
            least = min(free, key=lambda node: loads[node] / weights[node])
            chosen = next((node for node in free if loads[node] < most[node]), least)
            placed[shard, replica] = chosen
            loads[chosen] += 1
    return placed


def list_nodes(placed: Placement, shards: Iterable[int]) -> dict[int, list[str]]:
    """Of each shard, the best first."""
    nodes: dict[int, list[str]] = {shard: [] for shard in shards}
    for (shard, _), node in sorted(placed.items()):
        nodes[shard].append(node)
    return nodes


def draw(shard: str, node: str, weight: float) -> float:
    """What a node bids for a shard."""
    digest = hashlib.blake2b(f"{shard} on {node}".encode(), digest_size=8).digest()
    chance = (int.from_bytes(digest, "big") + 0.5) / 2**64
    return -weight / math.log(chance) if chance < 1 else math.inf
