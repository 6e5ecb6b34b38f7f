"""Shards brought to hosts that come, go, are full, fail, or are sent what is damaged, with hosts that are none."""

from pathlib import Path
from typing import Any

import pytest

from resight.errors import ClusterError, CollectionError, MissingExtra, StorageError
from resight.types import Choice

ray = pytest.importorskip("ray", reason="ray is not installed: pip install 'resight[ray]'")

from resight.index.shards import replicas as replicas_module  # noqa: E402
from resight.index.shards.hosts import Host, HostPool  # noqa: E402
from resight.index.shards.replicas import Replicas  # noqa: E402
from resight.index.shards.shard_manifest import Manifest, describe_shard, locate_shard  # noqa: E402

SHARDS = 8


class FakeHost(Host):
    """Holds up to `room` shards, of which it sees those in the folder unless it is `blind`."""

    def __init__(self, node: str, log: list[tuple[str, str, str]], room: int = 99, weight: float = 1.0) -> None:
        super().__init__(node, node, weight, None)
        self.log = log
        self.room = room
        self.fault: dict[str, Exception] = {}  # what holding a shard ends with
        self.blind = False
        self.held: set[str] = set()

    def begin(self, method: str, *arguments: Any) -> Any:
        if method in ("open_shard", "drop"):
            number = arguments[0].rpartition("/")[2]
            self.log.append((method, number, self.node))
            return self._hold(number) if method == "open_shard" else self.held.discard(number)
        if method == "prepare" and len(self.held) >= self.room:
            return StorageError(f"no room on {self.node}")
        if method == "commit":
            self.blind = False
        return None

    def call(self, method: str, *arguments: Any, size: int = 0) -> Any:  # noqa: ARG002
        return self.begin(method, *arguments)

    def _hold(self, number: str) -> Any:
        if number in self.fault:
            return self.fault[number]
        if self.blind or len(self.held) >= self.room:
            return "absent"
        self.held.add(number)
        return "held"


class Cluster:
    """An index of eight shards, each a file of one byte."""

    def __init__(self, folder: Path, nodes: str, replication: int = 2) -> None:
        shards = []
        for number in range(SHARDS):
            shard_folder = locate_shard(folder, number)
            shard_folder.mkdir(parents=True)
            (shard_folder / "rows").write_bytes(bytes([number]))
            shards.append(describe_shard(shard_folder, 1))
        self.folder = folder
        self.log: list[tuple[str, str, str]] = []
        self.pool = HostPool(folder)
        self.hosts: dict[str, FakeHost] = {}
        self.replicas = Replicas(folder, Manifest(Choice("exact"), tuple(shards)), self.pool, replication)
        for node in nodes:
            self.join(FakeHost(node, self.log))

    def join(self, host: FakeHost) -> FakeHost:
        self.pool.hosts[host.node] = self.hosts[host.node] = host
        return host

    def count(self) -> dict[str, int]:
        return {node: len(self.hosts[node].held) for node in self.pool.hosts}


@pytest.fixture(autouse=True)
def get_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def get(answer: Any, timeout: float | None = None) -> Any:  # noqa: ARG001
        if isinstance(answer, ray.exceptions.RayError):
            raise answer
        return answer

    monkeypatch.setattr(ray, "get", get)


def test_a_node_that_joins_gets_its_share_and_nothing_is_dropped_before_it_was_brought(tmp_path: Path):
    cluster = Cluster(tmp_path, "ab")
    cluster.replicas.arrange()
    assert cluster.count() == {"a": 8, "b": 8}
    cluster.log.clear()
    cluster.join(FakeHost("c", cluster.log))
    cluster.replicas.arrange()
    assert sum(cluster.count().values()) == cluster.replicas.count() == 16
    assert cluster.count()["c"] >= 4
    for number in {number for _, number, _ in cluster.log}:
        assert [method for method, other, _ in cluster.log if other == number] == ["open_shard", "drop"]


def test_what_a_lost_node_held_is_restored(tmp_path: Path):
    cluster = Cluster(tmp_path, "abc")
    cluster.replicas.arrange()
    del cluster.pool.hosts["c"]
    assert cluster.replicas.list_unheld() == []
    cluster.replicas.arrange()
    assert cluster.count() == {"a": 8, "b": 8}


