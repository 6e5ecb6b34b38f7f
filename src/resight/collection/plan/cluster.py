"""Plan a collection on a cluster: the measured cost of one image, times the number of images.

In: `Rates` of one image (plan/probe.py), a `Node`, and the `Target`. Out: figures, each with its derivation. N images,
r replicas, S shards, c cores per node; u = 0.8 is the usable share of a node.

    memory         N · r · index bytes                          nodes = ⌈ memory / (u · memory of a node) ⌉
    disk           N · (store bytes + r · index bytes)          nodes = ⌈ disk / (u · disk of a node) ⌉
    scan           N · core-seconds per query and image         nodes = ⌈ scan / (c · latency) ⌉
    search nodes   the most of the three, and at least r: a replica beside its original would be lost with it
    encoding       N · (core-seconds to encode + to index)      nodes = ⌈ encoding / (c · deadline) ⌉
    network        S · (query bytes + k · HIT_BYTES) a query: every shard gets the query and answers with its best k
    cost           nodes · hours · price

The store counts once: a shared folder or an object store replicates by itself. Latency is that of the scan over all
shards at once; encoding the query and verifying candidates do not grow with N and add to it. The plan assumes that
cores add up without loss; docs/guides/scale.md compares this with measurements.
"""

import math
from dataclasses import dataclass

USED = 0.8
HIT_BYTES = 64  # an id of some forty letters, a score, and their frame
K = 100  # of the shortlist that a shard answers with
HOUR, MONTH = 3600.0, 730.0  # seconds, and hours


@dataclass(frozen=True)
class Rates:
    """The costs of one image, or of one query."""

    encode_core_seconds: float
    index_core_seconds: float
    scan_core_seconds: float  # added to a query by one more image
    store_bytes: float
    index_bytes: float
    query_bytes: float


@dataclass(frozen=True)
class Node:
    cores: int = 16
    memory_bytes: float = 64e9
    disk_bytes: float = 1e12
    price: float = 0.80  # per hour


@dataclass(frozen=True)
class Target:
    images: int
    replication: int = 2
    deadline_hours: float = 168.0
    latency_ms: float = 500.0
    shards: int | None = None  # None: one per node


@dataclass(frozen=True)
class Figure:
    name: str
    value: float
    unit: str
    how: str


def plan_cluster(rates: Rates, node: Node, target: Target) -> tuple[Figure, ...]:
    images, replicas = target.images, target.replication
    memory = images * replicas * rates.index_bytes
    disk = images * (rates.store_bytes + replicas * rates.index_bytes)
    by_memory = count_nodes(memory, USED * node.memory_bytes)
    by_disk = count_nodes(disk, USED * node.disk_bytes)
    by_latency = count_nodes(images * rates.scan_core_seconds, node.cores * target.latency_ms / 1000)
    searching = max(by_memory, by_disk, by_latency, replicas)
    shards = target.shards or searching
    scan = images * rates.scan_core_seconds / (node.cores * min(searching, shards * replicas))
    work = images * (rates.encode_core_seconds + rates.index_core_seconds)
    encoding = count_nodes(work, node.cores * target.deadline_hours * HOUR)
    hours = work / (node.cores * encoding) / HOUR
    network = count_network_bytes(shards, rates.query_bytes)
    count, copies = f"{images:,}", f"{replicas} replica{'s' if replicas > 1 else ''}"
    return (
        Figure("memory", memory, "bytes", f"{rates.index_bytes:,.0f} B of index per image × {count} × {copies}"),
        Figure(
            "disk",
            disk,
            "bytes",
            f"({rates.store_bytes:,.0f} B of store + {copies} × {rates.index_bytes:,.0f} B of index) × {count}",
        ),
        Figure("nodes by memory", by_memory, "nodes", f"{USED:.0%} of {_format_bytes(node.memory_bytes)} each"),
        Figure("nodes by disk", by_disk, "nodes", f"{USED:.0%} of {_format_bytes(node.disk_bytes)} each"),
        Figure(
            "nodes by latency",
            by_latency,
            "nodes",
            f"{rates.scan_core_seconds * 1e6:.3g} core-µs per image × {count}, in {target.latency_ms:g} ms on "
            f"{node.cores} cores each",
        ),
        Figure("search nodes", searching, "nodes", f"the most of these, and at least {replicas} for {copies}"),
        Figure("shards", shards, "shards", "as asked" if target.shards else "one per node"),
        Figure("images a shard", math.ceil(images / shards), "images", f"{count} / {shards:,}"),
        Figure("scan", scan, "seconds", "core-seconds of a query / cores of the nodes that take part"),
        Figure(
            "network",
            network,
            "bytes",
            f"a query: {shards:,} shards × ({rates.query_bytes:,.0f} B of query + {K} hits × {HIT_BYTES} B)",
        ),
        Figure(
            "encoding nodes",
            encoding,
            "nodes",
            f"({rates.encode_core_seconds:.3g} s to encode + {rates.index_core_seconds:.3g} s to index) an image and "
            f"core × {count}, in {target.deadline_hours:g} h on {node.cores} cores each",
        ),
        Figure("encoding", hours * HOUR, "seconds", f"on {encoding:,} nodes"),
        Figure(
            "cost of encoding",
            encoding * hours * node.price,
            "money",
            f"{encoding:,} × {hours:,.1f} h × {node.price:g}",
        ),
        Figure(
            "cost of search",
            searching * MONTH * node.price,
            "money",
            f"a month: {searching:,} × {MONTH:g} h × {node.price:g}",
        ),
    )


def count_nodes(needed: float, of_each: float) -> int:
    return max(1, math.ceil(needed / of_each))


def count_network_bytes(shards: int, query_bytes: float, k: int = K) -> float:
    return shards * (query_bytes + k * HIT_BYTES)


def _format_bytes(count: float) -> str:
    return f"{count / 1e9:,.0f} GB"
