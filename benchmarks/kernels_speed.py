"""The kernels against their peers: CPU time of one thread, interleaved, medians, answers compared in the same run.

    python benchmarks/kernels_speed.py [--part exhaustive|top|rerank|single|threads] [--small]
                                       [--tokens FILE.npy] [--json FILE]

Peers: numpy (always), faiss, torch, fast-maxsim and numkong (where installed). A ratio is a peer's median time by ours.
--small takes a tenth of the images. --tokens measures the top 10 on real tokens [N, K, d] as well.
"""

import argparse
import importlib
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from resight import kernels
from resight.kernels import dispatch
from resight.types import FloatArray

ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS"), "1")
Run = Callable[[], Any]
Figures = dict[str, Any]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parts = {
        "exhaustive": measure_exhaustive,
        "top": measure_top,
        "rerank": measure_rerank,
        "single": measure_single,
        "threads": measure_threads,
    }
    parser.add_argument("--part", choices=list(parts), action="append")
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--tokens", type=Path)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    if not ONE_THREAD.items() <= os.environ.items():  # numpy reads them when it is loaded: start again with them set
        os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, **ONE_THREAD})
    figures: Figures = {"implementation": kernels.implementation()}
    for name in options.part or list(parts):
        if name == "top" and options.tokens:
            figures["top, real tokens"] = measure_top(options.small, np.load(options.tokens).astype(np.float32))
        figures[name] = parts[name](options.small)
    show(figures)
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")


def measure_exhaustive(small: bool) -> Figures:
    """Every image scored, K tokens against K: fp32, fp16 and int8, and the share of what the core can do."""
    peaks = measure_peaks()
    figures: Figures = {f"peak {kind}, GMAC/s": value for kind, value in peaks.items()}
    for count, d, images in ((16, 384, 6000), (32, 384, 3000), (64, 384, 1500), (196, 384, 400), (32, 768, 1500)):
        images = images // 3 if small else images
        random = np.random.default_rng(0)
        tokens = unit(random.standard_normal((images * count, d), dtype=np.float32))
        query = unit(tokens[:count] + 0.02 * random.standard_normal((count, d), dtype=np.float32))
        offsets = np.arange(images + 1) * count
        packs = {kind: kernels.pack(tokens, offsets, kind=kind) for kind in ("fp32", "fp16", "int8")}
        runs: dict[str, Run] = {kind: score_with(packed, query) for kind, packed in packs.items()}
        runs |= list_peers(tokens.reshape(images, count, d), query)
        reference = score_by_numpy(tokens.reshape(images, count, d), query)
        allowed = {"fp16": 1e-3, "int8": 5e-3}
        for name, run in runs.items():
            worst = float(np.abs(np.asarray(run()) - reference).max())
            assert worst < allowed.get(name, 1e-5), f"{name} is off by {worst}"
        times = interleave(runs, 9)
        work = images * count * count * d
        best = min((name for name in times if name not in packs), key=lambda name: times[name])
        figures[f"K={count} d={d}"] = {
            "GMAC/s": {name: work / seconds / 1e9 for name, seconds in times.items()},
            "best exact peer": best,
            **{f"{kind} against it": times[best] / times[kind] for kind in packs},
            **{f"{kind} against numpy": times["numpy"] / times[kind] for kind in packs},
            "fp32, share of the peak": work / times["fp32"] / 1e9 / peaks["fp32"],
            "int8, share of the peak": work / times["int8"] / 1e9 / peaks["int8"],
        }
    return figures


