"""One vector an image, the best thousand of a million: an int8 scan, then fp32 on what it kept, against faiss."""

import statistics
import time
from collections.abc import Callable

import numpy as np

from resight import kernels
from resight.types import FloatArray, IntArray
from speed_parts.peers import find
from speed_parts.real_tokens import TokenSet
from speed_parts.results import Part, Point, Row, Times, compare, rate
from speed_parts.synthetic_tokens import make_vectors

BEST, KEPT = 1000, 1500
ROUNDS = 15
FAISS = ("faiss Flat", "faiss SQ8")


def measure(small: bool, real: TokenSet | None) -> Part:
    """Real vectors are the single tokens of the real images."""
    parts = [measure_set(make_vectors(100_000 if small else 1_000_000, ROUNDS))]
    if real is not None:
        d = real.database.shape[2]
        vectors = real.database.reshape(-1, 1, d)[: 100_000 if small else None]
        parts.append(measure_set(TokenSet("real", vectors, real.queries[:ROUNDS, :1])))
    rows = tuple(row for part in parts for row in part.rows)
    return Part(rows, parts[0].points, {name: value for part in parts for name, value in part.figures.items()})


def measure_set(asked: TokenSet) -> Part:
    vectors = asked.database[:, 0]
    images, d = vectors.shape
    searchers = list_searchers(vectors)
    times: Times = {name: [] for name in searchers}
    recall: dict[str, list[float]] = {name: [] for name in searchers}
    for query in asked.queries[:, 0]:
        truth = set(searchers["numpy"](query).tolist())
        for name, search in searchers.items():
            started = time.process_time()
            found = search(query)
            times[name].append(time.process_time() - started)
            recall[name].append(len(truth & set(found.tolist())) / BEST)
    faster = min(FAISS, key=lambda name: statistics.median(times[name]))

    def against(ours: str, peer: str, bar: float | None = None) -> Row:
        found, theirs = (float(np.mean(recall[name])) for name in (ours, peer))
        answers = f"recall {found:.4f}, peer {theirs:.4f}"
        work = f"one vector, {images:,} × {d}, top {BEST:,}, {ours}"
        return Row(work, asked.name, peer, compare(times, peer, ours), bar, answers, right=found >= 0.999)

    peers = [name for name in searchers if not name.startswith("int8")]
    rows = [against("int8 scan → fp32", faster, 3.5)]
    rows += [against("int8 scan → fp32", name) for name in peers if name != faster]
    rows.append(against("int8 scan, proven", faster))
    points = [
        Point("one vector, int8", 1.0, rate(times, "int8 scan → fp32", images * d), ours=True),
        Point("one vector, faiss Flat", 0.25, rate(times, "faiss Flat", images * d), ours=False),
        Point("one vector, faiss SQ8", 1.0, rate(times, "faiss SQ8", images * d), ours=False),
    ]
    figures = {f"{asked.name}, {name}, ms": 1000 * statistics.median(values) for name, values in times.items()}
    return Part(tuple(rows), tuple(points), figures)


def list_searchers(vectors: FloatArray) -> dict[str, Callable[[FloatArray], IntArray]]:
    faiss = find("faiss")
    faiss.omp_set_num_threads(1)
    images, d = vectors.shape
    packed = kernels.pack(vectors, np.arange(images + 1), kind="int8")
    scan = kernels.cascade([(packed, KEPT)])
    flat = faiss.IndexFlatIP(d)
    flat.add(vectors)
    bytewise = faiss.IndexScalarQuantizer(d, faiss.ScalarQuantizer.QT_8bit, faiss.METRIC_INNER_PRODUCT)
    bytewise.train(vectors[:50_000])
    bytewise.add(vectors)
    return {
        "numpy": lambda query: np.argpartition(-(vectors @ query), BEST)[:BEST],
        "faiss Flat": lambda query: flat.search(query[None], BEST)[1][0],
        "faiss SQ8": lambda query: bytewise.search(query[None], BEST)[1][0],
        "int8 scan → fp32": lambda query: scan.top(query, BEST, threads=1)[0],
        "int8 scan, proven": lambda query: packed.top(query, BEST, threads=1)[0],
    }
