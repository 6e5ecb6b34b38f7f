"""Adding on a Ray cluster: the collection that one machine would have made, whatever is lost on the way."""

import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
from support.killing import check_equal, kill_after, open_plain
from support.running import run
from support.scenes import draw_scene, write_jpeg, write_scenes

import resight
from resight.collection import ray_add, ray_worker
from resight.collection.ray_worker import Block, Failure, Job, Outcome, Worker
from resight.errors import ClusterError, CollectionBusy, InputError, StorageError
from resight.files.lock import writer_lock
from resight.ray_cluster import list_versions
from resight.types import ImageRef

pytestmark = pytest.mark.usefixtures("ray_cluster")

# Commits after every block of four, so that there are many moments to be killed at; from the third report on it goes no
# further, so that on a busy machine, too, it is killed before it is done.
ADD = """
import sys, time
import resight
from resight.collection import ray_add
ray_add.SMALLEST_BLOCK = ray_add.LARGEST_BLOCK = 4
ray_add.COMMIT_SECONDS = 0
photos = resight.open(sys.argv[2], "sift")
reports = 0
def tell(done, total):
    global reports
    reports += 1
    print(done, flush=True)
    time.sleep(600 if reports >= 3 else 0)
photos.add(sys.argv[1], engine=sys.argv[3], progress=tell)
"""


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Forty small scenes, and two files that are none."""
    folder = tmp_path_factory.mktemp("ray") / "photos"
    write_scenes(folder, 40, size=(160, 120))
    (folder / "broken.jpg").write_bytes(b"no image")
    (folder / "empty.png").touch()
    return folder


@pytest.fixture(scope="module")
def whole(photos: Path, tmp_path_factory: pytest.TempPathFactory) -> resight.Collection:
    """What one machine makes of them."""
    collection = open_plain(tmp_path_factory.mktemp("whole") / "whole.resight")
    collection.add(photos)
    return collection


def test_the_cluster_makes_the_same_collection_and_the_same_report(photos: Path, tmp_path: Path) -> None:
    whole = resight.open(tmp_path / "whole.resight")
    whole.add(photos)
    seen: list[tuple[int, int]] = []
    spread = resight.open(tmp_path / "spread.resight")
    report = spread.add(photos, engine="ray", progress=lambda done, total: seen.append((done, total)))
    assert (report.added, report.updated, report.unchanged) == (40, 0, 0)
    again = whole.add(photos)
    assert sorted(report.skipped, key=lambda one: one.path) == sorted(again.skipped, key=lambda one: one.path)
    assert len(report.skipped) == 2
    assert seen[-1] == (42, 42)
    assert seen == sorted(seen)
    check_equal(spread, whole)
    assert not (tmp_path / "spread.resight" / ray_worker.TOKEN).exists()


def test_what_has_changed_is_replaced_and_the_rest_is_left_alone(photos: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(photos, tmp_path / "photos"))
    collection = open_plain(tmp_path / "c.resight")
    collection.add(folder)
    write_jpeg(folder / "scene_03.jpg", draw_scene(77, 160, 120))
    write_jpeg(folder / "scene_77.jpg", draw_scene(78, 160, 120))
    report = collection.add(folder, engine="ray")
    assert (report.added, report.updated, report.unchanged, len(report.skipped)) == (1, 1, 39, 2)
    anew = open_plain(tmp_path / "anew.resight")
    anew.add(folder)
    check_equal(collection, anew)


def test_files_of_one_name_in_two_folders_get_the_ids_that_they_get_on_one_machine(tmp_path: Path) -> None:
    sources = [tmp_path / "a", tmp_path / "b", tmp_path / "a" / "scene_00.jpg"]
    write_scenes(tmp_path / "a", 2, size=(160, 120))
    write_scenes(tmp_path / "b", 2, size=(160, 120))
    alone, spread = open_plain(tmp_path / "alone.resight"), open_plain(tmp_path / "spread.resight")
    assert spread.add(*sources, engine="ray") == alone.add(*sources)
    assert sorted(record.id for record in spread.records()) == [
        "b/scene_00.jpg",
        "b/scene_01.jpg",
        "scene_00.jpg",
        "scene_01.jpg",
    ]
    check_equal(spread, alone)


@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL")
def test_the_driver_killed_and_run_again_it_is_the_collection_that_it_would_have_been(
    ray_cluster: Any, photos: Path, whole: resight.Collection, tmp_path: Path
) -> None:
    engine = f"ray://{ray_cluster.get_runtime_context().gcs_address}"
    killed = tmp_path / "killed.resight"
    words = [sys.executable, "-W", "ignore", "-c", ADD, str(photos), str(killed), engine]
    reported = kill_after(subprocess.Popen(words, stdout=subprocess.PIPE, text=True), lines=3, pause=0.0)
    stored = len(open_plain(killed))
    assert 0 < stored < 40, "the test needs to kill it earlier or later"
    assert stored >= reported - 2  # the two that were skipped
    report = open_plain(killed).add(photos, engine="ray")
    assert (report.added, report.updated, report.unchanged) == (40 - stored, 0, stored)
    check_equal(open_plain(killed), whole)


def test_a_node_of_another_version_is_named_with_both_versions(
    photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    newer = {**list_versions(), "resight": "99.0"}
    monkeypatch.setattr("resight.ray_cluster.list_versions", lambda: newer)  # in this process, not on the nodes
    with pytest.raises(ClusterError) as caught:
        open_plain(tmp_path / "c.resight").add(photos, engine="ray")
    assert "runs another version" in caught.value.problem
    assert caught.value.expected == "resight 99.0, as here"
    assert caught.value.actual == f"resight {metadata.version('resight')}"


def make_job(collection: resight.Collection, token: str = "right") -> Job:
    (collection.path / ray_worker.TOKEN).write_text("right")
    return Job(collection.path, token, collection.metadata.spaces, list_versions())


def work(job: Job, block: Block) -> Outcome:
    """What a worker makes of a block, in this process."""
    return Worker(job)._work(block)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"token": "wrong"}, "is not the same folder on every node"),
        ({"versions": {"resight": "99.0"}}, "runs another version"),
        ({"spaces": ("another",)}, "this node encodes differently"),
    ],
)
def test_a_worker_that_does_not_fit_says_so_and_names_its_node(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: dict[str, Any], problem: str
) -> None:
    monkeypatch.setattr(ray_worker, "PAUSE", 0.0)
    job = replace(make_job(open_plain(tmp_path / "c.resight")), **change)
    failure = work(job, Block(0, (ImageRef("a", tmp_path / "a.jpg"),), True)).failure
    assert failure is not None
    assert isinstance(failure.error, ClusterError)
    assert problem in failure.error.problem
    assert failure.error.problem.startswith(f"node {ray_worker.name_node()}")


def make_failure(node: str) -> Failure:
    return Failure(node, f"id of {node}", "StorageError", "the disk is full", "room", "0 bytes", "free some")


def test_a_block_that_a_full_node_could_not_write_is_written_by_another(
    photos: Path, whole: resight.Collection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    excluded: list[list[str]] = []

    def encode(blocks: Sequence[Block], job: Job, without: Sequence[str]) -> Iterator[Outcome]:
        excluded.append(list(without))
        for number, block in enumerate(blocks):
            yield work(job, block) if number or without else Outcome(block.number, failure=make_failure("full"))
            if number:
                yield work(job, block)  # Ray repeats a task whose result was lost

    monkeypatch.setattr(ray_add, "encode", encode)
    collection = open_plain(tmp_path / "c.resight")
    assert collection.add(photos, engine="ray").added == 40
    assert excluded == [[], ["id of full"]]
    check_equal(collection, whole)


def test_workers_are_kept_off_a_node_that_cannot_write(photos: Path, tmp_path: Path) -> None:
    job = make_job(open_plain(tmp_path / "c.resight"))
    block = Block(0, (ImageRef("a", photos / "scene_01.jpg"),), True)
    (outcome,) = ray_add.encode([block], job, ["0" * 56])
    assert outcome.failure is None
    assert [record.id for record in outcome.stored] == ["a"]


def test_when_no_node_can_write_it_is_a_storage_error_and_what_was_committed_stays(
    ray_cluster: Any, photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (node,) = [node["NodeID"] for node in ray_cluster.nodes() if node["Alive"]]

    def encode(blocks: Sequence[Block], job: Job, without: Sequence[str]) -> Iterator[Outcome]:
        yield work(job, blocks[0])
        for block in blocks[1:]:
            yield Outcome(block.number, failure=Failure(f"n{len(without)}", node, "StorageError", "full", "", "", ""))

    monkeypatch.setattr(ray_add, "encode", encode)
    collection = open_plain(tmp_path / "c.resight")
    with pytest.raises(StorageError, match="node n0: full"):
        collection.add(photos, engine="ray")
    stored = len(collection)
    assert 0 < stored < 40
    monkeypatch.undo()
    report = collection.add(photos)
    assert (report.added, report.unchanged) == (40 - stored, stored)


def test_the_command_takes_an_engine(photos: Path, tmp_path: Path) -> None:
    answer = run(
        "index", photos, "--into", tmp_path / "c.resight", "--recipe", "sift", "--engine", "ray", "--json"
    ).answer
    assert (answer["images"], answer["added"], len(answer["skipped"])) == (40, 40, 2)


@pytest.mark.parametrize(
    "words", [("--engine", "spark"), ("--engine", "qdrant:here"), ("--engine", "ray", "--cache", "features")]
)
def test_an_engine_that_cannot_be_used_leaves_no_collection(photos: Path, tmp_path: Path, words: tuple[str]) -> None:
    ran = run("index", photos, "--into", tmp_path / "c.resight", *words)
    assert ran.code == InputError.exit_code
    assert "expected:" in ran.err
    assert not (tmp_path / "c.resight").exists()


def test_one_writer_at_a_time_holds_for_the_cluster_too(photos: Path, tmp_path: Path) -> None:
    collection = open_plain(tmp_path / "c.resight")
    with writer_lock(tmp_path / "c.resight"), pytest.raises(CollectionBusy):
        collection.add(photos, engine="ray")