def test_full_nodes_keep_what_they_hold(tmp_path: Path):
    cluster = Cluster(tmp_path, "abc")
    cluster.replicas.arrange()
    for host in cluster.hosts.values():
        host.room = len(host.held)
    before = cluster.count()
    del cluster.pool.hosts["c"]
    cluster.log.clear()
    cluster.replicas.arrange()
    cluster.replicas.arrange()
    assert cluster.count() == {"a": before["a"], "b": before["b"]}
    assert cluster.replicas.list_unheld() == []
    assert not [one for one in cluster.log if one[0] == "drop"]


def test_what_a_full_node_cannot_take_another_takes_and_later_it_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    cluster = Cluster(tmp_path, "ab")
    cluster.replicas.arrange()
    small = cluster.join(FakeHost("c", cluster.log, room=1))
    cluster.replicas.arrange()
    assert cluster.replicas.count() == 16
    assert len(small.held) == 1
    small.room = 99
    cluster.replicas.arrange()
    assert len(small.held) == 1
    monkeypatch.setattr(replicas_module, "BARRED_SECONDS", 0.0)
    cluster.replicas.arrange()
    assert len(small.held) >= 4


def test_a_node_without_cores_gives_its_shards_to_one_that_has_some(tmp_path: Path):
    cluster = Cluster(tmp_path, "")
    cluster.join(FakeHost("head", cluster.log, weight=0.0))
    cluster.replicas.arrange()
    assert cluster.count() == {"head": 8}
    cluster.join(FakeHost("worker", cluster.log))
    cluster.replicas.arrange()
    assert cluster.count() == {"head": 0, "worker": 8}


@pytest.mark.parametrize(
    "fault", [ray.exceptions.RayTaskError("open_shard", "MemoryError", MemoryError()), MissingExtra("x")]
)
def test_a_node_that_fails_at_a_shard_is_not_lost_and_another_takes_it(tmp_path: Path, fault: Exception):
    cluster = Cluster(tmp_path, "abc", replication=1)
    for host in cluster.hosts.values():
        if host.node != "c":
            host.fault = {str(number): fault for number in range(SHARDS)}
    with pytest.raises((ClusterError, MissingExtra)):
        cluster.replicas.arrange()
    assert cluster.count() == {"a": 0, "b": 0, "c": 8}


def test_the_error_of_a_node_is_the_clusters_and_names_both(tmp_path: Path):
    cluster = Cluster(tmp_path, "a")
    cluster.hosts["a"].fault = {"3": CollectionError("cannot be opened", actual="permission denied")}
    with pytest.raises(ClusterError, match=r"node a cannot hold shard 3 [\s\S]*permission denied"):
        cluster.replicas.arrange()
    assert cluster.replicas.list_unheld() == [3], "the others are held"
    assert "permission denied" in str(cluster.replicas.explain())


def test_what_is_damaged_here_is_named_and_is_no_fault_of_a_node(tmp_path: Path):
    cluster = Cluster(tmp_path, "a")
    cluster.hosts["a"].fault = {"3": CollectionError("cannot be opened")}
    (locate_shard(tmp_path, 3) / "rows").write_bytes(b"x")  # as long as before
    with pytest.raises(CollectionError, match=r"0003/rows is damaged"):
        cluster.replicas.arrange()


def test_a_file_that_was_cut_short_is_named_when_a_host_is_to_have_it(tmp_path: Path):
    cluster = Cluster(tmp_path, "a")
    cluster.hosts["a"].blind = True
    (locate_shard(tmp_path, 0) / "rows").write_bytes(b"")
    with pytest.raises(CollectionError, match=r"0000/rows is incomplete"):
        cluster.replicas.arrange()
    assert "0000/rows is incomplete" in str(cluster.replicas.explain())
    assert cluster.replicas.list_unheld() == [0], "the others were sent"


def test_dropped_altogether_nothing_is_held(tmp_path: Path):
    cluster = Cluster(tmp_path, "ab")
    cluster.replicas.arrange()
    cluster.replicas.drop_all()
    assert cluster.count() == {"a": 0, "b": 0}
    assert cluster.replicas.count() == 0
