"""Somebody who adds photos and deletes some of them again, all the while."""

import random
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import httpx

PAUSE = 2.0  # seconds between two changes
TOGETHER = 2  # photos in one upload


class Writer:
    def __init__(self, address: str, photos: Sequence[Path], seed: int = 0) -> None:
        self.added = self.deleted = 0
        self.delete_seconds: list[float] = []
        self.errors: list[str] = []
        self._client = httpx.Client(base_url=address, timeout=60)
        self._photos = photos
        self._generator = random.Random(seed)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> "Writer":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        self._client.close()

    def _run(self) -> None:
        there: list[str] = []
        number = 0
        while not self._stop.wait(PAUSE):
            if len(there) > 10 and self._generator.random() < 0.5:
                name = there.pop(self._generator.randrange(len(there)))
                began = time.monotonic()
                response = self._client.delete("/api/image", params={"id": name})
                self.delete_seconds.append(time.monotonic() - began)
                self.deleted += self._note(response, 200)
                continue
            photos = [self._photos[(number + turn) % len(self._photos)] for turn in range(TOGETHER)]
            names = [f"added-{number + turn}.jpg" for turn in range(TOGETHER)]
            number += TOGETHER
            if self._add(names, photos):
                there += names

    def _add(self, names: Sequence[str], photos: Sequence[Path]) -> bool:
        files = [("images", (name, path.read_bytes())) for name, path in zip(names, photos, strict=True)]
        response = self._client.post("/api/images", files=files, data={"ids": list(names)})
        if not self._note(response, 202):
            return False
        job = response.json()["job"]
        while job["state"] in ("waiting", "running"):
            time.sleep(0.2)
            job = self._client.get(f"/api/jobs/{job['id']}").json()
            job = job.get("job", job)
        if job["state"] != "done" or job["skipped"]:
            self.errors.append(f"job: {job}")
            return False
        self.added += len(names)
        return True

    def _note(self, response: httpx.Response, wanted: int) -> bool:
        if response.status_code != wanted:
            self.errors.append(f"{response.request.method} {response.status_code} {response.text[:200]}")
        return response.status_code == wanted
