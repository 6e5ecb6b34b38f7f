"""IVFPQ over the regions of very many images: how long it takes to build and to search, how much memory, what it finds.

    python benchmarks/regions_scale.py [--images 200000] [--regions 14] [--queries 100] [--only NAME] [--json FILE]

The vectors are made, not measured. 20,000 centres are drawn in a latent space of 64 dimensions; the one of each region
is drawn at random, and the region lies around it with 0.6 of the centres' spread in every latent dimension. A fixed
random matrix takes it to 208 dimensions, noise of 0.3 of that spread is added to each of them, and it is scaled to unit
length. A query is the vector of a region, made again with noise of its own: its neighbours are the regions of its
centre, about 140, in an order that depends on where they lie around it. Everything is made chunk by chunk from the
number of the chunk, so that nothing whole is ever in memory.

Each way to build runs in a process of its own, whose peak memory when it has built is reported (resource). Times of
searches are those of the second round, when the pages that they touch are in memory; faiss answers one query on one
thread, and builds on all that OMP_NUM_THREADS allows. Recall@100: of the 100 best images by exact comparison in float32
(block by block), the share that is found.
"""

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from resight import index
from resight.types import Descriptors

DIMENSIONS, LATENT, CENTRES, BEST = 208, 64, 20_000, 100
SPREAD, NOISE = 0.6, 0.3
IMAGES_A_CHUNK = 5000
BARS = {"gibibytes": 3.0, "median_ms": 30.0, "recall": 0.9}
BUILDS: Mapping[str, Mapping[str, Any]] = {
    "plain": {},
    "fast scan": {"fast": True},
    "OPQ": {"rotation": True},
    "OPQ, fast scan": {"rotation": True, "fast": True},
}
SEARCHES: Mapping[str, Mapping[str, Any]] = {
    f"{'codes alone' if refine == 0 else f'refine {refine}'}, nprobe {nprobe}": {
        "nprobe": nprobe,
        **({"keep": "none"} if refine == 0 else {"refine": refine}),
    }
    for nprobe in (16, 32, 64, 128)
    for refine in (0, 2, 4)
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=200_000)
    parser.add_argument("--regions", type=int, default=14)
    parser.add_argument("--queries", type=int, default=100)
    parser.add_argument("--only", choices=BUILDS, help="one way to build")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--child", choices=BUILDS, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    world = World(options.images, options.regions)
    if options.child:
        print(json.dumps(measure(world, options.child, options.folder)))
        return
    folder = Path(tempfile.mkdtemp(prefix="regions-scale-"))
    try:
        queries = world.draw_queries(options.queries)
        np.save(folder / "queries.npy", queries)
        np.save(folder / "truth.npy", find_exactly(world, queries))
        rows = []
        for name in [options.only] if options.only else BUILDS:
            rows += run_child(name, folder)
            print_rows(rows[-len(SEARCHES) :], heading=len(rows) == len(SEARCHES))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if options.json:
        options.json.write_text(json.dumps({"bars": BARS, "rows": rows}, indent=1), encoding="utf-8")


@dataclass(frozen=True)
class World:
    images: int
    regions: int

    def chunks(self) -> Iterator[Descriptors]:
        for number, start in enumerate(range(0, self.images, IMAGES_A_CHUNK)):
            names = range(start, min(start + IMAGES_A_CHUNK, self.images))
            generator = np.random.default_rng([1, number])
            latent = self._draw_latent(generator, len(names) * self.regions)
            owners = np.repeat(np.arange(len(names), dtype=np.int32), self.regions)
            side = np.tile(np.arange(self.regions, 0, -1, dtype=np.float32), len(names))
            boxes = np.stack([np.zeros_like(side), np.zeros_like(side), side, side], axis=1)
            yield Descriptors(tuple(f"{name:07}" for name in names), self._lift(generator, latent), owners, boxes)

    def draw_queries(self, count: int) -> NDArray[np.float32]:
        """Regions of the first images [count, D], made again with other noise."""
        latent = self._draw_latent(np.random.default_rng([1, 0]), min(IMAGES_A_CHUNK, self.images) * self.regions)
        generator = np.random.default_rng(2)
        return self._lift(generator, latent[generator.permutation(len(latent))[:count]])

    def _draw_latent(self, generator: np.random.Generator, count: int) -> NDArray[np.float32]:
        centres = np.random.default_rng(0).normal(size=(CENTRES, LATENT)).astype(np.float32)
        own = centres[generator.integers(0, CENTRES, count)]
        return own + np.float32(SPREAD) * generator.standard_normal((count, LATENT), np.float32)

    def _lift(self, generator: np.random.Generator, latent: NDArray[np.float32]) -> NDArray[np.float32]:
        matrix = np.random.default_rng(3).normal(size=(LATENT, DIMENSIONS)).astype(np.float32) / np.sqrt(LATENT)
        vectors = latent @ matrix.astype(np.float32)
        vectors += np.float32(NOISE) * generator.standard_normal(vectors.shape, np.float32)
        return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), np.float32)


