"""The ten best of 25,000 images × 32 tokens: proven, or by a cascade whose identity with the truth is counted."""

import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from resight import kernels
from resight.types import FloatArray
from speed_parts.peers import score_by_numpy
from speed_parts.real_tokens import TokenSet
from speed_parts.results import Part, Row, Times, compare, is_top
from speed_parts.synthetic_tokens import make_clusters

DIMS, KEEPS = 56, (600, 20)  # the cascade's shape: dimensions of the first pass, images after it and after the second
BARS = {"int8, proven": (5.0, 1.0), "cascade": (15.0, 0.99)}  # ratio, share of identical answers


def measure(small: bool, real: TokenSet | None) -> Part:
    parts = [measure_set(make_clusters(2500 if small else 25_000, 20))]
    if real is not None:
        queries = real.queries[: 20 if small else None]
        parts.append(measure_set(TokenSet("real", real.database[: 2500 if small else None], queries)))
    rows = tuple(row for part in parts for row in part.rows)
    return Part(rows, (), {name: value for part in parts for name, value in part.figures.items()})


def measure_set(asked: TokenSet) -> Part:
    searchers = list_searchers(asked.database)
    times: Times = {name: [] for name in ("numpy", *searchers)}
    same: dict[str, list[bool]] = {name: [] for name in searchers}
    rescored = []
    for query in asked.queries:
        started = time.process_time()
        scores = score_by_numpy(asked.database, query)
        np.argpartition(-scores, 10)[:10]
        times["numpy"].append(time.process_time() - started)
        for name, search in searchers.items():
            started = time.process_time()
            found, _, certificate = search(query)
            times[name].append(time.process_time() - started)
            same[name].append(is_top(scores, found))
            if name == "int8, proven":
                rescored.append(certificate.rescored)
    images, count, _ = asked.database.shape
    rows = []
    for name in searchers:
        bar, wanted = BARS.get(name.split(":")[0], (None, 0.0))
        identity = float(np.mean(same[name]))
        answers = f"{identity:.1%} of {len(same[name])} identical"
        ratio = compare(times, "numpy", name)
        work = f"top 10 of {images:,} × {count}, {name}"
        rows.append(Row(work, asked.name, "numpy", ratio, bar, answers, right=identity >= wanted))
    figures = {
        f"{asked.name}, numpy, ms": 1000 * statistics.median(times["numpy"]),
        f"{asked.name}, rescored for the proof, median": statistics.median(rescored),
    }
    return Part(tuple(rows), (), figures)


def list_searchers(tokens: FloatArray) -> dict[str, Callable[[FloatArray], Any]]:
    images, count, d = tokens.shape
    offsets, rows = np.arange(images + 1) * count, tokens.reshape(-1, d)
    exact, whole = kernels.pack(rows, offsets, kind="fp32"), kernels.pack(rows, offsets, kind="int8")
    slim = kernels.pack(rows, offsets, kind="int8", dims=DIMS)
    parts = d // 16 * 4
    product = kernels.pack(rows, offsets, kind="pq", m=parts)
    passes = kernels.cascade([(slim, KEEPS[0]), (whole, KEEPS[1])])
    products = kernels.cascade([(product, 100)])
    return {
        "fp32": lambda query: exact.top(query, 10, threads=1),
        "int8, proven": lambda query: whole.top(query, 10, threads=1),
        f"cascade: {DIMS} dims → int8 {KEEPS[0]:,} → fp32 {KEEPS[1]}": lambda query: passes.top(query, 10, threads=1),
        f"pq {parts} × 4 bits → fp32 100": lambda query: products.top(query, 10, threads=1),
    }
