"""The model of many machines, worked out by hand."""

import pytest

from resight.apps.cli.plan import parse_count
from resight.collection.plan.cluster import Node, Rates, Target, count_network_bytes, count_nodes, plan_cluster
from resight.errors import InputError

RATES = Rates(
    encode_core_seconds=0.9,
    index_core_seconds=0.1,
    scan_core_seconds=2e-6,
    store_bytes=5000,
    index_bytes=1000,
    query_bytes=600,
)
NODE = Node(cores=10, memory_bytes=50e9, disk_bytes=1e12, price=2.0)


def read(rates: Rates = RATES, node: Node = NODE, **wanted: float) -> dict[str, float]:
    return {figure.name: figure.value for figure in plan_cluster(rates, node, Target(**wanted))}


def test_a_hundred_million_images() -> None:
    found = read(images=100_000_000, replication=2, deadline_hours=100, latency_ms=100)
    assert found["memory"] == 200e9  # 1000 B × 1e8 × 2
    assert found["nodes by memory"] == 5  # 200 GB / (0.8 × 50 GB)
    assert found["disk"] == 700e9  # (5000 B + 2 × 1000 B) × 1e8
    assert found["nodes by disk"] == 1  # 0.7 TB / 0.8 TB
    assert found["nodes by latency"] == 200  # 200 core-seconds / (10 cores × 0.1 s)
    assert found["search nodes"] == found["shards"] == 200
    assert found["images a shard"] == 500_000
    assert found["scan"] == pytest.approx(0.1)
    assert found["encoding nodes"] == 28  # 1e8 core-seconds / (10 × 360,000 s) = 27.8
    assert found["encoding"] == pytest.approx(1e8 / 280)
    assert found["cost of encoding"] == pytest.approx(1e8 / 10 / 3600 * 2)
    assert found["cost of search"] == 200 * 730 * 2


def test_the_scarcest_of_memory_disk_and_latency_decides() -> None:
    assert read(images=100_000_000, latency_ms=1e6)["search nodes"] == 5
    small = Node(cores=10, memory_bytes=50e9, disk_bytes=100e9)
    assert read(node=small, images=100_000_000, latency_ms=1e6)["search nodes"] == 9  # 700 GB / 80 GB


def test_few_images_still_need_a_machine_for_each_replica() -> None:
    assert read(images=10, replication=3)["search nodes"] == 3
    assert read(images=10, replication=1)["search nodes"] == 1


def test_few_shards_leave_machines_idle() -> None:
    found = read(images=100_000_000, replication=1, latency_ms=100, shards=50)
    assert (found["search nodes"], found["images a shard"]) == (200, 2_000_000)
    assert found["scan"] == pytest.approx(200 / (10 * 50))  # 50 of the 200 machines scan


def test_every_shard_gets_the_query_and_answers() -> None:
    assert count_network_bytes(shards=3, query_bytes=600, k=10) == 3 * (600 + 10 * 64)


def test_a_part_of_a_node_is_a_node() -> None:
    assert [count_nodes(needed, 10) for needed in (0, 1, 10, 10.1)] == [1, 1, 1, 2]


def test_each_figure_says_how_it_was_reached() -> None:
    how = {figure.name: figure.how for figure in plan_cluster(RATES, NODE, Target(1_000_000))}
    assert how["memory"] == "1,000 B of index per image × 1,000,000 × 2 replicas"
    assert all(how.values())


@pytest.mark.parametrize(
    ("text", "number"), [("1e9", 10**9), ("1_000_000", 10**6), ("1000000", 10**6), ("1", 1), ("2.5e3", 2500)]
)
def test_numbers_of_images_are_written_in_several_ways(text: str, number: int) -> None:
    assert parse_count(text) == number


def test_a_long_number_stays_exact() -> None:
    assert parse_count("9007199254740993") == 9007199254740993


@pytest.mark.parametrize("text", ["0", "-5", "1.5", "1e-3", "nan", "inf", "many", "", "0x10"])
def test_what_is_no_number_of_images_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="cannot plan for that many images"):
        parse_count(text)