def find_exactly(world: World, queries: NDArray[np.float32]) -> NDArray[np.int64]:
    """The numbers of the best images of each query [q, BEST]; one chunk at a time."""
    numbers = np.zeros((len(queries), 0), np.int64)
    scores = np.zeros((len(queries), 0), np.float32)
    first = 0
    for chunk in world.chunks():
        products = (queries @ chunk.vectors.T).reshape(len(queries), len(chunk.ids), world.regions).max(axis=2)
        scores = np.concatenate([scores, products], axis=1)
        numbers = np.concatenate([numbers, np.tile(first + np.arange(len(chunk.ids)), (len(queries), 1))], axis=1)
        best = np.argsort(-scores, axis=1)[:, :BEST]
        numbers, scores = np.take_along_axis(numbers, best, 1), np.take_along_axis(scores, best, 1)
        first += len(chunk.ids)
    return numbers


def run_child(name: str, folder: Path) -> list[dict[str, Any]]:
    command = [sys.executable, __file__, *sys.argv[1:], "--child", name, "--folder", str(folder)]
    answer = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    rows: list[dict[str, Any]] = json.loads(answer.stdout)
    return rows


def measure(world: World, name: str, folder: Path) -> list[dict[str, Any]]:
    """Builds one index, and searches it in every way."""
    place = folder / "index"
    place.mkdir()
    started = time.perf_counter()
    index.build("ivfpq", **BUILDS[name]).create(world.chunks, place)
    seconds, built = time.perf_counter() - started, peak_gibibytes()
    queries, truth = np.load(folder / "queries.npy"), np.load(folder / "truth.npy")
    rows = []
    for way, settings in SEARCHES.items():
        searcher: Any = index.build("ivfpq", **{**BUILDS[name], **settings}).open(place)
        milliseconds, recall = search_all(searcher, queries, truth)
        rows.append(
            {
                "build": name,
                "search": way,
                "seconds": round(seconds, 1),
                "gibibytes": round(built, 2),
                "megabytes_in_memory": round(searcher.bytes_in_memory / 1e6, 1),
                "megabytes_on_disk": round(searcher.bytes_on_disk / 1e6, 1),
                "times_smaller": round(searcher.bytes_uncompressed / searcher.bytes_in_memory, 1),
                "recall": round(recall, 4),
                "median_ms": round(float(np.median(milliseconds)), 1),
                "p95_ms": round(float(np.percentile(milliseconds, 95)), 1),
            }
        )
    shutil.rmtree(place)
    return rows


def search_all(
    searcher: index.Searcher, queries: NDArray[np.float32], truth: NDArray[np.int64]
) -> tuple[list[float], float]:
    """Milliseconds of each query, after one round that brings mapped pages in, and the mean recall."""
    milliseconds, found = [], 0
    for measured in (False, True):
        for query, best in zip(queries, truth.tolist(), strict=True):
            row = Descriptors(("query",), query[None], np.zeros(1, np.int32))
            started = time.perf_counter()
            ranking = searcher.search(row, BEST)
            if measured:
                milliseconds.append(1000 * (time.perf_counter() - started))
                found += len({int(name) for name in ranking.ids} & set(best))
    return milliseconds, found / (len(queries) * BEST)


def peak_gibibytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def print_rows(rows: Sequence[Mapping[str, Any]], heading: bool) -> None:
    if heading:
        print(f"{os.cpu_count()} cores; bars: {BARS}")
        print(
            f"{'build':16}{'search':25}{'build s':>9}{'peak GiB':>10}{'MB memory':>11}{'MB disk':>9}{'smaller':>9}"
            f"{'recall@100':>12}{'median ms':>11}{'p95 ms':>8}"
        )
    for row in rows:
        print(
            f"{row['build']:16}{row['search']:25}{row['seconds']:9}{row['gibibytes']:10}{row['megabytes_in_memory']:11}"
            f"{row['megabytes_on_disk']:9}{row['times_smaller']:8}×{row['recall']:12}{row['median_ms']:11}{row['p95_ms']:8}",
            flush=True,
        )


if __name__ == "__main__":
    main()
