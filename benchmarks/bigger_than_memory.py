"""Late interaction over more tokens than memory holds: building, quality and time, with and without a limit on memory.

    export RESIGHT_DATA=…                                      # moon and gardenspoint are used
    python benchmarks/bigger_than_memory.py build WORK --images 1000000 --limit 4     # GiB; 0: none
    python benchmarks/bigger_than_memory.py quality WORK --images 1000000             # against every image compared
    python benchmarks/bigger_than_memory.py time WORK --images 1000000 --limit 4

WORK is a folder for the tokens of the real images and the index: 12.7 GB for a million. The index is that of the recipe
`large`: residual codes of all images choose S, whose 8-bit tokens are then compared. The data base is made from real
tokens (bigger_parts/distractors.py); queries and truth are real. It measures search, not encoders.
"""

import argparse
import contextlib
import json
import os
import shutil
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
from bigger_parts.distractors import Million, describe, name_real
from bigger_parts.limit import Limit, forget, measure_anonymous
from bigger_parts.real import Real, load
from numpy.typing import NDArray

from resight import kernels, recipe
from resight.index import maxsim
from resight.types import Descriptors, FloatArray, IntArray

SHORTLISTS = (1000, 2000, 4000, 8000, 16000)
K = 10


def main() -> None:
    options = read_options()
    real = load(Path(os.environ.get("RESIGHT_DATA", "")), options.work / "real.npz")
    folder = options.work / f"index_{options.images}"
    step = {"build": build, "quality": compare, "time": clock}[options.step]
    limit = Limit(int(options.limit * 2**30)) if options.limit else contextlib.nullcontext()
    with limit:
        step(real, folder, options)
        if isinstance(limit, Limit):
            print(limit.tell(), flush=True)


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("step", choices=("build", "quality", "time"))
    parser.add_argument("work", type=Path)
    parser.add_argument("--images", type=int, default=10_000)
    parser.add_argument("--limit", type=float, default=0.0, help="GiB of memory; 0: no limit")
    parser.add_argument("--queries", type=int, default=100)
    parser.add_argument(
        "--shortlist", type=int, default=0, help="images that get through the first pass; 0: as in the recipe"
    )
    return parser.parse_args()


def configure(shortlist: int = 0) -> maxsim.Config:
    config = maxsim.Config(**recipe.load("large").index.settings)
    return replace(config, cascade_keep=(shortlist, min(shortlist, config.cascade_keep[1]))) if shortlist else config


def build(real: Real, folder: Path, options: argparse.Namespace) -> None:
    """Straight into the codes: there is no float32 copy of the tokens."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    start, cpu = time.perf_counter(), time.process_time()
    maxsim.build(configure()).create(Million(real.database, options.images).chunks, folder)
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    seconds, busy = time.perf_counter() - start, time.process_time() - cpu
    print(
        f"build: {options.images:,} images, {seconds:.0f} s ({busy:.0f} s of CPU), {size / 1e9:.2f} GB on disk",
        flush=True,
    )


def compare(real: Real, folder: Path, options: argparse.Namespace) -> None:
    """What two stages keep of the R@10 that comparing every image has, and of its top ten."""
    packed, small, rows = kernels.open(folder / "pack"), kernels.open(folder / "small"), find_real(folder)
    exact_hits, seconds = [], []
    hits: dict[int, list[bool]] = {size: [] for size in SHORTLISTS}
    inside: dict[int, list[float]] = {size: [] for size in SHORTLISTS}
    for tokens, positives in choose(real, options.queries):
        start = time.process_time()
        scores = packed.scores(tokens)
        seconds.append(time.process_time() - start)
        best = np.argsort(-scores, kind="stable")[:K]
        good = rows[positives]
        exact_hits.append(bool(np.isin(best, good).any()))
        order = np.argsort(-small.scores(tokens), kind="stable")
        for size in SHORTLISTS:
            chosen = np.sort(order[:size])
            found = chosen[np.argsort(-scores[chosen], kind="stable")[:K]]
            hits[size].append(bool(np.isin(found, good).any()))
            inside[size].append(float(np.isin(best, chosen).mean()))
    exact = float(np.mean(exact_hits))
    print(
        f"every image compared: R@10 {exact:.3f}, {1000 * np.median(seconds):.0f} ms of CPU ({len(exact_hits)} queries)"
    )
    for size in SHORTLISTS:
        share = float(np.mean(hits[size])) / exact
        print(
            f"S = {size:6,}: R@10 {np.mean(hits[size]):.3f} ({share:.3f} of it), "
            f"{np.mean(inside[size]):.3f} of the top ten"
        )


def clock(real: Real, folder: Path, options: argparse.Namespace) -> None:
    """Cold: nothing of the index is in memory. Then the same kinds of queries over and over."""
    forget(folder)
    start = time.perf_counter()
    searcher = maxsim.build(configure(options.shortlist)).open(folder)
    print(f"opened in {time.perf_counter() - start:.1f} s, {measure_anonymous():.2f} GiB anonymous", flush=True)
    queries = [describe(["query"], tokens[None]) for tokens, _ in choose(real, options.queries)]
    ask(searcher, queries[:1], "first query, cold")
    half = len(queries) // 2
    ask(searcher, queries[1:half], "queries while memory fills")
    ask(searcher, queries[half:], "further queries, each for the first time")
    ask(searcher, queries[half:], "the same once more")
    print(f"{measure_anonymous():.2f} GiB anonymous", flush=True)


def ask(searcher: maxsim.MaxSimSearcher, queries: list[Descriptors], what: str) -> None:
    wall, cpu = [], []
    for query in queries:
        start, busy = time.perf_counter(), time.process_time()
        searcher.search(query, K)
        wall.append(1000 * (time.perf_counter() - start))
        cpu.append(1000 * (time.process_time() - busy))
    print(
        f"{what} ({len(queries)}): wall median {np.median(wall):.0f} ms, 95 % {np.percentile(wall, 95):.0f} ms; "
        f"CPU median {np.median(cpu):.0f} ms",
        flush=True,
    )


def choose(real: Real, count: int) -> list[tuple[FloatArray, NDArray[np.bool_]]]:
    """Queries of both sets alike."""
    chosen = np.linspace(0, len(real.queries) - 1, min(count, len(real.queries))).astype(int)
    return [(real.queries[number], real.positives[number]) for number in chosen]


def find_real(folder: Path) -> IntArray:
    """Rows of the real images: ids are sorted, and so the made-up ones come first."""
    ids = json.loads((folder / "images.json").read_text(encoding="utf-8"))["ids"]
    first = ids.index(name_real(0))
    return np.arange(first, len(ids))


if __name__ == "__main__":
    main()
