"""Uploads when a server is killed, a disk or a job database fails, or a backup is restored."""

import contextlib
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import httpx
import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient
from support.uploads import WAIT, draw_jpeg, finish, list_ids, send

import resight
from resight.apps.service.app import create_app
from resight.apps.service.jobs.write_lock import hold_write_lock
from resight.apps.service.settings import ServiceSettings
from resight.errors import StorageError


@contextlib.contextmanager
def serving(folder: Path, *options: str) -> Iterator[tuple[subprocess.Popen[str], httpx.Client]]:
    """`resight serve` in a process of its own, killed at the end."""
    command = [sys.executable, "-m", "resight", "serve", str(folder), "--port", "0", "--workers", "1", "--log", "none"]
    process = subprocess.Popen([*command, *options], stdout=subprocess.PIPE, text=True, start_new_session=True)
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        address = line.partition(" at ")[2].split()[0]
        with httpx.Client(base_url=address, timeout=WAIT) as client:
            wait_until_up(client)
            yield process, client
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        process.stdout.close()


def wait_until_up(client: httpx.Client) -> None:
    end = time.monotonic() + WAIT
    while True:
        with contextlib.suppress(httpx.TransportError):
            if client.get("/api/health").status_code == 200:
                return
        assert time.monotonic() < end
        time.sleep(0.1)


@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL")
def test_killed_while_it_adds_sixty_images_the_next_one_adds_every_one_that_was_acknowledged_once(folder: Path) -> None:
    acknowledged: list[str] = []
    with serving(folder) as (process, client):
        for first in range(100, 160, 6):
            seeds = range(first, first + 6)
            assert send(client, seeds).status_code == 202
            acknowledged += [f"scene_{seed}.jpg" for seed in seeds]
            if 12 <= len(list_ids(folder)) - 3 < len(acknowledged):
                break
        while len(list_ids(folder)) - 3 < 12:
            time.sleep(0.02)
        process.send_signal(signal.SIGKILL)
        process.wait(WAIT)
    assert len(list_ids(folder)) - 3 < len(acknowledged), "the kill came too late to tell anything"
    with serving(folder) as (_, client):
        jobs = client.get("/api/jobs").json()
        end = time.monotonic() + WAIT
        while any(job["state"] != "done" for job in jobs):
            assert time.monotonic() < end, jobs
            time.sleep(0.1)
            jobs = client.get("/api/jobs").json()
    assert sum(job["added"] for job in jobs) == sum(job["total"] for job in jobs) == len(acknowledged)
    assert list_ids(folder) == sorted([*acknowledged, *(f"own_{number}.jpg" for number in range(3))])


@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL")
def test_of_two_processes_the_other_goes_on_when_the_one_that_adds_is_killed(folder: Path) -> None:
    with serving(folder, "--processes", "2") as (process, client):
        jobs = [send(client, range(first, first + 10)).json()["job"]["id"] for first in (100, 110, 120)]
        victim = find_adder(folder)
        assert victim != process.pid
        os.kill(victim, signal.SIGKILL)
        end = time.monotonic() + WAIT
        states = [""]
        while set(states) != {"done"}:
            assert time.monotonic() < end, states
            time.sleep(0.1)
            with contextlib.suppress(httpx.TransportError):  # a connection of the one that was killed
                states = [client.get(f"/api/jobs/{job}").json()["state"] for job in jobs]
        process.terminate()
        process.wait(WAIT)
    assert list_ids(folder) == sorted([f"own_{n}.jpg" for n in range(3)] + [f"scene_{n}.jpg" for n in range(100, 130)])


def find_adder(folder: Path) -> int:
    """The process that has the turn, as its lock says."""
    end = time.monotonic() + WAIT
    while time.monotonic() < end:
        with contextlib.suppress(OSError, ValueError):
            return int(json.loads((folder / "uploads" / "worker" / "writer.lock").read_text())["pid"])
        time.sleep(0.001)
    raise AssertionError("nobody adds")


def test_a_disk_that_refuses_the_upload_is_a_507_and_nothing_is_promised(client: TestClient, folder: Path) -> None:
    (folder / "uploads").write_text("a file where the folder should be")
    response = send(client, [10])
    assert response.status_code == 507 and str(folder) not in response.text
    assert client.get("/api/jobs").json() == []
    (folder / "uploads").unlink()
    assert finish(client, send(client, [10]))["added"] == 1


def test_a_delete_with_a_broken_job_database_says_that_nothing_was_deleted(client: TestClient, folder: Path) -> None:
    (folder / "jobs.sqlite").write_bytes(b"not a database" * 100)
    refused = client.post("/api/images/delete", json={"ids": ["own_0.jpg"]})
    assert refused.status_code == 507 and "job database" in refused.json()["error"]["problem"]
    assert str(folder) not in refused.text and len(list_ids(folder)) == 3


