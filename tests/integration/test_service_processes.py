"""The service as processes of its own: starting, several of them, stopping while it works, and what it refuses."""

import shutil
import signal
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest
from support.running import run
from support.scenes import draw_scene, write_jpeg
from support.serving import PATIENCE, serve

import resight


@pytest.fixture(scope="module")
def served(indexed: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(shutil.copytree(indexed, tmp_path_factory.mktemp("served") / "scenes.resight"))


def post(address: str, image: Path) -> httpx.Response:
    return httpx.post(f"{address}/api/search", files={"image": ("view.jpg", image.read_bytes())}, timeout=PATIENCE)


def test_what_runs_is_finished_after_the_signal_to_stop(served: Path, view: Path) -> None:
    with serve(served) as server, ThreadPoolExecutor(1) as background:
        post(server.address, view)
        running = background.submit(post, server.address, view)
        wait_until_busy(server.address)
        server.process.send_signal(signal.SIGTERM)
        assert running.result().json()["hits"][0]["id"] == "scene_07.jpg"
        assert server.process.wait(PATIENCE) == 0
        with pytest.raises(httpx.ConnectError):
            httpx.get(f"{server.address}/api/health")


def test_beyond_its_slots_a_server_refuses_and_then_recovers(served: Path, view: Path) -> None:
    with serve(served, options=("--workers", "1", "--waiting", "1")) as server, ThreadPoolExecutor(8) as many:
        responses = list(many.map(lambda _: post(server.address, view), range(8)))
        assert {response.status_code for response in responses} == {200, 429}
        assert all(int(one.headers["retry-after"]) >= 1 for one in responses if one.status_code == 429)
        assert post(server.address, view).status_code == 200


def test_two_processes_share_the_work_and_see_what_is_added(served: Path, view: Path, scenes: Path) -> None:
    with serve(served, options=("--processes", "2", "--workers", "1")) as server:
        expected = [hit.id for hit in resight.open(served).search(view)]
        with ThreadPoolExecutor(4) as many:
            responses = list(many.map(lambda _: post(server.address, view), range(8)))
        assert all([hit["id"] for hit in one.json()["hits"]] == expected for one in responses)
        assert len(list_processes(server.address)) == 2
        resight.open(served).delete("scene_11.jpg")
        counts = {httpx.get(f"{server.address}/api/images").json()["total"] for _ in range(8)}
        resight.open(served).add(scenes / "scene_11.jpg")
        assert counts == {11}


def test_a_start_that_cannot_be_is_said_in_words(served: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RESIGHT_API_KEY", raising=False)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        refused = run("serve", served, "--port", port)
    assert (refused.code, f"port {port}" in refused.err, "--port 0" in refused.err) == (2, True, True)
    open_to_all = run("serve", served, "--host", "0.0.0.0")
    assert (open_to_all.code, "without a key" in open_to_all.err) == (2, True)
    assert run("serve", tmp_path / "none.resight").code == 3
    assert run("serve", served, "--reports", tmp_path / "none").code == 2
    assert run("serve", served, served).code == 2


def wait_until_busy(address: str) -> None:
    for _ in range(1000):
        if "resight_searches_running 1.0" in httpx.get(f"{address}/metrics").text:
            return
        threading.Event().wait(0.005)
    raise AssertionError("no search was seen running")


def list_processes(address: str) -> set[str]:
    with ThreadPoolExecutor(8) as many:
        pages = list(many.map(lambda _: httpx.get(f"{address}/metrics", timeout=PATIENCE).text, range(40)))
    return {line for page in pages for line in page.splitlines() if line.startswith("resight_process_info")}


def test_workers_stop_when_whoever_started_them_was_killed(served: Path) -> None:
    with serve(served, options=("--processes", "2", "--workers", "1")) as server:
        server.process.kill()
        for _ in range(600):
            try:
                httpx.get(f"{server.address}/api/health", timeout=5)
            except httpx.HTTPError:
                break
            threading.Event().wait(0.1)
        else:
            raise AssertionError("somebody still answers")
        port = int(server.address.rpartition(":")[2])
        with serve(served, options=("--port", str(port))) as again:
            assert again.address == server.address


def test_every_process_sees_what_a_client_was_told_is_added_and_deleted(indexed: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(indexed, tmp_path / "scenes.resight"))
    image = write_jpeg(tmp_path / "new.jpg", draw_scene(70))

    def find(address: str) -> set[bool]:
        """Whether it is found, by searches over connections of their own."""
        with ThreadPoolExecutor(4) as many:
            answers = list(many.map(lambda _: post(address, image).json()["hits"], range(6)))
        return {"new.jpg" in {hit["id"] for hit in hits if (hit["probability"] or 0) > 0.5} for hits in answers}

    with serve(folder, options=("--processes", "2", "--workers", "1", "--waiting", "20")) as server:
        sent = httpx.post(
            f"{server.address}/api/images", files={"images": ("new.jpg", image.read_bytes())}, timeout=PATIENCE
        )
        job = sent.json()["job"]
        while job["state"] != "done":
            threading.Event().wait(0.02)
            job = httpx.get(f"{server.address}/api/jobs/{job['id']}", timeout=PATIENCE).json()
        assert find(server.address) == {True}
        assert httpx.delete(f"{server.address}/api/image?id=new.jpg", timeout=PATIENCE).json() == {"removed": 1}
        assert find(server.address) == {False}
