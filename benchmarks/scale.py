"""The model of docs/guides/scale.md against measurements: made rows through the real store and the real index.

    python benchmarks/scale.py FOLDER [--images 10000] [--preset tokens] [--set index.keep=none] [--json FILE]

A probe of a few made pictures predicts bytes, and times by the processor, for so many images (collection/probing.py).
Then so many copies of what was encoded, each with noise of its own, are written to a collection in FOLDER, batch by
batch as `resight index` writes them; its index is built and asked. Needs about the store and the index in free disk.
"""

import argparse
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from resight import recipe as recipes
from resight.collection import Collection, open_collection
from resight.collection.add import LARGEST_BATCH
from resight.collection.plan.probe import COMMIT_BYTES, find_rates, make_pictures, probe
from resight.encode.encoder import Encoder
from resight.encode.extract import gather
from resight.store import ImageRecord, Record
from resight.types import Descriptors, Picture, Query

QUERIES = 20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--images", type=int, default=10_000)
    parser.add_argument("--preset", default="tokens")
    parser.add_argument("--set", dest="settings", action="append", default=[])
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    recipe = recipes.load(options.preset, options.settings)
    rates = find_rates(probe(recipe, None))
    collection = open_collection(options.folder, recipe)
    picture, rows = encode_one(collection)
    written = clock(lambda: write(collection, rows, options.images))
    built = clock(lambda: collection.view().searcher(0))
    query = Query("query", picture.size, (0, 0, *picture.size), rows)
    asked = min(clock(lambda: collection.view().searcher(0).search(query.descriptors[0], 100)) for _ in range(QUERIES))
    found = {
        "images": options.images,
        "store_bytes": (options.images * rates.store_bytes, count_bytes(options.folder / "images.lance")),
        "index_bytes": (options.images * rates.index_bytes, count_bytes(options.folder / "indexes")),
        "index_core_seconds": (options.images * rates.index_core_seconds, built[1]),
        "scan_core_seconds": (options.images * rates.scan_core_seconds, asked[1]),
        "write_seconds": (None, written[0]),
        "build_seconds": (None, built[0]),
        "scan_seconds": (None, asked[0]),
        "commit_bytes_assumed": COMMIT_BYTES,
    }
    print(json.dumps(found, indent=1))
    if options.json:
        options.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


def encode_one(collection: Collection) -> tuple[Picture, tuple[Descriptors, ...]]:
    picture = next(make_pictures())
    (rows,) = Encoder(collection.recipe.branches).encode([picture], "database")
    return picture, rows


def write(collection: Collection, rows: tuple[Descriptors, ...], count: int) -> None:
    for records in gather(make_records(rows, count), LARGEST_BATCH):
        collection._written.write(records)


def make_records(rows: tuple[Descriptors, ...], count: int) -> Iterator[Record]:
    generator = np.random.default_rng(1)
    for number in range(count):
        name = f"photos/{number:09d}.jpg"
        image = ImageRecord(name, Path("/") / name, f"{number:064x}", 300_000, number, (800, 600))
        yield Record(image, tuple(vary(row, name, generator) for row in rows))


def vary(row: Descriptors, name: str, generator: np.random.Generator) -> Descriptors:
    if row.vectors.dtype.kind != "f":
        return replace(row, ids=(name,))
    noise = 0.05 * generator.standard_normal(row.vectors.shape, np.float32)
    return replace(row, ids=(name,), vectors=(row.vectors + noise).astype(row.vectors.dtype))


def clock(work: Callable[[], object]) -> tuple[float, float]:
    """Seconds by the clock, and of the processor."""
    started, worked = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - started, time.process_time() - worked


def count_bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


if __name__ == "__main__":
    main()
