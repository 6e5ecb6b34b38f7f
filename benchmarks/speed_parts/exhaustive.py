"""Every image scored, K tokens against K: fp32, fp16 and int8 against libraries, engines and the core's own peak."""

import statistics
import tempfile
from pathlib import Path

import numpy as np

from resight import kernels
from resight.types import FloatArray
from speed_parts import peers
from speed_parts.peaks import Peak, list_peaks
from speed_parts.real_tokens import TokenSet
from speed_parts.results import Part, Point, Row, Run, Times, compare, interleave, is_top, rate
from speed_parts.synthetic_tokens import make_random

SHAPES = ((16, 384, 9000), (32, 384, 6000), (64, 384, 3000), (196, 384, 400), (32, 768, 1500))
BARS = {16: 2.0, 32: 1.7, 64: 1.3}  # fp32 against the best exact peer
KINDS = {"fp32": 1e-5, "fp16": 1e-3, "int8": 5e-3}  # how far scores may be from numpy's
BYTES = {"fp32": 4, "fp16": 2, "int8": 1}
ROUNDS = 11


def measure(small: bool, real: TokenSet | None) -> Part:
    parts = []
    for count, d, images in SHAPES:
        parts.append(
            measure_shape(make_random(images // 3 if small else images, count, d), engines=(count, d) == (32, 384))
        )
    if real is not None:
        for count, images in ((16, 12_000), (32, 9000)):  # the first 16 are the 16 that are farthest apart
            tokens = np.ascontiguousarray(real.database[: images // 3 if small else images, :count])
            asked = TokenSet("real", tokens, np.ascontiguousarray(real.queries[:1, :count]))
            parts.append(measure_shape(asked, engines=count == 32))
    rows = tuple(row for part in parts for row in part.rows)
    figures = {name: value for part in parts for name, value in part.figures.items()}
    return Part(rows, parts[1].points, figures)


def measure_shape(asked: TokenSet, engines: bool) -> Part:
    tokens, query = asked.database, asked.queries[0]
    images, count, d = tokens.shape
    offsets = np.arange(images + 1) * count
    packs = {kind: kernels.pack(tokens.reshape(-1, d), offsets, kind=kind) for kind in KINDS}
    runs: dict[str, Run] = {kind: score_with(packed, query) for kind, packed in packs.items()}
    libraries = peers.list_libraries(tokens, query)
    truth = peers.score_by_numpy(tokens, query)
    off = {name: float(np.abs(run() - truth).max()) for name, run in (runs | libraries).items()}
    for name, worst in off.items():
        assert worst < KINDS.get(name, 1e-5), f"{name} is off by {worst}"
    peaks = list_peaks()
    times = interleave({**runs, **libraries, **{f"peak {kind}": peak.run for kind, peak in peaks.items()}}, ROUNDS)
    best = min(libraries, key=lambda name: statistics.median(times[name]))
    work, where = images * count * len(query) * d, f"K={count} d={d}"

    def against(kind: str, peer: str, bar: float | None = None) -> Row:
        answers = f"scores within {max(off[kind], off[peer]):.0e}"
        return Row(f"exhaustive {kind}, {where}", asked.name, peer, compare(times, peer, kind), bar, answers)

    rows = [against("fp32", best, BARS.get(count) if d != 768 else None)]
    rows += [against("fp32", name) for name in libraries if name != best and engines]
    rows += [
        against("fp16", "numpy"),
        against("int8", "numpy", 5.0 if (count, d) != (32, 768) and count == 32 else None),
    ]
    points = [Point(kind, len(query) / BYTES[kind], rate(times, kind, work), ours=True) for kind in KINDS] + [
        Point(name, len(query) / 4, rate(times, name, work), ours=False) for name in libraries
    ]
    if engines:
        more, marks = measure_engines(asked, truth, packs["fp32"])
        rows += more
        points += marks
        rows += list_shares(asked.name, where, times, peaks, work)
    return Part(tuple(rows), tuple(points), {f"{asked.name} {where}, GMAC/s": rate_all(times, work)})


def measure_engines(asked: TokenSet, truth: FloatArray, packed: kernels.Packed) -> tuple[list[Row], list[Point]]:
    tokens, query = asked.database, asked.queries[0]
    images, count, d = tokens.shape
    with tempfile.TemporaryDirectory() as scratch:
        engines = peers.list_engines(tokens, query, Path(scratch))
        same = {name: is_top(truth, run()) for name, run in engines.items()}
        times = interleave({"ours": lambda: packed.top(query, 10, threads=1), **engines}, 5)
    rows = [
        Row(
            f"exhaustive top 10 in fp32, K={count} d={d}",
            asked.name,
            name,
            compare(times, name, "ours"),
            answers="identical top 10" if same[name] else "another top 10",
        )
        for name in engines
    ]
    work = images * count * len(query) * d
    return rows, [Point(name, len(query) / 4, rate(times, name, work), ours=False) for name in engines]


def list_shares(name: str, where: str, times: Times, peaks: dict[str, Peak], work: float) -> list[Row]:
    """Kernel and peak of the same round had the same clock."""
    rows = []
    for kind, peak in peaks.items():
        pairs = zip(times[kind], times[f"peak {kind}"], strict=True)
        share = statistics.median((work / ours) / (peak.amount / best) for ours, best in pairs)
        rows.append(Row(f"{kind}, {where}", name, f"a core's peak in {kind}", share, 0.8, share=True))
    return rows


def rate_all(times: Times, work: float) -> dict[str, float]:
    return {name: rate(times, name, work) for name in times if not name.startswith("peak")}


def score_with(packed: kernels.Packed, query: FloatArray) -> Run:
    return lambda: packed.scores(query, threads=1)
