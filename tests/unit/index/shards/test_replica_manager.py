"""The thread that looks after shards: what it outlives, how it ends, and how long an index waits for hosts."""

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from resight.errors import ClusterError, CollectionError, ResightError

pytest.importorskip("ray", reason="ray is not installed: pip install 'resight[ray]'")

from resight.index.shards import hosts
from resight.index.shards import replica_manager as keeper_module
from resight.index.shards.hosts import Host
from resight.index.shards.replica_manager import Connection, Keeper

HERE = Connection("job", "127.0.0.1:1")


class FakeReplicas:
    """Held as soon as the pool has a host that is `alive`; arranging it first ends as `outcomes` say."""

    def __init__(self, keeper: Keeper, *outcomes: Exception) -> None:
        self.folder = Path("index")
        self.manifest = SimpleNamespace(shards=[0])
        self.replication = 1
        self.outcomes = list(outcomes)
        self.arranged = self.dropped = 0
        self._pool = keeper.pool

    def arrange(self) -> None:
        self.arranged += 1
        for host in [host for host in self._pool.list().values() if host.actor == "dead"]:
            del self._pool.hosts[host.node]
        if self.outcomes:
            raise self.outcomes.pop(0)

    def list_bare(self) -> list[int]:
        return [] if any(host.actor == "alive" for host in self._pool.list().values()) else [0]

    def explain(self) -> ResightError:
        return ClusterError("no node holds shard 0")

    def drop_all(self) -> None:
        self.dropped += 1


@pytest.fixture
def keeper(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Keeper]:
    """Of a cluster where nothing happens but what a test does."""
    monkeypatch.setattr(keeper_module, "PERIOD", 0.01)
    monkeypatch.setattr(keeper_module, "NAP", 0.01)
    monkeypatch.setattr(keeper_module, "find_connection", lambda: HERE)
    monkeypatch.setattr(hosts.HostPool, "check", lambda _: None)
    monkeypatch.setattr(hosts.HostPool, "refresh", lambda *_: None)
    monkeypatch.setattr(hosts.HostPool, "close", lambda _: None)
    keeper = Keeper(HERE, tmp_path)
    yield keeper
    keeper.stop()


def hold(keeper: Keeper, state: str) -> None:
    keeper.pool.hosts["a"] = Host("a", "a", 1.0, state)


def wait_until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_the_thread_outlives_every_error(keeper: Keeper, caplog: pytest.LogCaptureFixture):
    hold(keeper, "alive")
    replicas: Any = FakeReplicas(keeper)
    keeper.add(replicas)
    replicas.outcomes += [KeyError("a fault of ours")] * 3
    wait_until(lambda: not replicas.outcomes)
    before = replicas.arranged
    wait_until(lambda: replicas.arranged > before)
    assert [record.getMessage() for record in caplog.records if "a fault of ours" in record.getMessage()][1:] == []


def test_two_indexes_of_one_folder_are_told_of_apart(keeper: Keeper, caplog: pytest.LogCaptureFixture):
    hold(keeper, "alive")
    well: Any = FakeReplicas(keeper)
    sick: Any = FakeReplicas(keeper)
    keeper.add(well)
    keeper.add(sick)
    sick.outcomes += [OSError("gone")] * 5
    wait_until(lambda: not sick.outcomes)
    assert len([record for record in caplog.records if "gone" in record.getMessage()]) == 1


def test_a_thread_that_has_ended_is_started_again(keeper: Keeper, monkeypatch: pytest.MonkeyPatch):
    hold(keeper, "alive")
    replicas: Any = FakeReplicas(keeper)
    keeper.add(replicas)
    monkeypatch.setattr(keeper_module, "find_connection", lambda: None)
    wait_until(lambda: keeper._thread is None)
    monkeypatch.setattr(keeper_module, "find_connection", lambda: HERE)
    before = replicas.arranged
    keeper.wake()
    wait_until(lambda: replicas.arranged > before)


def test_stopped_it_is_gone_and_what_is_let_go_later_waits(keeper: Keeper):
    hold(keeper, "alive")
    replicas: Any = FakeReplicas(keeper)
    keeper.add(replicas)
    (thread,) = [thread for thread in threading.enumerate() if thread is keeper._thread]
    keeper.stop()
    assert not thread.is_alive()
    keeper.remove(replicas)
    assert replicas.dropped == 0
    keeper.wake()
    wait_until(lambda: replicas.dropped == 1)


def test_an_index_that_is_opened_when_all_hosts_have_died_waits_for_new_ones(
    keeper: Keeper, monkeypatch: pytest.MonkeyPatch
):
    hold(keeper, "dead")
    refreshed: list[float] = []

    def refresh(_: Any, wait: float = 0.0) -> None:
        refreshed.append(wait)
        if not keeper.pool.hosts and len(refreshed) > 3:
            hold(keeper, "alive")

    monkeypatch.setattr(hosts.HostPool, "refresh", refresh)
    replicas: Any = FakeReplicas(keeper)
    keeper.add(replicas)
    assert replicas.list_bare() == []


@pytest.mark.parametrize(
    ("outcomes", "problem"),
    [([], "no node holds shard 0"), ([CollectionError("vectors.npy is not whole")] * 9, "is not whole")],
)
def test_nobody_waits_where_all_hosts_have_been_asked(keeper: Keeper, outcomes: list[Exception], problem: str):
    hold(keeper, "full")
    begin = time.monotonic()
    replicas: Any = FakeReplicas(keeper, *outcomes)
    with pytest.raises(ResightError, match=problem):
        keeper.add(replicas)
    assert time.monotonic() - begin < keeper_module.GATHER_SECONDS
    wait_until(lambda: replicas.dropped == 1)


def test_where_no_host_comes_the_wait_ends(keeper: Keeper, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(keeper_module, "START_SECONDS", 0.1)
    with pytest.raises(ClusterError, match="no node holds shard 0"):
        keeper.add(FakeReplicas(keeper))  # type: ignore[arg-type]
