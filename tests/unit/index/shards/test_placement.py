from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.builders import ragged_rows

from resight.index.shards.placement import Placement, assign_replicas, find_shard, partition, score_node, split_names

NAMES = [f"image {number}" for number in range(20)]
NODES = st.dictionaries(st.text("abcdef", min_size=1, max_size=3), st.floats(0.5, 16), min_size=1, max_size=8)


def name_shards(count: int) -> list[str]:
    return [f"shard {number}" for number in range(count)]


def list_holders(placed: Placement) -> set[tuple[int, str]]:
    return {(shard, node) for (shard, _), node in placed.items()}


def test_the_highest_bid_wins():
    bids = {node: score_node("shard 0", node, 1.0) for node in "abc"}
    assert assign_replicas(["shard 0"], 1, dict.fromkeys("abc", 1.0)) == {(0, 0): max(bids, key=bids.__getitem__)}


def test_a_heavier_node_bids_more():
    assert score_node("shard 0", "a", 2.0) == pytest.approx(2 * score_node("shard 0", "a", 1.0))


def test_two_nodes_share_the_shards_and_each_holds_a_replica_of_all():
    placed = assign_replicas(name_shards(8), 2, {"a": 4.0, "b": 4.0})
    assert Counter(node for (_, replica), node in placed.items() if replica == 0) == {"a": 4, "b": 4}
    assert list_holders(placed) == {(shard, node) for shard in range(8) for node in "ab"}


def test_a_node_with_three_times_the_cores_takes_three_times_the_shards():
    assert Counter(assign_replicas(name_shards(8), 1, {"small": 2.0, "large": 6.0}).values()) == {
        "large": 6,
        "small": 2,
    }


def test_a_node_without_cores_takes_nothing_where_another_has_some():
    assert set(assign_replicas(name_shards(4), 2, {"head": 0.0, "worker": 1.0}).values()) == {"worker"}
    assert set(assign_replicas(name_shards(4), 2, {"head": 0.0}).values()) == {"head"}


def test_without_nodes_nothing_is_placed():
    assert assign_replicas(name_shards(2), 2, {}) == {}


@given(NODES, st.integers(0, 24), st.integers(1, 4))
def test_every_shard_has_its_replicas_on_different_nodes(nodes: dict[str, float], shards: int, replication: int):
    placed = assign_replicas(name_shards(shards), replication, nodes)
    replicas = min(replication, len(nodes))
    assert set(placed) == {(shard, replica) for shard in range(shards) for replica in range(replicas)}
    assert len(list_holders(placed)) == len(placed)
    assert set(placed.values()) <= set(nodes)


@given(st.integers(2, 12), st.integers(1, 40), st.integers(1, 3))
def test_equal_nodes_carry_equal_loads(nodes: int, shards: int, replication: int):
    placed = assign_replicas(name_shards(shards), replication, {f"node {number}": 1.0 for number in range(nodes)})
    first = Counter(node for (_, replica), node in placed.items() if replica == 0)
    assert max(first.values()) <= -(-shards // nodes)
    share = shards * min(replication, nodes) / nodes
    assert max(Counter(placed.values()).values()) <= 1.5 * share + 1, "replicas on different nodes leave less choice"


@pytest.mark.parametrize("change", ["comes", "goes"])
def test_few_shards_move_when_a_node_comes_or_goes(change: str):
    """64 shards × 2 on 8 nodes: a ninth node takes 14, and the loss of one leaves 16 to be restored. Twice as many
    may move, because no node may exceed its share; round-robin would move 113."""
    few = {f"node {number}": 4.0 for number in range(8)}
    many = {**few, "one more": 4.0}
    before, after = (few, many) if change == "comes" else (many, few)
    old = list_holders(assign_replicas(name_shards(64), 2, before))
    new = list_holders(assign_replicas(name_shards(64), 2, after))
    assert 14 <= len(new - old) <= 32


def test_an_id_always_has_the_same_shard():
    assert [find_shard(name, 5) for name in ("a", "b", "ü/日本.jpg", "")] == [3, 3, 3, 1]


def test_ids_are_grouped_by_their_shard():
    parts = split_names(NAMES, 3)
    assert sorted(name for part in parts.values() for name in part) == sorted(NAMES)
    assert all(find_shard(name, 3) == shard for shard, part in parts.items() for name in part)


def test_partitioned_images_keep_their_rows_and_boxes():
    rows = ragged_rows(NAMES)
    for shard, part in partition(rows, 3).items():
        numbers = [NAMES.index(name) for name in part.ids]
        assert all(find_shard(name, 3) == shard for name in part.ids)
        assert np.bincount(part.owners, minlength=len(part.ids)).tolist() == [number % 3 for number in numbers]
        assert part.vectors[:, 0].tolist() == [numbers[owner] for owner in part.owners]
        assert part.boxes[:, 3].tolist() == part.vectors[:, 0].tolist()
        assert part.space == "s"