def measure_top(small: bool, real: FloatArray | None = None) -> Figures:
    """The ten best of 25,000 images: proven, and by cascades whose identity with the exact answer is counted."""
    tokens, queries = make_clusters(2500 if small else 25000) if real is None else take_queries(unit(real))
    images, count, d = tokens.shape
    offsets, rows = np.arange(images + 1) * count, tokens.reshape(-1, d)
    exact, whole = kernels.pack(rows, offsets, kind="fp32"), kernels.pack(rows, offsets, kind="int8")
    slim = kernels.pack(rows, offsets, kind="int8", dims=64)
    product = kernels.pack(rows, offsets, kind="pq", m=d // 4)
    fine = kernels.pack(rows, offsets, kind="pq", m=d // 8, bits=8)
    searchers: dict[str, Callable[[FloatArray], Any]] = {
        "fp32": lambda query: exact.top(query, 10, threads=1),
        "int8, proven": lambda query: whole.top(query, 10, threads=1),
        "int8 → 30": lambda query: kernels.cascade([(whole, 30)]).top(query, 10, threads=1),
        "64 dims → int8 1,000 → 30": lambda query: kernels.cascade([(slim, 1000), (whole, 30)]).top(
            query, 10, threads=1
        ),
        f"pq {d // 4} × 4 bits → 100": lambda query: kernels.cascade([(product, 100)]).top(query, 10, threads=1),
        f"pq {d // 8} × 8 bits → 100": lambda query: kernels.cascade([(fine, 100)]).top(query, 10, threads=1),
    }
    times: dict[str, list[float]] = {name: [] for name in ("numpy", *searchers)}
    same: dict[str, list[bool]] = {name: [] for name in searchers}
    rescored = []
    for query in queries:
        started = time.process_time()
        truth = np.argsort(-score_by_numpy(tokens, query), kind="stable")[:10]
        times["numpy"].append(time.process_time() - started)
        for name, search in searchers.items():
            started = time.process_time()
            found, _, certificate = search(query)
            times[name].append(time.process_time() - started)
            same[name].append(set(found.tolist()) == set(truth.tolist()))
            if name == "int8, proven":
                rescored.append(certificate.rescored)
    medians = {name: statistics.median(values) for name, values in times.items()}
    return {
        "images": images,
        "queries": len(queries),
        "tokens an image": count,
        "bytes an image": {p.kind: p.bytes_an_image for p in (exact, whole, product)},
        "numpy, ms": 1000 * medians["numpy"],
        "rescored for the proof, median": statistics.median(rescored),
        **{f"{name}, against numpy": medians["numpy"] / medians[name] for name in searchers},
        **{f"{name}, identical top 10": float(np.mean(same[name])) for name in searchers},
    }


def measure_rerank(small: bool) -> Figures:
    """A thousand images of a memory map, which the system holds in memory, in random places."""
    tokens, queries = make_clusters(5000 if small else 25000, queries=9)
    images, count, d = tokens.shape
    random = np.random.default_rng(1)
    times: dict[str, list[float]] = {name: [] for name in ("numpy", "fp32", "int8")}
    with tempfile.TemporaryDirectory() as scratch:
        for kind in ("fp32", "int8"):
            packed = kernels.pack(tokens.reshape(-1, d), np.arange(images + 1) * count, kind=kind, keep="none")
            packed.save(Path(scratch) / kind)
        np.save(Path(scratch) / "plain.npy", tokens)
        del tokens
        for query in queries:
            rows = np.sort(random.choice(images, 1000, replace=False))
            for name in times:  # a fresh mapping each time, as after the start of a program
                if name == "numpy":
                    plain = np.load(Path(scratch) / "plain.npy", mmap_mode="r")
                    started = time.process_time()
                    expected = score_by_numpy(plain[rows], query)
                    times[name].append(time.process_time() - started)
                    continue
                mapped = kernels.open(Path(scratch) / name)
                started = time.process_time()
                found = mapped.scores(query, rows=rows, threads=1)
                times[name].append(time.process_time() - started)
                assert np.abs(found - expected).max() < 5e-3
    medians = {name: statistics.median(values) for name, values in times.items()}
    return {
        **{f"{name}, ms": 1000 * seconds for name, seconds in medians.items()},
        **{f"{kind} against numpy": medians["numpy"] / medians[kind] for kind in ("fp32", "int8")},
    }


def measure_single(small: bool) -> Figures:
    """One vector an image, the best thousand of a million: an int8 scan, then fp32 on what it kept."""
    import faiss

    images, d, k = (100_000 if small else 1_000_000), 384, 1000
    vectors, queries = make_vectors(images, d)
    packed = kernels.pack(vectors, np.arange(images + 1), kind="int8")
    found = kernels.cascade([(packed, 1500)])
    flat = faiss.IndexFlatIP(d)
    flat.add(vectors)
    bytewise = faiss.IndexScalarQuantizer(d, faiss.ScalarQuantizer.QT_8bit, faiss.METRIC_INNER_PRODUCT)
    bytewise.train(vectors[:50_000])
    bytewise.add(vectors)
    searchers: dict[str, Callable[[FloatArray], Any]] = {
        "numpy": lambda query: np.argpartition(-(vectors @ query), k)[:k],
        "faiss Flat": lambda query: flat.search(query[None], k)[1][0],
        "faiss SQ8": lambda query: bytewise.search(query[None], k)[1][0],
        "int8 scan → fp32": lambda query: found.top(query, k, threads=1)[0],
        "int8 scan, proven": lambda query: packed.top(query, k, threads=1)[0],
    }
    times: dict[str, list[float]] = {name: [] for name in searchers}
    recall: dict[str, list[float]] = {name: [] for name in searchers}
    for query in queries:
        truth = set(np.argpartition(-(vectors @ query), k)[:k].tolist())
        for name, search in searchers.items():
            started = time.process_time()
            rows = search(query)
            times[name].append(time.process_time() - started)
            recall[name].append(len(truth & set(rows.tolist())) / k)
    medians = {name: statistics.median(values) for name, values in times.items()}
    faster = min(medians["faiss Flat"], medians["faiss SQ8"])
    return {
        "images": images,
        **{f"{name}, ms": 1000 * seconds for name, seconds in medians.items()},
        **{f"{name}, recall": float(np.mean(values)) for name, values in recall.items()},
        "scan against the faster of faiss": faster / medians["int8 scan → fp32"],
        "proven scan against the faster of faiss": faster / medians["int8 scan, proven"],
    }


def measure_threads(small: bool) -> Figures:
    """Two threads against one, by the clock: true only while nothing else runs."""
    tokens, queries = make_clusters(3000 if small else 12000, queries=1)
    images, count, d = tokens.shape
    figures: Figures = {}
    for kind in ("fp32", "int8"):
        packed = kernels.pack(tokens.reshape(-1, d), np.arange(images + 1) * count, kind=kind)
        times: dict[int, list[float]] = {1: [], 2: []}
        answers = {}
        for _ in range(11):
            for threads in times:
                started = time.perf_counter()
                answers[threads] = packed.scores(queries[0], threads=threads)
                times[threads].append(time.perf_counter() - started)
        assert np.array_equal(answers[1], answers[2])
        figures[f"{kind}, two threads against one (medians)"] = statistics.median(times[1]) / statistics.median(
            times[2]
        )
        figures[f"{kind}, two threads against one (best)"] = min(times[1]) / min(times[2])
    return figures


def measure_peaks() -> dict[str, float]:
    module = dispatch.native()
    if module is None:
        return {"fp32": float("nan"), "int8": float("nan")}
    peaks = {}
    for number, kind in enumerate(("fp32", "int8")):
        rates = []
        for _ in range(9):
            started = time.process_time()
            done = module.peak(number, 5_000_000)
            rates.append(done / (time.process_time() - started) / 1e9)
        peaks[kind] = statistics.median(rates)
    return peaks


def list_peers(tokens: FloatArray, query: FloatArray) -> dict[str, Run]:
    """Exact MaxSim as others do it, each in its best form on one thread."""
    images, count, d = tokens.shape
    peers: dict[str, Run] = {"numpy": lambda: score_by_numpy(tokens, query)}
    if faiss := find("faiss"):

        def by_faiss() -> FloatArray:
            out = np.empty(images, np.float32)
            for start in range(0, images, 256):
                part = tokens[start : start + 256].reshape(-1, d)
                products = faiss.pairwise_distances(query, part, metric=faiss.METRIC_INNER_PRODUCT)
                out[start : start + 256] = products.reshape(len(query), -1, count).max(axis=2).mean(axis=0)
            return out

        faiss.omp_set_num_threads(1)
        peers["faiss"] = by_faiss
    if torch := find("torch"):
        torch.set_num_threads(1)
        there, wanted = torch.from_numpy(tokens), torch.from_numpy(query)

        def by_torch() -> FloatArray:
            parts = (there[start : start + 256] for start in range(0, images, 256))
            best = [(part.reshape(-1, d) @ wanted.T).view(-1, count, len(query)).amax(1).mean(1) for part in parts]
            return np.asarray(torch.cat(best).numpy())

        peers["torch"] = by_torch
    if fast := find("fast_maxsim"):
        peers["fast-maxsim"] = lambda: fast.maxsim_scores(query, tokens) / len(query)
    if kong := find("numkong"):
        packed = kong.dots_pack(query, dtype="f32")

        def by_numkong() -> FloatArray:
            products = np.asarray(kong.dots_packed(tokens.reshape(-1, d), packed), dtype=np.float32)
            return np.asarray(products.reshape(images, count, -1).max(axis=1).mean(axis=1), np.float32)

        peers["numkong"] = by_numkong
    return peers


def score_by_numpy(tokens: FloatArray, query: FloatArray) -> FloatArray:
    """tokens [N, K, d]: 256 images at a time, which is faster than all at once."""
    images, count, d = tokens.shape
    out = np.empty(images, np.float32)
    for start in range(0, images, 256):
        products = tokens[start : start + 256].reshape(-1, d) @ query.T
        out[start : start + 256] = products.reshape(-1, count, len(query)).max(axis=1).mean(axis=1)
    return out


def score_with(packed: kernels.Packed, query: FloatArray) -> Run:
    return lambda: packed.scores(query, threads=1)


def interleave(runs: dict[str, Run], rounds: int) -> dict[str, float]:
    times: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(rounds):
        for name, run in runs.items():
            started = time.process_time()
            run()
            times[name].append(time.process_time() - started)
    return {name: statistics.median(values) for name, values in times.items()}


def make_clusters(images: int, count: int = 32, d: int = 384, queries: int = 20) -> tuple[FloatArray, FloatArray]:
    """Tokens with words, scenes and a falling spectrum, as a network's are; queries are changed views of images."""
    random = np.random.default_rng(0)
    spectrum = np.arange(1, d + 1, dtype=np.float32) ** -0.5
    spectrum /= np.linalg.norm(spectrum)
    turn = np.linalg.qr(random.standard_normal((d, d)))[0].astype(np.float32)

    def draw(*shape: int) -> FloatArray:
        return (random.standard_normal((*shape, d), dtype=np.float32) * spectrum) @ turn

    words, scenes = draw(3000), draw(800)
    common = 1 / np.arange(1, 3001) ** 0.7
    vocabulary = np.stack([random.choice(3000, 40, replace=False, p=common / common.sum()) for _ in range(800)])
    tokens = np.empty((images, count, d), np.float32)
    for start in range(0, images, 500):
        size = min(500, images - start)
        scene = random.integers(0, 800, size)
        word = vocabulary[scene[:, None], random.integers(0, 40, (size, count))]
        shared = scenes[scene][:, None] * 0.35 + draw(size, 1) * 0.35
        tokens[start : start + size] = unit(words[word] * 0.8 + shared + draw(size, count) * 0.6)
    seen, other = random.integers(0, images, queries), random.integers(0, images, queries)
    changed = random.random((queries, count, 1)) < 0.4
    noise = random.standard_normal((queries, count, d), dtype=np.float32) * np.float32(0.5 / d**0.5)
    return tokens, unit(np.where(changed, tokens[other], tokens[seen]) + noise)


def make_vectors(images: int, d: int) -> tuple[FloatArray, FloatArray]:
    random = np.random.default_rng(0)
    spectrum = np.arange(1, d + 1, dtype=np.float32) ** -0.5
    centres = random.standard_normal((5000, d), dtype=np.float32) * spectrum
    vectors = np.empty((images, d), np.float32)
    for start in range(0, images, 50_000):
        size = min(50_000, images - start)
        noise = random.standard_normal((size, d), dtype=np.float32) * spectrum
        vectors[start : start + size] = unit(centres[random.integers(0, 5000, size)] + noise * 0.8)
    noise = random.standard_normal((9, d), dtype=np.float32) * spectrum
    return vectors, unit(vectors[random.integers(0, images, 9)] * np.linalg.norm(spectrum) + noise * 0.5)


def take_queries(tokens: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Every tenth image asks for the others."""
    asks = np.arange(len(tokens)) % 10 == 0
    return np.ascontiguousarray(tokens[~asks]), tokens[asks]


def unit(vectors: NDArray[Any]) -> FloatArray:
    return np.asarray(vectors / np.linalg.norm(vectors, axis=-1, keepdims=True), np.float32)


def find(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


def show(figures: Figures, indent: str = "") -> None:
    for name, value in figures.items():
        if isinstance(value, dict):
            print(f"{indent}{name}")
            show(value, indent + "  ")
        else:
            print(
                f"{indent}{name:<{60 - len(indent)}} {value:.4g}"
                if isinstance(value, float)
                else f"{indent}{name:<{60 - len(indent)}} {value}"
            )


if __name__ == "__main__":
    main()
