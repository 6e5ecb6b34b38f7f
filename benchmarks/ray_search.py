"""Search on Ray, on two nodes of this machine: what the loss of one costs, and what a second one brings.

    python benchmarks/ray_search.py loss       50 queries, one node killed by kill -9 in the middle, then started again
    python benchmarks/ray_search.py scaling    the same queries on one node and on two, each with one core

Rows are random: it is about the machinery. Every answer is compared with that of the same index in this process.
"""

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))

from ray_search_parts.nodes import Node, protect

protect()  # Ray looks for the token when it is loaded

from resight import index  # noqa: E402
from resight.errors import ClusterError  # noqa: E402
from resight.index.ray_shards import Config, RayShards, ShardSearcher, build  # noqa: E402
from resight.index.shards.replica_manager import ClusterState, find_replica_manager  # noqa: E402
from resight.ray_cluster import connect  # noqa: E402
from resight.types import Choice, Descriptors, Ranking  # noqa: E402

SHARDS = 8
QUERIES = 50
PAUSE = 0.1  # seconds between queries, so that they last longer than it takes to see the loss
BATCH = 1000  # images in a chunk


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=("loss", "scaling"))
    parser.add_argument("--images", type=int, default=40_000)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="resight-ray-") as folder:
        (measure_loss if arguments.part == "loss" else measure_scaling)(Path(folder), arguments.images)


