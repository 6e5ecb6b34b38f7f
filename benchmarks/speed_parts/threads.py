"""Two threads against one, by the clock on the wall: true only while nothing else runs."""

import time

import numpy as np

from resight import kernels
from speed_parts.real_tokens import TokenSet
from speed_parts.results import Part, Row, Run, compare, interleave
from speed_parts.synthetic_tokens import make_clusters

ROUNDS = 25


def measure(small: bool, real: TokenSet | None) -> Part:
    images = 3000 if small else 12_000
    rows = measure_set(make_clusters(images, 1))
    if real is not None:
        rows += measure_set(TokenSet("real", real.database, real.queries[:1]))
    return Part(tuple(rows))


def measure_set(asked: TokenSet) -> list[Row]:
    images, count, d = asked.database.shape
    rows = []
    for kind in ("fp32", "int8"):
        packed = kernels.pack(asked.database.reshape(-1, d), np.arange(images + 1) * count, kind=kind)

        def score(threads: int, packed: kernels.Packed = packed) -> Run:
            return lambda: packed.scores(asked.queries[0], threads=threads)

        runs = {"one": score(1), "two": score(2)}
        same = np.array_equal(runs["one"](), runs["two"]())
        times = interleave(runs, ROUNDS, time.perf_counter)
        work = f"two threads, {images:,} × {count}, {kind}"
        answers = "identical" if same else "different"
        rows.append(Row(work, asked.name, "one thread", compare(times, "one", "two"), 1.8, answers, right=same))
    return rows
