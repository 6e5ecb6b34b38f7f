"""Who may do what over HTTP: scopes of keys, wrong keys, trusted proxies, the audit log, TLS, silent clients."""

import contextlib
import json
import shutil
import socket
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi.testclient import TestClient
from support.running import run
from support.serving import serve

from resight.apps.service.api_keys import Key, make_key
from resight.apps.service.app import create_app
from resight.apps.service.rate_limit import WRONG_KEYS
from resight.apps.service.settings import ServiceSettings

FULL, PART, READER = "f" * 20, "p" * 20, "r" * 20
KEYS = (
    make_key("full", FULL),
    replace(make_key("part", PART), collections=("second",)),
    replace(make_key("reader", READER, may_write=False), collections=("second",)),
)
WAIT = 60.0


def bearer(key: str) -> dict[str, str]:
    return {"authorization": f"Bearer {key}"}


def open_service(folders: dict[str, Path], keys: tuple[Key, ...] = KEYS, **settings: Any) -> TestClient:
    app = create_app(ServiceSettings(folders, keys=keys, workers=1, **settings))
    return TestClient(app, "http://photos.example")


@pytest.fixture
def both(own: Path, indexed: Path, tmp_path: Path) -> dict[str, Path]:
    return {"first": own, "second": Path(shutil.copytree(indexed, tmp_path / "second.resight"))}


def test_a_key_of_one_collection_sees_and_changes_that_one_only(both: dict[str, Path], tmp_path: Path) -> None:
    with open_service(both, reports=tmp_path, audit_log=tmp_path / "audit") as client:
        names = {
            key: [one["name"] for one in client.get("/api/collections", headers=bearer(key)).json()]
            for key in (FULL, PART)
        }
        assert names == {FULL: ["first", "second"], PART: ["second"]}
        health = client.get("/api/health", headers=bearer(PART)).json()
        assert (health["collections"], health["images"]) == (["second"], 12)
        part = bearer(PART)
        assert client.get("/api/images", headers=part).json()["total"] == 12
        form = {"id": (None, "scene_03.jpg"), "collection": (None, "first")}
        refused = [
            client.get("/api/images", params={"collection": "first"}, headers=part),
            client.get("/api/image", params={"id": "scene_03.jpg", "collection": "first"}, headers=part),
            client.get("/api/image/file", params={"id": "scene_03.jpg", "collection": "first"}, headers=part),
            client.get("/api/collections/attributes", params={"collection": "first"}, headers=part),
            client.post("/api/search", files=form, headers=part),
            client.delete("/api/image", params={"id": "scene_03.jpg", "collection": "first"}, headers=part),
            client.get("/api/quarantine", params={"collection": "first"}, headers=part),
        ]
        assert [answer.status_code for answer in refused] == [404] * len(refused)
        assert all("first" not in answer.json()["error"]["fix"] for answer in refused)
        for path in ("/api/reports", "/api/trainings", "/api/reviews", "/metrics"):
            assert client.get(path, headers=part).status_code == 403
            assert client.get(path, headers=bearer(FULL)).status_code == 200
        assert client.delete("/api/image", params={"id": "scene_03.jpg"}, headers=bearer(READER)).status_code == 403
        assert client.delete("/api/image", params={"id": "scene_03.jpg"}, headers=part).json() == {"removed": 1}
        sent = client.post("/api/images", files={"images": ("a.jpg", b"no image")}, headers=part)
        assert sent.status_code == 400, "not an image: nothing changes, and nothing is logged"
        missing = client.delete("/api/image", params={"id": "scene_03.jpg"}, headers=part)
        assert missing.status_code == 404
    (done, nothing) = map(json.loads, (tmp_path / "audit").read_text().splitlines())
    assert {**done, "time": "", "request_id": "", "address": ""} == {
        "time": "",
        "key": "part",
        "address": "",
        "request_id": "",
        "action": "delete",
        "collection": "second",
        "images": 1,
        "outcome": "done",
    }
    assert (nothing["images"], nothing["action"]) == (0, "delete") and done["time"] < nothing["time"]