def measure_loss(folder: Path, images: int) -> None:
    """exact, 256 dimensions, on two nodes that both hold every shard."""
    rows = Rows(images, 1, 256)
    inner = Choice("exact")
    truth = make(index.build(inner.name), rows, folder / "truth")
    head = Node(folder / "ray")
    second = Node(folder / "ray", head.address)
    try:
        join(head)
        wait_for_nodes(2)
        plugin = build(Config(inner, shards=SHARDS, replication=2))
        searcher = open_shards(plugin, rows, folder / "shards")
        print(f"{images:,} images, {SHARDS} shards, {tell()}")
        queries = rows.make_queries(QUERIES)
        expected = [truth.search(query, 10) for query in queries]
        times, same = [], 0
        for number, (query, right) in enumerate(zip(queries, expected, strict=True)):
            if number == QUERIES // 3:
                print(f"query {number}: the second node is killed, {second.kill()} processes")
            time.sleep(PAUSE)
            found, seconds = search(searcher, query)
            times.append(seconds)
            same += is_same(found, right)
        print(f"{len(times)} of {QUERIES} answered, {same} identical in ids and scores; {tell()}")
        before, after = times[: QUERIES // 3], times[QUERIES // 3 :]
        print(f"before: median {1000 * statistics.median(before):.1f} ms, slowest {1000 * max(before):.0f} ms")
        print(f"after: median {1000 * statistics.median(after):.1f} ms, slowest {1000 * max(after):.0f} ms")
        begin = time.monotonic()
        second = Node(folder / "ray", head.address)
        wait_until(lambda: tell().replicas == 2 * SHARDS)
        print(
            f"the second node is back: all replicas restored {time.monotonic() - begin:.0f} s after its start; {tell()}"
        )
        again = [is_same(search(searcher, query)[0], right) for query, right in zip(queries, expected, strict=True)]
        print(f"{sum(again)} of {QUERIES} identical")
        searcher.close()
    finally:
        second.kill()
        head.kill()


def measure_scaling(folder: Path, images: int) -> None:
    """late, int8, 32 tokens of 128 dimensions, 32 of a query; every shard on one node, every node on one core."""
    rows = Rows(images, 32, 128)
    inner = Choice("late", {"kind": "int8", "keep": "none"})
    truth = make(index.build(inner.name, **inner.settings), rows, folder / "truth")
    head = Node(folder / "ray", core=0)
    second: Node | None = None
    try:
        join(head)
        wait_for_nodes(1)
        plugin = build(Config(inner, shards=SHARDS, replication=1, patience=30))
        searcher = open_shards(plugin, rows, folder / "shards")
        queries = rows.make_queries(QUERIES)
        expected = [truth.search(query, 10) for query in queries]
        one = measure(searcher, queries, expected, [head])
        second = Node(folder / "ray", head.address, core=1)
        wait_until(lambda: tell().nodes == 2)
        time.sleep(5)  # shards move
        two = measure(searcher, queries, expected, [head, second])
        print(f"two nodes: {one[0] / two[0]:.2f} times as fast by the clock, {one[1] / two[1]:.2f} by their work")
        searcher.close()
    finally:
        head.kill()
        if second is not None:
            second.kill()


class Rows:
    """Random images of some tokens of unit length, the same ones every time."""

    def __init__(self, images: int, tokens: int, dimensions: int) -> None:
        self._images, self._tokens, self._dimensions = images, tokens, dimensions

    def __call__(self) -> Iterator[Descriptors]:
        for start in range(0, self._images, BATCH):
            names = [f"image {number:07}" for number in range(start, min(start + BATCH, self._images))]
            yield self._make(names, start + 1)

    def make_queries(self, count: int) -> list[Descriptors]:
        return [self._make([f"query {number}"], 10**9 + number) for number in range(count)]

    def _make(self, names: Sequence[str], seed: int) -> Descriptors:
        rows = np.random.default_rng(seed).normal(size=(len(names) * self._tokens, self._dimensions))
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        owners = np.repeat(np.arange(len(names), dtype=np.int32), self._tokens)
        return Descriptors(tuple(names), rows.astype(np.float32), owners)


def make(plugin: index.Index, rows: Rows, folder: Path) -> index.Searcher:
    folder.mkdir()
    return plugin.create(rows, folder)


def open_shards(plugin: RayShards, rows: Rows, folder: Path) -> ShardSearcher:
    folder.mkdir()
    begin = time.monotonic()
    plugin.create(rows, folder)
    built = time.monotonic()
    searcher = plugin.open(folder)
    print(f"shards built in {built - begin:.1f} s, opened on the nodes in {time.monotonic() - built:.1f} s")
    return searcher


def measure(
    searcher: ShardSearcher, queries: Sequence[Descriptors], expected: Sequence[Ranking], nodes: Sequence[Node]
) -> tuple[float, float]:
    """Seconds of a query, warm, by the clock (the mean of the fastest fifth, which whatever else runs here disturbs
    least), and of processor time on the node that works most, which is what the clock would say on idle machines."""
    for query in queries[:5]:
        search(searcher, query)
    begin = [node.measure_work() for node in nodes]
    found = [search(searcher, query) for query in queries]
    work = [(node.measure_work() - start) / len(queries) for node, start in zip(nodes, begin, strict=True)]
    same = sum(is_same(answer, right) for (answer, _), right in zip(found, expected, strict=True))
    times = sorted(seconds for _, seconds in found)
    undisturbed = statistics.mean(times[: len(times) // 5])
    print(
        f"nodes: {len(nodes)}, fastest fifth {1000 * undisturbed:.1f} ms, "
        f"median {1000 * statistics.median(times):.1f} ms, "
        f"work on each {', '.join(f'{1000 * seconds:.1f} ms' for seconds in work)}, "
        f"{same} of {len(queries)} identical in ids and scores; {tell()}"
    )
    return undisturbed, max(work)


def search(searcher: ShardSearcher, query: Descriptors) -> tuple[Ranking, float]:
    begin = time.perf_counter()
    found = searcher.search(query, 10)
    return found, time.perf_counter() - begin


def is_same(found: Ranking, right: Ranking) -> bool:
    return found.ids == right.ids and bool(np.array_equal(found.scores, right.scores))


def tell() -> ClusterState:
    return find_replica_manager().describe_state()


def join(head: Node) -> None:
    """A node listens before it can be joined."""
    for _ in range(20):
        try:
            return connect(f"ray://{head.address}")
        except ClusterError:
            time.sleep(1)
    return connect(f"ray://{head.address}")


def wait_for_nodes(count: int) -> None:
    import ray

    wait_until(lambda: sum(node["Alive"] for node in ray.nodes()) >= count)


def wait_until(is_so, seconds: float = 180) -> None:  # type: ignore[no-untyped-def]
    deadline = time.monotonic() + seconds
    while not is_so():
        if time.monotonic() > deadline:
            raise SystemExit(f"still not so after {seconds} s; {tell()}")
        time.sleep(0.1)


if __name__ == "__main__":
    main()
