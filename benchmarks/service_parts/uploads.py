"""Malformed uploads, one after the other: no 5xx, no crash, memory flat, and a real image is answered afterwards."""

import time
from collections import Counter
from contextlib import suppress

import httpx
import numpy as np

from service_parts.malformed import FORMATS, draw, make_malformed
from service_parts.server import Server

SETTLED = 0.1  # of the uploads: memory is compared from there on
HANG = 10.0  # seconds
GROWTH = 64 * 2**20  # bytes by which it may have grown until the end


def send_malformed(server: Server, count: int, seed: int = 0) -> bool:
    generator = np.random.default_rng(seed)
    told: Counter[tuple[str, int]] = Counter()
    wrong: list[str] = []
    memory: list[int] = []
    slowest = 0.0, ""
    with httpx.Client(base_url=server.address, timeout=60) as client:
        with suppress(KeyboardInterrupt):
            for number, upload in enumerate(make_malformed(count, generator)):
                began = time.monotonic()
                response = client.post("/api/search", files={"image": (upload.name, upload.data)})
                slowest = max(slowest, (time.monotonic() - began, upload.name))
                told[upload.name.split("-")[0], response.status_code] += 1
                refused = 400 <= response.status_code < 500
                if response.status_code >= 500 or response.status_code == 429 or (upload.certain and not refused):
                    wrong.append(f"{upload.name}: {response.status_code} {response.text[:200]}")
                if number % max(1, count // 200) == 0:
                    memory.append(server.memory())
        image = client.post("/api/search", files={"image": ("whole.png", draw(FORMATS["png"], generator))})
    print(f"{told.total():,} uploads")
    for (kind, status), times in sorted(told.items()):
        print(f"{kind:<10} {status} {times:>7,}")
    settled = memory[int(len(memory) * SETTLED)]
    grown = max(memory[len(memory) // 2 :]) - settled
    print(f"memory {settled / 2**20:.0f} MiB after a tenth, {memory[-1] / 2**20:.0f} MiB at the end")
    print(f"slowest answer {slowest[0]:.2f} s (bar {HANG:.0f} s): {slowest[1]}")
    print(f"a real image afterwards: {image.status_code}")
    for line in wrong[:10]:
        print("wrong:", line)
    passed = not wrong and slowest[0] <= HANG and grown < GROWTH and image.status_code == 200 and server.is_running
    print("met" if passed else f"MISSED: {len(wrong)} wrong answers, memory grew by {grown / 2**20:.0f} MiB")
    return passed
