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
from resight.index.shards import replica_manager as manager_module
from resight.index.shards.hosts import Host
from resight.index.shards.replica_manager import Connection, ReplicaManager

HERE = Connection("job", "127.0.0.1:1")


class FakeReplicas:
    """Held as soon as the pool has a host that is `alive`; its first calls of `arrange` raise `outcomes`."""

    def __init__(self, manager: ReplicaManager, *outcomes: Exception) -> None:
        self.folder = Path("index")
        self.manifest = SimpleNamespace(shards=[0])
        self.replication = 1
        self.outcomes = list(outcomes)
        self.arranged = self.dropped = 0
        self._pool = manager.pool

    def arrange(self) -> None:
        self.arranged += 1
        for host in [host for host in self._pool.list().values() if host.actor == "dead"]:
            del self._pool.hosts[host.node]
        if self.outcomes:
            raise self.outcomes.pop(0)

    def list_unheld(self) -> list[int]:
        return [] if any(host.actor == "alive" for host in self._pool.list().values()) else [0]

    def explain(self) -> ResightError:
        return ClusterError("no node holds shard 0")

    def drop_all(self) -> None:
        self.dropped += 1


@pytest.fixture
def manager(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ReplicaManager]:
    """A manager of a fake cluster that only the test changes."""
    monkeypatch.setattr(manager_module, "PERIOD", 0.01)
    monkeypatch.setattr(manager_module, "NAP", 0.01)
    monkeypatch.setattr(manager_module, "find_connection", lambda: HERE)
    monkeypatch.setattr(hosts.HostPool, "check", lambda _: None)
    monkeypatch.setattr(hosts.HostPool, "refresh", lambda *_: None)
    monkeypatch.setattr(hosts.HostPool, "close", lambda _: None)
    manager = ReplicaManager(HERE, tmp_path)
    yield manager
    manager.stop()


def hold(manager: ReplicaManager, state: str) -> None:
    manager.pool.hosts["a"] = Host("a", "a", 1.0, state)


def wait_until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_the_thread_outlives_every_error(manager: ReplicaManager, caplog: pytest.LogCaptureFixture):
    hold(manager, "alive")
    replicas: Any = FakeReplicas(manager)
    manager.add(replicas)
    replicas.outcomes += [KeyError("a fault of ours")] * 3
    wait_until(lambda: not replicas.outcomes)
    before = replicas.arranged
    wait_until(lambda: replicas.arranged > before)
    assert [record.getMessage() for record in caplog.records if "a fault of ours" in record.getMessage()][1:] == []


def test_two_indexes_of_one_folder_report_their_errors_separately(
    manager: ReplicaManager, caplog: pytest.LogCaptureFixture
):
    hold(manager, "alive")
    well: Any = FakeReplicas(manager)
    sick: Any = FakeReplicas(manager)
    manager.add(well)
    manager.add(sick)
    sick.outcomes += [OSError("gone")] * 5
    wait_until(lambda: not sick.outcomes)
    assert len([record for record in caplog.records if "gone" in record.getMessage()]) == 1


def test_a_thread_that_has_ended_is_started_again(manager: ReplicaManager, monkeypatch: pytest.MonkeyPatch):
    hold(manager, "alive")
    replicas: Any = FakeReplicas(manager)
    manager.add(replicas)
    monkeypatch.setattr(manager_module, "find_connection", lambda: None)
    wait_until(lambda: manager._thread is None)
    monkeypatch.setattr(manager_module, "find_connection", lambda: HERE)
    before = replicas.arranged
    manager.wake()
    wait_until(lambda: replicas.arranged > before)


def test_stopped_it_is_gone_and_what_is_let_go_later_waits(manager: ReplicaManager):
    hold(manager, "alive")
    replicas: Any = FakeReplicas(manager)
    manager.add(replicas)
    (thread,) = [thread for thread in threading.enumerate() if thread is manager._thread]
    manager.stop()
    assert not thread.is_alive()
    manager.remove(replicas)
    assert replicas.dropped == 0
    manager.wake()
    wait_until(lambda: replicas.dropped == 1)


def test_an_index_that_is_opened_when_all_hosts_have_died_waits_for_new_ones(
    manager: ReplicaManager, monkeypatch: pytest.MonkeyPatch
):
    hold(manager, "dead")
    refreshed: list[float] = []

    def refresh(_: Any, wait: float = 0.0) -> None:
        refreshed.append(wait)
        if not manager.pool.hosts and len(refreshed) > 3:
            hold(manager, "alive")

    monkeypatch.setattr(hosts.HostPool, "refresh", refresh)
    replicas: Any = FakeReplicas(manager)
    manager.add(replicas)
    assert replicas.list_unheld() == []


@pytest.mark.parametrize(
    ("outcomes", "problem"),
    [([], "no node holds shard 0"), ([CollectionError("vectors.npy is incomplete")] * 9, "is incomplete")],
)
def test_add_does_not_wait_if_all_hosts_have_refused(manager: ReplicaManager, outcomes: list[Exception], problem: str):
    hold(manager, "full")
    begin = time.monotonic()
    replicas: Any = FakeReplicas(manager, *outcomes)
    with pytest.raises(ResightError, match=problem):
        manager.add(replicas)
    assert time.monotonic() - begin < manager_module.GATHER_SECONDS
    wait_until(lambda: replicas.dropped == 1)


def test_where_no_host_comes_the_wait_ends(manager: ReplicaManager, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(manager_module, "START_SECONDS", 0.1)
    with pytest.raises(ClusterError, match="no node holds shard 0"):
        manager.add(FakeReplicas(manager))  # type: ignore[arg-type]
