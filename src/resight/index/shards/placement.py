"""Which shard holds an image, and which nodes hold a shard. Every process computes the same answer; few shards move.

An id always belongs to the same shard. Replicas are assigned by rendezvous hashing: every node draws a number for every
shard, weighted by the node's resources, and the highest wins (C. Schindelhauer and G. Schomaker, Weighted distributed
hash tables, 2005):

    score = -weight / ln(u),    u in (0, 1) from a hash of shard and node

A node that leaves passes each of its shards to the next node in the shard's order; a node that joins takes the shards
that it wins; all other shards stay. Few shards would spread unevenly, so the load is bounded (V. Mirrokni et al.,
Consistent hashing with bounded loads, 2018): a node takes no more than its share, rounded up, of the first replicas,
nor of the first and second ones together, as long as another node has capacity and does not hold the shard yet.
"""

import hashlib
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from resight.types import Descriptors

EXTRAS = ("boxes", "weights", "points", "words", "seeds")  # optional arrays with one entry per row


def find_shard(name: str, shards: int) -> int:
    """The number of the shard that holds the image."""
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "big") % shards


def split_names(names: Iterable[str], shards: int) -> dict[int, frozenset[str]]:
    """Group ids by the shard that holds them; shards that hold none are left out."""
    parts: dict[int, set[str]] = {}
    for name in names:
        parts.setdefault(find_shard(name, shards), set()).add(name)
    return {shard: frozenset(part) for shard, part in sorted(parts.items())}


def partition(chunk: Descriptors, shards: int) -> dict[int, Descriptors]:
    """Split a chunk by shard: the images of each, with their rows."""
    numbers = np.array([find_shard(name, shards) for name in chunk.ids], np.int64)
    return {int(shard): select_images(chunk, numbers == shard) for shard in np.unique(numbers)}


def select_images(chunk: Descriptors, kept: NDArray[np.bool_]) -> Descriptors:
    """The images that the mask `kept` [N] selects, with their rows."""
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
    """Choose the nodes of every shard. A node of weight 0 takes nothing if another node has a positive weight.

    `shards` are stable names. Replicas of a shard lie on different nodes, so a shard has at most as many as there are
    nodes.
    """
    weights = {node: weight for node, weight in nodes.items() if weight > 0} or dict.fromkeys(nodes, 1.0)
    total = sum(weights.values())
    loads = dict.fromkeys(weights, 0)
    orders = [sorted(weights, key=lambda node: (-score_node(name, node, weights[node]), node)) for name in shards]
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
    """The nodes of each shard, best first."""
    nodes: dict[int, list[str]] = {shard: [] for shard in shards}
    for (shard, _), node in sorted(placed.items()):
        nodes[shard].append(node)
    return nodes


def score_node(shard: str, node: str, weight: float) -> float:
    """The score of a node for a shard."""
    digest = hashlib.blake2b(f"{shard} on {node}".encode(), digest_size=8).digest()
    chance = (int.from_bytes(digest, "big") + 0.5) / 2**64
    return -weight / math.log(chance) if chance < 1 else math.inf
