"""One of two Ray nodes ended as a power cut would end it: no answer is lost, and what it held is restored.

It runs in a process of its own, with a cluster of its own: a node that is lost would be one of the other tests', too.
"""

import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

SHARDS, QUERIES, SECONDS = 4, 12, 240
MARK = "RESIGHT_TEST_NODE"  # in the environment of every process that the test starts, by which they are found
OUTCOME = "outcome.txt"  # a file, for Ray writes to the same standard output what it has to say of a node that died


@pytest.mark.skipif(sys.platform != "linux", reason="finds the processes of a node in /proc")
def test_a_node_that_is_killed_costs_no_answer_and_its_shards_are_restored(tmp_path: Path):
    pytest.importorskip("ray", reason="ray is not installed: pip install 'resight[ray]'")
    # Newer releases of Ray let nobody in without a token, and look for it when they are loaded.
    token = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
    mark = secrets.token_hex(8)
    words = [sys.executable, "-W", "ignore", __file__, str(tmp_path), mark]
    environment = {**os.environ, **token, MARK: mark}
    try:
        ran = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=2 * SECONDS)
    finally:
        kill(mark)  # nothing is left, however it ended
    assert ran.returncode == 0, ran.stderr[-3000:]
    assert (tmp_path / OUTCOME).read_text() == f"{2 * QUERIES} answers, {SHARDS} replicas"


def main(folder: Path, mark: str) -> None:
    import ray

    from resight import index, ray_cluster

    os.environ.update(ray_cluster.ENVIRONMENT)
    ray.init(
        address="local",
        num_cpus=1,
        include_dashboard=False,
        log_to_driver=False,
        configure_logging=False,
        object_store_memory=100_000_000,
    )
    mark = f"{mark}-second"
    node = start_node(ray.get_runtime_context().gcs_address, mark)
    try:
        alone = create(folder / "alone", index.build("exact"))
        twice = create(folder / "twice", index.build("ray_shards", shards=SHARDS, replication=2))
        wait_until(lambda: len([node for node in ray.nodes() if node["Alive"]]) == 2)
        manager, on_both = twice.start()
        wait_until(lambda: on_both.count() == 2 * SHARDS)
        once = create(folder / "once", index.build("ray_shards", shards=SHARDS, replication=1))
        _, on_one = once.start()
        assert {len(hosts) for hosts in on_one._held.values()} == {1}
        assert len({host for hosts in on_one._held.values() for host in hosts}) == 2
        answers = 0
        for number in range(QUERIES):
            if number == QUERIES // 3:
                kill(mark)
            for searcher in (twice, once):
                found, right = (some.search(make_rows(1, number + 1), 5) for some in (searcher, alone))
                assert (found.ids, found.scores.tolist()) == (right.ids, right.scores.tolist())
                answers += 1
        wait_until(lambda: len(manager.pool.list()) == 1 and on_one.count() == on_both.count() == SHARDS)
        (folder / OUTCOME).write_text(f"{answers} answers, {on_one.count()} replicas")
    finally:
        kill(mark)
        node.wait()
        ray.shutdown()


def start_node(address: str, mark: str) -> "subprocess.Popen[bytes]":
    command = [str(Path(sys.executable).with_name("ray")), "start", f"--address={address}", "--num-cpus=1"]
    options = ["--object-store-memory=100000000", "--disable-usage-stats", "--block"]
    return subprocess.Popen([*command, *options], env={**os.environ, MARK: mark}, stdout=subprocess.DEVNULL)


def kill(mark: str) -> None:
    """Every process whose mark begins so, as a power cut would."""
    for place in Path("/proc").glob("[0-9]*"):
        try:
            if f"{MARK}={mark}".encode() in (place / "environ").read_bytes():
                os.kill(int(place.name), signal.SIGKILL)
        except OSError:
            continue  # ended meanwhile, or somebody else's


def create(folder: Path, plugin: Any) -> Any:
    folder.mkdir()
    return plugin.create(lambda: iter([make_rows(400, 0)]), folder)


def make_rows(images: int, seed: int) -> Any:
    import numpy as np

    from resight.types import Descriptors

    vectors = np.random.default_rng(seed).normal(size=(images, 16)).astype(np.float32)
    return Descriptors(tuple(f"image {number}" for number in range(images)), vectors, np.arange(images, dtype=np.int32))


def wait_until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SECONDS
    while not is_so():
        assert time.monotonic() < deadline, f"still not so after {SECONDS} s"
        time.sleep(0.05)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
