"""A thousand images of a memory map, which the system holds in memory, in random places; a fresh map each time."""

import tempfile
import time
from pathlib import Path

import numpy as np

from resight import kernels
from speed_parts.peers import score_by_numpy
from speed_parts.real_tokens import TokenSet
from speed_parts.results import Part, Row, Times, compare
from speed_parts.synthetic_tokens import make_clusters

SHORTLIST = 1000
ROUNDS = 15
BARS = {"fp32": 2.3, "int8": 6.0}


def measure(small: bool, real: TokenSet | None) -> Part:
    rows = measure_set(make_clusters(5000 if small else 25_000, ROUNDS))
    if real is not None:
        rows += measure_set(TokenSet("real", real.database[: 5000 if small else None], real.queries[:ROUNDS]))
    return Part(tuple(rows))


def measure_set(asked: TokenSet) -> list[Row]:
    images, count, d = asked.database.shape
    random = np.random.default_rng(1)
    times: Times = {name: [] for name in ("numpy", *BARS)}
    off = dict.fromkeys(BARS, 0.0)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        np.save(folder / "plain.npy", asked.database)
        for kind in BARS:
            packed = kernels.pack(asked.database.reshape(-1, d), np.arange(images + 1) * count, kind=kind, keep="none")
            packed.save(folder / kind)
        for query in asked.queries:
            shortlist = np.sort(random.choice(images, SHORTLIST, replace=False))
            plain = np.load(folder / "plain.npy", mmap_mode="r")
            started = time.process_time()
            truth = score_by_numpy(plain[shortlist], query)
            times["numpy"].append(time.process_time() - started)
            for kind in BARS:
                mapped = kernels.open(folder / kind)
                started = time.process_time()
                found = mapped.scores(query, rows=shortlist, threads=1)
                times[kind].append(time.process_time() - started)
                off[kind] = max(off[kind], float(np.abs(found - truth).max()))
    return [
        Row(
            f"rerank of {SHORTLIST:,} × {count}, mapped, {kind}",
            asked.name,
            "numpy",
            compare(times, "numpy", kind),
            bar,
            f"scores within {off[kind]:.0e}",
            right=off[kind] < 5e-3,
        )
        for kind, bar in BARS.items()
    ]
