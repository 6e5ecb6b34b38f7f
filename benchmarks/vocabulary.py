"""How fast visual words are learnt and searched: against scikit-learn's k-means, and over many images.

    python benchmarks/vocabulary.py [--images FOLDER] [--features 500000] [--words 2000]
    python benchmarks/vocabulary.py --query

Features are RootSIFT of the images of a folder, else drawn at random. scikit-learn is no dependency of resight: where
it is missing, the benchmark says so and measures resight alone. Both run in the same process, on the threads that
OMP_NUM_THREADS allows. `--query`: words of 500 key points an image, drawn by Zipf's law, in the index `histogram`.
"""

import argparse
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import faiss
import numpy as np

from resight import index
from resight.collection.fit.fit_codebook import sample_features
from resight.collection.image_list import ImageList
from resight.encode import backbones
from resight.kmeans import find_centres
from resight.types import Descriptors, FloatArray

ROUNDS = 20
CHUNK = 2000
KEY_POINTS = 500


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=Path)
    parser.add_argument("--features", type=int, default=500_000)
    parser.add_argument("--words", type=int, default=2000)
    parser.add_argument("--query", action="store_true")
    parser.add_argument("--database", type=int, default=100_000)
    parser.add_argument("--exponent", type=float, default=0.5)
    given = parser.parse_args()
    if given.query:
        measure_query(given.database, given.words, given.exponent)
    else:
        measure_learning(find_rows(given.images, given.features), given.words)


def measure_learning(rows: FloatArray, words: int) -> None:
    print(f"{len(rows):,} features of {rows.shape[1]} dimensions, {words:,} words, {ROUNDS} rounds")
    ours = run("resight", lambda: find_centres(rows, words, ROUNDS, np.random.default_rng(0)), rows)
    try:
        from sklearn.cluster import KMeans
    except ModuleNotFoundError:
        print("scikit-learn is not installed: nothing to compare with")
        return
    start = rows[np.random.default_rng(0).permutation(len(rows))[:words]]
    peer = KMeans(words, init=start, n_init=1, max_iter=ROUNDS, tol=0, algorithm="lloyd")
    theirs = run("scikit-learn", lambda: peer.fit(rows).cluster_centers_, rows)
    print(f"{theirs[0] / ours[0]:.1f} times as fast in CPU time, inertia {ours[1] / theirs[1] - 1:+.2%}")


def run(name: str, work: Callable[[], FloatArray], rows: FloatArray) -> tuple[float, float]:
    cpu, wall = time.process_time(), time.perf_counter()
    centres = work()
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    inertia = float(faiss.knn(rows, np.ascontiguousarray(centres, np.float32), 1)[0].sum(dtype=np.float64))
    print(f"{name}: {cpu:.1f} s CPU, {wall:.1f} s, inertia {inertia:,.1f}", flush=True)
    return cpu, inertia


def find_rows(images: Path | None, count: int) -> FloatArray:
    if images is None:
        rng = np.random.default_rng(0)
        blobs = rng.gamma(0.5, size=(4 * 2000, 128))[rng.integers(0, 4 * 2000, count)]
        made = np.sqrt(blobs * rng.gamma(2, size=(count, 128)))
        return np.asarray(made / np.linalg.norm(made, axis=1, keepdims=True), np.float32)
    return np.asarray(sample_features([ImageList(images)], backbones.build("sift"), count, 0), np.float32)


def measure_query(database: int, words: int, exponent: float) -> None:
    shares = np.cumsum(1 / np.arange(1, words + 1) ** exponent)

    def draw(first: int, count: int) -> Descriptors:
        random = np.random.default_rng(first)
        drawn = np.searchsorted(shares, random.random((count, KEY_POINTS)) * shares[-1]).clip(max=words - 1)
        counts = np.bincount((drawn + words * np.arange(count)[:, None]).ravel(), minlength=count * words)
        held = np.flatnonzero(counts)
        names = tuple(f"{first + number:07}" for number in range(count))
        vectors = counts[held, None].astype(np.float32)
        return Descriptors(names, vectors, (held // words).astype(np.int32), words=(held % words).astype(np.int32))

    def chunks() -> Iterator[Descriptors]:
        return (draw(first, min(CHUNK, database - first)) for first in range(0, database, CHUNK))

    for distance in ("cosine", "l1", "chi2"):
        with tempfile.TemporaryDirectory() as scratch:
            searcher: Any = index.build("histogram", distance=distance).create(chunks, Path(scratch))
            times = []
            for number in range(20):
                query = draw(10 * database + number, 1)
                started = time.process_time()
                searcher.search(query, 20)
                times.append(1000 * (time.process_time() - started))
            size = sum(path.stat().st_size for path in Path(scratch).iterdir())
        told = f"median {np.median(times):.1f}, most {max(times):.1f} ms CPU a query, {size / 1e6:,.0f} MB"
        print(f"{database:,} images, {words:,} words, exponent {exponent:g}, {distance}: {told}", flush=True)


if __name__ == "__main__":
    main()
