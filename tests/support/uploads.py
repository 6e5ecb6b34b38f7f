"""Images uploaded to a service in tests: drawn, sent, and waited for until their job is over."""

import io
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import httpx
from PIL import Image
from starlette.testclient import TestClient

import resight
from support.scenes import draw_scene

WAIT = 60.0  # seconds that a job may take on a busy machine


def draw_jpeg(seed: int) -> bytes:
    out = io.BytesIO()
    Image.fromarray(draw_scene(seed, 160, 120)).save(out, "JPEG", quality=92)
    return out.getvalue()


def send(
    client: httpx.Client | TestClient, seeds: Sequence[int], ids: Sequence[str] = (), **fields: str
) -> httpx.Response:
    files = [("images", (f"scene_{seed}.jpg", draw_jpeg(seed), "image/jpeg")) for seed in seeds]
    return client.post("/api/images", files=files, data={"ids": list(ids), **fields})


def finish(client: httpx.Client | TestClient, response: httpx.Response) -> dict[str, Any]:
    """The job of a 202, when it is over."""
    assert response.status_code == 202, response.text
    job: dict[str, Any] = response.json()["job"]
    end = time.monotonic() + WAIT
    while job["state"] in ("waiting", "running"):
        assert time.monotonic() < end, job
        time.sleep(0.05)
        job = client.get(f"/api/jobs/{job['id']}").json()
    return job


def list_ids(folder: Path) -> list[str]:
    return sorted(record.id for record in resight.open(folder).records())
