"""A service over a damaged collection starts, says what is wrong, and recovers."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from support.serving import serve

from resight.apps.service import registry
from resight.apps.service.app import create_app
from resight.apps.service.settings import ServiceSettings
from resight.collection import metadata

WAIT = 60.0
NAMES = (metadata.FILE, metadata.COPY)


@pytest.fixture
def damaged(indexed: Path, tmp_path: Path) -> Path:
    """A copy of the collection whose description is cut short, and so is the copy of that."""
    folder = Path(shutil.copytree(indexed, tmp_path / "damaged.resight"))
    for name in NAMES:
        (folder / name).rename(folder / f"{name}.kept")
        (folder / name).write_text("{")
    return folder


def wait_for(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + WAIT
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_a_damaged_collection_is_a_503_beside_a_good_one_and_recovers(
    own: Path, damaged: Path, view: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "RETRY", 0.1)
    app = create_app(ServiceSettings({"own": own, "damaged": damaged}, workers=1))
    with TestClient(app, "http://localhost") as client:
        health = client.get("/api/health")
        body = health.json()
        assert (health.status_code, body["status"], body["ready"], body["collections"]) == (
            200,
            "degraded",
            True,
            ["own"],
        )
        assert list(body["faults"]) == ["damaged"] and str(damaged) not in health.text
        for answer in (
            client.get("/api/images", params={"collection": "damaged"}),
            client.post("/api/search", files={"image": ("v.jpg", view.read_bytes())}, data={"collection": "damaged"}),
            client.post("/api/images", files={"images": ("v.jpg", view.read_bytes())}, data={"collection": "damaged"}),
        ):
            assert answer.status_code == 503 and answer.json()["error"]["actual"] == body["faults"]["damaged"][0]
        assert client.post("/api/search", files={"image": ("v.jpg", view.read_bytes())}).status_code == 200
        for name in NAMES:
            (damaged / f"{name}.kept").replace(damaged / name)
        wait_for(lambda: client.get("/api/health").json()["status"] == "ok")
        assert client.get("/api/images", params={"collection": "damaged"}).json()["total"] == 12
        sent = client.post(
            "/api/images", files={"images": ("v.jpg", view.read_bytes())}, data={"collection": "damaged"}
        )
        assert sent.status_code == 202


def test_a_service_with_nothing_to_search_is_up_but_not_ready(damaged: Path) -> None:
    with TestClient(create_app(ServiceSettings({"damaged": damaged}, workers=1)), "http://localhost") as client:
        body = client.get("/api/health").json()
        assert (body["status"], body["ready"], body["images"], body["collections"]) == ("degraded", False, 0, [])
        assert client.get("/").status_code == 200


def test_serve_warns_of_a_damaged_collection_and_starts_without_a_traceback(own: Path, damaged: Path) -> None:
    with serve(own, damaged) as server:
        assert server.process.poll() is None


def test_serve_refuses_a_collection_that_does_not_exist(own: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "resight", "serve", str(own), str(tmp_path / "typo.resight"), "--port", "0"]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=WAIT, env={**os.environ})
    assert ran.returncode == 3 and "serving" not in ran.stdout
    assert "there is no collection at" in ran.stderr and "Traceback" not in ran.stderr


def test_a_broken_job_database_is_told_by_the_health_check_and_searches_go_on(own: Path, view: Path) -> None:
    (own / "jobs.sqlite").write_bytes(b"not a database" * 100)
    with TestClient(create_app(ServiceSettings({"own": own}, workers=1)), "http://localhost") as client:
        wait_for(lambda: client.get("/api/health").json()["status"] == "degraded")
        body = client.get("/api/health").json()
        assert "job database" in body["faults"]["own"][0] and body["ready"] and body["quarantined"] is None
        assert client.post("/api/search", files={"image": ("v.jpg", view.read_bytes())}).status_code == 200
        (own / "jobs.sqlite").unlink()
        wait_for(lambda: client.get("/api/health").json()["status"] == "ok")