def test_a_delete_whose_database_breaks_meanwhile_says_what_was_deleted(
    client: TestClient, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise StorageError("full")

    intake = cast(FastAPI, client.app).state.service.jobs.intakes["photos"]
    monkeypatch.setattr(intake.store, "drop", fail)
    answer = client.delete("/api/image", params={"id": "own_0.jpg"})
    assert answer.status_code == 507 and "were deleted" in answer.json()["error"]["problem"]
    assert list_ids(folder) == ["own_1.jpg", "own_2.jpg"]


@pytest.mark.parametrize("change", ["PRAGMA user_version = 99", "ALTER TABLE items DROP COLUMN reason"])
def test_no_upload_is_accepted_into_a_job_database_that_cannot_be_used(
    client: TestClient, folder: Path, change: str
) -> None:
    finish(client, send(client, [10]))
    service = cast(FastAPI, client.app).state.service
    service.jobs.intakes["photos"].close()
    table = sqlite3.connect(folder / "jobs.sqlite", isolation_level=None, timeout=WAIT)
    table.execute(change)
    table.close()
    service.jobs.intakes["photos"].close()  # the worker may have opened it meanwhile
    refused = send(client, [11])
    assert refused.status_code == 507 and "job database" in refused.json()["error"]["problem"]
    found = client.post("/api/search", files={"image": ("q.jpg", draw_jpeg(10))}, data={"k": "1"})
    assert found.json()["hits"][0]["id"] == "scene_10.jpg", "searches go on"


def test_what_could_not_be_added_is_listed_retried_and_discarded(client: TestClient, folder: Path) -> None:
    intake = cast(FastAPI, client.app).state.service.jobs.intakes["photos"]
    with hold_write_lock(intake.uploads.folder, WAIT):
        job = send(client, [10, 11]).json()["job"]
        for _ in range(20):  # interrupted too often, together and one by one
            intake.queue.claim(32)
    listed = client.get("/api/quarantine").json()
    assert sorted(one["id"] for one in listed) == ["scene_10.jpg", "scene_11.jpg"]
    assert all(one["job"] == job["id"] and one["reason"] for one in listed)
    first, second = (one["key"] for one in sorted(listed, key=lambda one: one["id"]))
    body = {"keys": [first, "unknown"], "collection": "photos"}
    assert client.post("/api/quarantine/retry", json=body).json() == {"changed": 1, "missing": ["unknown"]}
    assert client.post("/api/quarantine/discard", json={"keys": [second]}).json() == {"changed": 1, "missing": []}
    end = time.monotonic() + WAIT
    while client.get(f"/api/jobs/{job['id']}").json()["added"] < 1:
        assert time.monotonic() < end
        time.sleep(0.05)
    assert client.get("/api/quarantine", params={"collection": "photos"}).json() == []
    assert "scene_10.jpg" in list_ids(folder) and "scene_11.jpg" not in list_ids(folder)


def test_after_a_restored_backup_the_uploads_that_it_lacks_are_added_again(folder: Path, tmp_path: Path) -> None:
    parts = [path.name for path in folder.iterdir() if path.name not in ("uploads", "jobs.sqlite")]
    backup = Path(shutil.copytree(folder, tmp_path / "backup"))
    settings = ServiceSettings({"photos": folder}, workers=1)
    with TestClient(create_app(settings), "http://localhost") as client:
        finish(client, send(client, [10, 11]))
        assert client.delete("/api/image", params={"id": "scene_11.jpg"}).json() == {"removed": 1}
    for name in parts:
        shutil.rmtree(folder / name) if (folder / name).is_dir() else (folder / name).unlink()
        (backup / name).rename(folder / name)
    resight.open(folder).delete("own_0.jpg")  # the version numbers go on from there
    with TestClient(create_app(settings), "http://localhost") as client:
        (job,) = client.get("/api/jobs").json()
        end = time.monotonic() + WAIT
        while job["state"] != "done" or len(list_ids(folder)) < 3:
            assert time.monotonic() < end, job
            time.sleep(0.05)
            (job,) = client.get("/api/jobs").json()
        assert list_ids(folder) == ["own_1.jpg", "own_2.jpg", "scene_10.jpg"]
        found = client.post("/api/search", files={"image": ("q.jpg", draw_jpeg(10))}, data={"k": "1"}).json()
        assert [hit["id"] for hit in found["hits"]] == ["scene_10.jpg"]
