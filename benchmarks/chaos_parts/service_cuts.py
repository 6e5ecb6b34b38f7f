"""A service that takes uploads, and is cut off; after the next start: is every accepted image there?

Acknowledged are images of requests that were answered with 202, whether their job had ended or not, and deletions that
were answered.
"""

import io
import random
import re
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx
import numpy as np
from PIL import Image
from support.lossy_disk import is_available, lossy_disk

from chaos_parts import lives
from chaos_parts.cuts import cut_and_return
from chaos_parts.warm import WarmProcess
from resight.collection import open_collection

RECIPE = "tokens"
START, PATIENCE = 120.0, 60.0  # seconds for a service to answer, and for the jobs of an earlier life to end
Strike = Callable[[WarmProcess], None]


def cut_power(folder: Path, count: int, seed: int) -> dict[str, object]:
    if not is_available():
        return {"skipped": "needs root, a loop device and ext4"}
    with lossy_disk(folder) as disk:
        return _repeat(disk.path, count, seed, lambda process: cut_and_return(process, disk))


def kill(folder: Path, count: int, seed: int) -> dict[str, object]:
    return _repeat(folder, count, seed, WarmProcess.kill)


@contextmanager
def _serve(collection: Path) -> Iterator[tuple[httpx.Client, WarmProcess]]:
    """A service, once its health check says that it is ready."""
    process = WarmProcess(lives.serve, str(collection), "--port", "0", "--log", "none")
    try:
        said = process.read_line()
        found = re.search(r"http://\S+(?=/)", said)
        assert found, f"no address in {said!r}"
        with httpx.Client(base_url=found[0], timeout=30) as client:
            end = time.monotonic() + START
            while not client.get("/api/health", timeout=START).json()["ready"]:
                assert time.monotonic() < end, "it does not become ready"
                time.sleep(0.05)
            yield client, process
    finally:
        process.terminate()
        process.close()


def _repeat(folder: Path, count: int, seed: int, strike: Strike) -> dict[str, object]:
    chance = random.Random(seed)
    collection = folder / "collection.resight"
    open_collection(collection, RECIPE)
    expected: dict[str, bool] = {}  # id → whether it must be there
    lost: list[str] = []
    unopened: list[str] = []
    done = 0
    with suppress(KeyboardInterrupt):
        for life in range(count + 1):
            try:
                with _serve(collection) as (client, process):
                    _wait(client)
                    lost += [name for name, there in expected.items() if _has(client, name) != there]
                    done = life
                    if life < count:
                        _upload(client, life, chance, expected, strike, process)
            except (AssertionError, httpx.HTTPError) as error:
                unopened.append(f"life {life}: {type(error).__name__} {error}"[:300])
                print(unopened[-1], file=sys.stderr)
    return {
        "count": done,
        "acknowledged": len(expected),
        "lost": len(set(lost)),
        "unopened": len(unopened),
        "why": unopened[:3],
    }


def _upload(
    client: httpx.Client,
    life: int,
    chance: random.Random,
    expected: dict[str, bool],
    strike: Strike,
    process: WarmProcess,
) -> None:
    """Upload images, delete one now and then, and strike at a random moment."""
    for number in range(chance.randrange(1, 8)):
        name = f"{life}-{number}.png"
        sent = client.post("/api/images", files=[("images", (name, _draw(chance), "image/png"))])
        if sent.status_code == 202:
            expected[name] = True
        old = chance.choice(list(expected)) if expected else name
        if chance.random() < 0.2 and expected.pop(old, False):
            with suppress(httpx.HTTPError):
                if client.delete("/api/image", params={"id": old}).status_code == 200:
                    expected[old] = False
        time.sleep(chance.uniform(0, 0.3))
    strike(process)


def _wait(client: httpx.Client) -> None:
    """Wait until the jobs of earlier lives have ended."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        jobs = client.get("/api/jobs").json()
        if all(job["state"] in ("done", "failed", "cancelled") for job in jobs):
            return
        time.sleep(0.1)


def _has(client: httpx.Client, name: str) -> bool:
    return client.get("/api/image", params={"id": name}).status_code == 200


def _draw(chance: random.Random) -> bytes:
    rng = np.random.default_rng(chance.randrange(2**32))
    small = Image.fromarray(rng.integers(0, 255, (9, 12, 3), dtype=np.uint8))
    out = io.BytesIO()
    small.resize((120, 90), Image.Resampling.BICUBIC).save(out, "PNG")
    return out.getvalue()
