"""Open-loop arrivals at half of what the server can do, while images come and go; and far more than it can do."""

import statistics
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from resight.apps.service.settings import count_cores
from service_parts.arrivals import Asked, run_closed_loop, run_open_loop
from service_parts.queries import list_photos, read_queries
from service_parts.server import MemoryLog, Server
from service_parts.versions import count_equal
from service_parts.writing import Writer

QUERIES = 60
ALONE, PROBE = 20.0, 20.0  # seconds
FACTOR = 5.0  # p95 under load by p50 of one client
DELETING = 1.0  # seconds, p95
SETTLED, GROWTH = 2, 0.1  # the tenth of the time from which memory may grow by so much
RECOVERY = 10.0  # seconds after an overload


def measure_load(server: Server, photos: Path, added: Path, clients: int, seconds: float) -> bool:
    queries = read_queries(photos, QUERIES)
    alone, capacity = probe(server, queries)
    with MemoryLog(server) as memory, Writer(server.address, list_photos(added, 400)) as writer:
        asked = run_open_loop(server.address, queries, capacity / 2, clients, seconds)
    late = percentile(asked, 95)
    print(f"one client: p50 {1000 * alone:.0f} ms; capacity {capacity:.1f} searches a second")
    print(f"{clients} clients, {capacity / 2:.1f} a second for {seconds / 60:.1f} min: {say_statuses(asked)}")
    print(", ".join(f"p{share} {1000 * percentile(asked, share):.0f} ms" for share in (50, 95, 99)))
    print(f"p95 by the p50 of one client: {late / alone:.2f} (bar {FACTOR:.0f})")
    print(f"meanwhile {writer.added} images added, {writer.deleted} deleted; {len(writer.errors)} of these failed")
    equal, compared = count_equal(server.collection, queries, asked)
    print(f"answers equal to the library's at the same version: {equal} of {compared}")
    deleting = quantile(writer.delete_seconds, 95)
    print(f"deletes: p50 {quantile(writer.delete_seconds, 50):.2f} s, p95 {deleting:.2f} s (bar {DELETING:.0f} s)")
    parts = [memory.mean(tenth / 10, (tenth + 1) / 10) for tenth in range(10)]
    print(f"server's memory, means of tenths of the time in MiB: {', '.join(f'{part:.0f}' for part in parts)}")
    growth = parts[9] / parts[SETTLED] - 1
    print(f"from tenth {SETTLED + 1} to the last: {growth:+.1%} (bar {GROWTH:.0%})")
    for error in writer.errors[:5]:
        print("writer:", error)
    failed = sum(one.status != 200 for one in asked)
    passed = not failed and not writer.errors and late <= FACTOR * alone and equal == compared > 0
    passed = passed and deleting <= DELETING and growth <= GROWTH
    print("met" if passed else "MISSED")
    return passed


def measure_overload(server: Server, photos: Path, seconds: float, times: float) -> bool:
    queries = read_queries(photos, QUERIES)
    alone, capacity = probe(server, queries)
    asked = run_open_loop(server.address, queries, times * capacity, 20, seconds)
    refused = [one for one in asked if one.status == 429]
    print(f"one client: p50 {1000 * alone:.0f} ms; capacity {capacity:.1f} searches a second")
    print(f"{times:g} times the capacity for {seconds:.0f} s: {say_statuses(asked)}")
    answered = [one for one in asked if one.status == 200]
    print(f"answered {len(answered) / seconds:.1f} a second, p95 {1000 * percentile(answered, 95):.0f} ms")
    print(f"refused in {1000 * percentile(refused, 50):.0f} ms (median), all with Retry-After: {told_when(refused)}")
    time.sleep(RECOVERY)
    after = run_closed_loop(server.address, queries, 1, ALONE)
    back = percentile(after, 50)
    print(f"{RECOVERY:.0f} s later one client: p50 {1000 * back:.0f} ms, {say_statuses(after)}")
    fine = {one.status for one in asked} <= {200, 429} and {one.status for one in after} == {200}
    passed = fine and told_when(refused) and bool(refused) and back <= 2 * alone
    print("met" if passed else "MISSED")
    return passed


def probe(server: Server, queries: Sequence[tuple[str, bytes]]) -> tuple[float, float]:
    """The median time of one client alone, and how many searches a second the server gives to several."""
    run_closed_loop(server.address, queries, 1, 5.0)  # warm up
    alone = percentile(run_closed_loop(server.address, queries, 1, ALONE), 50)
    began = time.monotonic()
    many = run_closed_loop(server.address, queries, 2 * count_cores(), PROBE)
    return alone, sum(one.status == 200 for one in many) / (time.monotonic() - began)


def percentile(asked: Sequence[Asked], share: int) -> float:
    return quantile([one.seconds for one in asked], share)


def quantile(seconds: Sequence[float], share: int) -> float:
    if len(seconds) < 2:
        return seconds[0] if seconds else 0.0
    return statistics.quantiles(seconds, n=100)[share - 1]


def say_statuses(asked: Sequence[Asked]) -> str:
    counts = Counter(one.status for one in asked)
    return ", ".join(f"{count:,} × {status or 'no answer'}" for status, count in sorted(counts.items()))


def told_when(refused: Sequence[Asked]) -> bool:
    return all(one.retry_after and one.retry_after.isdigit() for one in refused)