def test_wrong_keys_of_one_client_cost_neither_the_others_nor_the_health_check(own: Path) -> None:
    with open_service({"own": own}, trusted_proxies=("testclient",)) as client:

        def ask(path: str, key: str, address: str) -> int:
            return client.get(path, headers={**bearer(key), "x-forwarded-for": address}).status_code

        wrong = [ask("/api/images", f"wrong-{number}", "192.0.2.1") for number in range(WRONG_KEYS + 70)]
        assert wrong == [401] * WRONG_KEYS + [429] * 70
        assert ask("/api/images", FULL, "192.0.2.1") == 429, "guesses are not looked up any more"
        assert ask("/api/images", FULL, "192.0.2.2") == 200
        assert ask("/api/health", FULL, "192.0.2.1") == ask("/api/health", "wrong", "192.0.2.1") == 200
        signing = {"json": {"key": FULL}, "headers": {"x-forwarded-for": "192.0.2.1"}}
        assert client.post("/api/session", **signing).status_code == 429  # type: ignore[arg-type]


def test_without_a_trusted_proxy_its_header_is_not_believed(own: Path) -> None:
    with open_service({"own": own}) as client:
        for number in range(WRONG_KEYS):
            client.get("/api/images", headers={**bearer("wrong"), "x-forwarded-for": f"192.0.2.{number}"})
        answer = client.get("/api/images", headers={**bearer("wrong"), "x-forwarded-for": "192.0.2.99"})
        assert answer.status_code == 429


def test_the_health_check_is_outside_the_rate_limit(own: Path) -> None:
    with open_service({"own": own}, rate=0.1) as client:
        assert [client.get("/api/health").status_code for _ in range(20)] == [200] * 20
        assert [client.get("/", headers=bearer(FULL)).status_code for _ in range(3)] == [200, 429, 429]


def test_the_command_makes_keys_and_refuses_options_that_open_the_service(own: Path, tmp_path: Path) -> None:
    made = run("keys", "make", "anna", "--into", tmp_path / "keys", "--read", "--collections", "own", "--expires", "90")
    assert made.code == 0 and len(made.out.strip()) >= 40
    line = (tmp_path / "keys").read_text()
    assert line.startswith("anna sha256:") and " read collections=own expires=" in line and made.out.strip() not in line
    refused = run("serve", own, "--cors", "*", "--port", "0")
    assert refused.code == 2 and "--cors" in refused.err
    (tmp_path / "keys").chmod(0o644)
    refused = run("serve", own, "--key-file", tmp_path / "keys", "--port", "0")
    assert refused.code == 2 and "chmod 600" in refused.err
    refused = run("serve", own, "--trusted-proxy", "nowhere", "--port", "0")
    assert refused.code == 2 and "trusted-proxy" in refused.err
    refused = run("serve", own, "--tls-cert", tmp_path / "keys", "--port", "0")
    assert refused.code == 2 and "--tls-key" in refused.err
    refused = run("serve", own, "--audit-log", tmp_path / "no" / "folder", "--port", "0")
    assert refused.code == 4 and "audit log" in refused.err


def test_two_thousand_silent_clients_and_a_slow_one_leave_the_service_free(own: Path, view: Path) -> None:
    resource = pytest.importorskip("resource")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 3000:
        pytest.skip("too few file descriptors are allowed")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 3000), hard))
    silent: list[socket.socket] = []
    try:
        with serve(own) as server, httpx.Client(base_url=server.address, timeout=WAIT) as client:
            host, _, port = server.address.removeprefix("http://").partition(":")
            slow = socket.create_connection((host, int(port)), WAIT)
            silent.append(slow)
            slow.sendall(b"GET / HTTP/1.1\r\n")
            for number in range(2000):
                silent.append(socket.create_connection((host, int(port)), WAIT))
                if number % 500 == 499:
                    assert httpx.get(f"{server.address}/api/health", timeout=WAIT).json()["status"] == "ok"
            found = client.post("/api/search", files={"image": ("v.jpg", view.read_bytes())}, data={"k": "1"})
            assert found.status_code == 200
            slow.settimeout(WAIT)
            with contextlib.suppress(ConnectionResetError):
                assert slow.recv(100)[:12] in (b"", b"HTTP/1.1 408")
    finally:
        for one in silent:
            one.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed")
def test_tls_from_files(own: Path, tmp_path: Path) -> None:
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    words = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=localhost"]
    subprocess.run(["openssl", *words, "-keyout", key, "-out", cert], check=True, capture_output=True)
    command = [sys.executable, "-m", "resight", "serve", own, "--port", "0", "--log", "none", "--tls-cert", cert]
    process = subprocess.Popen([*map(str, command), "--tls-key", str(key)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        address = process.stdout.readline().partition(" at ")[2].split()[0]
        assert address.startswith("https://")
        with httpx.Client(verify=False, base_url=address, timeout=WAIT) as client:
            assert client.get("/api/health").json()["status"] == "ok"
    finally:
        process.terminate()
        process.wait(WAIT)
        process.stdout.close()
