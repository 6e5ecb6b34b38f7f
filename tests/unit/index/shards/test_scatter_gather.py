"""A search over shards whose hosts are lost, silent or elsewhere, with hosts that are none."""

import time
from concurrent.futures import Future
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from support.builders import global_rows

from resight.errors import ClusterError, RecipeError
from resight.types import Choice, Ranking

ray = pytest.importorskip("ray", reason="ray is not installed: pip install 'resight[ray]'")

from resight.index.shards import hosts  # noqa: E402
from resight.index.shards.hosts import Host, HostPool  # noqa: E402
from resight.index.shards.replicas import Replicas  # noqa: E402
from resight.index.shards.scatter_gather import Timeouts, search_shards  # noqa: E402
from resight.index.shards.shard_manifest import Manifest, Shard  # noqa: E402

QUERY = global_rows(["q"], [[1, 0]])
QUICK = Timeouts(answer=0.05, restore=0.3)


class FakeHost(Host):
    """Answers by its `mood`: well, dead, mute, empty (it holds nothing) or cross (the query is refused)."""

    def __init__(self, node: str, mood: str) -> None:
        super().__init__(node, node, 1.0, None)
        self.mood = mood
        self.asked: list[list[str]] = []

    def search(self, asks: Any, *_: Any) -> "Future[Any]":
        self.asked.append([key.rpartition("/")[2] for key, _ in asks])
        future: Future[Any] = Future()
        if self.mood == "dead":
            future.set_exception(ray.exceptions.RayActorError())
        elif self.mood == "well":
            future.set_result([Ranking("q", (f"{key[-1]} of {self.node}",), np.ones(1, np.float32)) for key, _ in asks])
        elif self.mood == "empty":
            future.set_result([None] * len(asks))
        elif self.mood == "cross":
            future.set_result(RecipeError("no"))
        return future


def hold(tmp_path: Path, moods: dict[str, str], held: dict[int, list[str]]) -> tuple[Replicas, dict[str, FakeHost]]:
    """Shards that lie on these nodes."""
    hosts = {node: FakeHost(node, mood) for node, mood in moods.items()}
    pool = HostPool(tmp_path)
    pool.hosts.update(hosts)
    replicas = Replicas(tmp_path, Manifest(Choice("exact"), (Shard(1, ()),) * len(held)), pool, 2)
    replicas._held = {shard: [hosts[node] for node in nodes] for shard, nodes in held.items()}
    return replicas, hosts


def search(replicas: Replicas, *shards: int, wake: Any = lambda: None) -> list[str]:
    return [ranking.ids[0] for ranking in search_shards(replicas, dict.fromkeys(shards), QUERY, 1, QUICK, wake)]


def test_a_host_that_holds_several_shards_is_asked_once(tmp_path: Path):
    replicas, hosts = hold(tmp_path, {"a": "well", "b": "well"}, {0: ["a"], 1: ["b"], 2: ["a"]})
    assert search(replicas, 0, 1, 2) == ["0 of a", "1 of b", "2 of a"]
    assert hosts["a"].asked == [["0", "2"]]


def test_only_the_shards_that_are_wanted_are_asked(tmp_path: Path):
    replicas, hosts = hold(tmp_path, {"a": "well", "b": "well"}, {0: ["a"], 1: ["b"]})
    assert search(replicas, 1) == ["1 of b"]
    assert hosts["a"].asked == []


def test_the_least_busy_replica_is_asked(tmp_path: Path):
    replicas, hosts = hold(tmp_path, {"a": "well", "b": "well"}, {0: ["a", "b"]})
    hosts["a"].busy = 3
    assert search(replicas, 0) == ["0 of b"]
    assert hosts["b"].busy == 0, "it has answered"


@pytest.mark.parametrize("mood", ["dead", "mute", "empty"])
def test_where_one_replica_fails_the_next_answers(tmp_path: Path, mood: str):
    replicas, hosts = hold(tmp_path, {"a": mood, "b": "well"}, {0: ["a", "b"], 1: ["a", "b"]})
    hosts["b"].busy = 1  # so that the other comes first
    assert search(replicas, 0, 1) == ["0 of b", "1 of b"]
    assert hosts["a"].asked == [["0", "1"]]
    assert ("a" in replicas.pool.hosts) == (mood != "dead"), "what is dead is not asked again"


def test_a_silent_host_comes_last_until_it_answers(tmp_path: Path):
    replicas, hosts = hold(tmp_path, {"a": "mute", "b": "well"}, {0: ["a", "b"]})
    hosts["b"].busy = 1
    search(replicas, 0)
    hosts["b"].busy = 5
    assert search(replicas, 0) == ["0 of b"]
    assert len(hosts["a"].asked) == 1


def test_a_query_that_is_refused_is_refused_at_once(tmp_path: Path):
    replicas, hosts = hold(tmp_path, {"a": "cross", "b": "well"}, {0: ["a", "b"]})
    hosts["b"].busy = 1
    with pytest.raises(RecipeError, match="no"):
        search(replicas, 0)
    assert hosts["b"].asked == []


def test_a_search_waits_while_a_lost_shard_is_restored(tmp_path: Path):
    replicas, hosts = hold(tmp_path, {"a": "dead", "b": "well"}, {0: ["a"]})
    woken: list[float] = []

    def restore() -> None:
        woken.append(time.monotonic())
        if len(woken) == 3:
            replicas._held[0] = [hosts["b"]]

    assert search(replicas, 0, wake=restore) == ["0 of b"]


def test_an_error_names_a_shard_that_is_not_restored(tmp_path: Path):
    replicas, _ = hold(tmp_path, {"a": "well", "b": "dead"}, {0: ["a"], 1: ["b"]})
    with pytest.raises(ClusterError, match=r"no node holds shard 1 of"):
        search(replicas, 0, 1)


class FakeActor:
    """Notes in which group, and by which name, it is called."""

    def __init__(self) -> None:
        self.called: dict[str, str] = {}

    def __getattr__(self, method: str) -> Any:
        def options(concurrency_group: str) -> Any:
            self.called[method] = concurrency_group
            return SimpleNamespace(remote=lambda *_: None)

        return SimpleNamespace(options=options)


def test_a_sign_of_life_does_not_wait_for_shards_that_are_opened(monkeypatch: pytest.MonkeyPatch):
    actor, waited = FakeActor(), []
    host = Host("a", "a", 1.0, actor)
    monkeypatch.setattr(ray, "get", lambda _, timeout: waited.append(timeout))
    for method in ("ping", "open_shard", "commit"):
        host.begin(method)
    assert actor.called["ping"] not in (actor.called["open_shard"], actor.called["commit"])
    assert set(actor.called.values()) <= set(hosts.CONCURRENT_CALLS)
    host.call("commit")
    host.call("commit", size=10**11)
    assert waited[1] - waited[0] == 10_000, "a shard of 100 GB takes longer to be compared"
