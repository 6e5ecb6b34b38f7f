"""A service that searches on Ray."""

import gc
import time
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from support.scenes import write_scenes

import resight
from resight.apps.service.app import create_app
from resight.apps.service.settings import ServiceSettings

pytestmark = pytest.mark.usefixtures("ray_cluster")


def test_health_and_metrics_tell_of_nodes_shards_and_replicas(tmp_path: Path):
    gc.collect()  # indexes of tests before this one would be counted, too
    write_scenes(tmp_path / "photos", 3)
    resight.open(tmp_path / "a.resight", "sift_vlad").add(tmp_path / "photos")
    settings = ServiceSettings({"a": tmp_path / "a.resight"}, engine="ray", workers=1)
    with TestClient(create_app(settings), base_url="http://127.0.0.1:8080") as client:
        cluster = wait_for_replicas(client)
        assert cluster["nodes"] == 1
        assert cluster["shards"] >= 8
        assert cluster["wanted"] == 2 * cluster["shards"]
        assert "resight_cluster_nodes 1" in client.get("/metrics").text
        image = (tmp_path / "photos" / sorted(path.name for path in (tmp_path / "photos").iterdir())[0]).read_bytes()
        found = client.post("/api/search", files={"image": ("q.jpg", image, "image/jpeg")}).json()
        assert len(found["hits"]) == 3


def wait_for_replicas(client: TestClient) -> dict[str, int]:
    """What the service tells of its cluster when every shard lies on its one node, those just let go counted or not."""
    deadline = time.monotonic() + 120
    while True:
        cluster: dict[str, int] = client.get("/api/health").json()["cluster"]
        if cluster["shards"] == cluster["replicas"]:
            return cluster
        assert time.monotonic() < deadline, cluster
        time.sleep(0.1)
