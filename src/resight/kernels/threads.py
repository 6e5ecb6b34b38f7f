"""Work over many images → one call, or one a thread. Threads wait in the system, never in a loop."""

import itertools
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

# Multiply-adds that are worth a thread of their own: some milliseconds, against a tenth of one to start it.
SMALL = 200_000_000
# A core that is busy with something else holds up only the piece that it has: a millisecond or two of work, against
# some microseconds to fetch the next one.
PIECE = 50_000_000
MOST_PIECES = 16  # a thread


def run_split(call: Callable[[int, int], object], images: int, work: int, threads: int | None) -> None:
    """`call(begin, end)` over all of `images`; work: multiply-adds in all; threads: the most (None: all cores)."""
    workers = min(available_cores() if threads is None else threads, work // SMALL, images)
    if workers <= 1:
        call(0, images)
        return
    pieces = min(max(work // PIECE, workers), workers * MOST_PIECES, images)
    bounds = [images * piece // pieces for piece in range(pieces + 1)]
    with ThreadPoolExecutor(workers) as pool:
        for finished in [pool.submit(call, begin, end) for begin, end in itertools.pairwise(bounds)]:
            finished.result()


def available_cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
