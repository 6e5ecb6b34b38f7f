"""What HTTP adds to a search: the same queries through the service and through the library, in turn.

The library call reads the file, encodes it and searches; the service also receives, decodes in a process of its own,
queues and writes JSON. Medians of the differences, query by query, each side first every other time.
"""

import statistics
import time
from pathlib import Path
from typing import Any

import httpx

from resight.collection import Collection, open_collection
from resight.types import Hit
from service_parts.answers import is_same
from service_parts.queries import list_photos
from service_parts.server import Server

BAR = 0.015  # seconds
TURNS = 4


def measure_overhead(server: Server, queries: Path, rounds: int) -> bool:
    library = open_collection(server.collection, must_exist=True)
    files = list_photos(queries, rounds)
    extra, inside, same = [], [], 0
    with httpx.Client(base_url=server.address, timeout=60) as client:
        for turn in range(1 + TURNS):  # the first warms both sides up
            for path in files:
                data = path.read_bytes()
                first = ask_library(library, path) if turn % 2 else None  # whoever comes second finds pages in memory
                told, theirs = ask_service(client, path.name, data)
                hits, ours = first or ask_library(library, path)
                if turn:
                    inside.append(ours)
                    extra.append(theirs - ours)
                    same += is_same(told, hits)
    middle = statistics.median(extra)
    print(f"{len(library):,} images, {len(files)} queries")
    print(f"library {1000 * statistics.median(inside):.1f} ms, HTTP beyond it {1000 * middle:+.1f} ms (medians)")
    print(f"answers equal to the library's: {same} of {len(extra)}")
    passed = middle <= BAR and same == len(extra)
    print("met" if passed else "MISSED")
    return passed


def ask_library(library: Collection, path: Path) -> tuple[list[Hit], float]:
    began = time.perf_counter()
    return library.search(path, k=10), time.perf_counter() - began


def ask_service(client: httpx.Client, name: str, data: bytes) -> tuple[list[dict[str, Any]], float]:
    began = time.perf_counter()
    response = client.post("/api/search", files={"image": (name, data)}, data={"k": "10"})
    return response.json()["hits"], time.perf_counter() - began
