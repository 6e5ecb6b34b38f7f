"""What HTTP adds to a search: the same queries through the service and through the library, in turn.

The library call reads the file, encodes it and searches; the service also receives, decodes in a process of its own,
queues and writes JSON. Medians of the differences, query by query.
"""

import statistics
import time
from pathlib import Path

import httpx

from resight.collection import open_collection
from service_parts.answers import is_same
from service_parts.queries import list_photos
from service_parts.server import Server

BAR = 0.015  # seconds


def measure_overhead(server: Server, queries: Path, rounds: int) -> bool:
    library = open_collection(server.collection, must_exist=True)
    files = list_photos(queries, rounds)
    extra, inside, same = [], [], 0
    with httpx.Client(base_url=server.address, timeout=60) as client:
        for turn in range(2):  # the first warms both sides up
            for path in files:
                data = path.read_bytes()
                began = time.perf_counter()
                hits = library.search(path, k=10)
                between = time.perf_counter()
                response = client.post("/api/search", files={"image": (path.name, data)}, data={"k": "10"})
                ended = time.perf_counter()
                if turn:
                    inside.append(between - began)
                    extra.append((ended - between) - (between - began))
                    same += is_same(response.json()["hits"], hits)
    middle = statistics.median(extra)
    print(f"{len(library):,} images, {len(files)} queries")
    print(f"library {1000 * statistics.median(inside):.1f} ms, HTTP beyond it {1000 * middle:+.1f} ms (medians)")
    print(f"answers equal to the library's: {same} of {len(extra)}")
    passed = middle <= BAR and same == len(extra)
    print("met" if passed else "MISSED")
    return passed
