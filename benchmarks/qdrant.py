"""What a collection costs in Qdrant, and whether it answers the same: `python benchmarks/qdrant.py FOLDER`.

In: how many images, of 32 made-up tokens each: directions around 50 themes, so that images are alike in parts. Out: a
line of JSON for resight's own exact search, and for Edge and the client's local mode with two lengths S of the
shortlist that is put in order by tokens: time of export and query (an image's tokens with noise), the share of queries
whose first answer, and whose ten answers in their order, are those of resight, and the share of the ten that are.
"""

import argparse
import json
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import resight
from resight.collection import Collection
from resight.collection.qdrant.connect import open_folder
from resight.collection.qdrant.exported_search import ask_export
from resight.collection.qdrant.sync import export
from resight.index.qdrant_backend.backend import Backend
from resight.search.request import SearchRequest
from resight.store import ImageRecord, Record
from resight.types import Descriptors, Query

TOKENS, THEMES, K, BATCH, SHORTLIST = 32, 50, 10, 250, 1000
RECIPE = """
index = { name = "maxsim", kind = "int8" }

[[branches]]
encoder = { name = "efficientnet_lite", variant = "lite2", block = 16, size = 256 }
descriptor = { name = "aggregated", k = 32 }
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--images", type=int, default=5000)
    parser.add_argument("--queries", type=int, default=20)
    options = parser.parse_args()
    shutil.rmtree(options.folder, ignore_errors=True)
    options.folder.mkdir(parents=True)
    rng = np.random.default_rng(0)
    collection = make_collection(options.folder, options.images, rng)
    queries = [make_query(collection, number, rng) for number in rng.choice(options.images, options.queries, False)]
    own, expected = time_queries(lambda query: collection.ask(query, K).ranking.ids, queries)
    print(json.dumps({"where": "resight", "ms a query": own}), flush=True)
    for kind in ("edge", "local"):
        place = open_folder(options.folder / kind, "made", edge=kind == "edge")
        for shortlist in (SHORTLIST, options.images):  # the second time, nothing but the mark is written
            measure(collection, place, shortlist, queries, expected)
        place.close()
        size = sum(file.stat().st_blocks * 512 for file in (options.folder / kind).rglob("*") if file.is_file())
        print(json.dumps({"where": kind, "MB on disk": size // 10**6}), flush=True)


def measure(
    collection: Collection, place: Backend, shortlist: int, queries: list[Query], expected: list[tuple[str, ...]]
) -> None:
    start = time.perf_counter()
    report = export(collection, place, shortlist)
    seconds = round(time.perf_counter() - start, 1)
    middle, found = time_queries(
        lambda query: ask_export(collection, place, SearchRequest(query, K)).ranking.ids, queries
    )
    pairs = list(zip(found, expected, strict=True))
    row = {
        "where": report.where,
        "sent": report.sent,
        "export s": seconds,
        "S": shortlist,
        "ms a query": middle,
        "same first": sum(one[0] == other[0] for one, other in pairs) / len(pairs),
        "same ten": sum(one == other for one, other in pairs) / len(pairs),
        "of the ten": sum(len({*one} & {*other}) for one, other in pairs) / K / len(pairs),
    }
    print(json.dumps(row), flush=True)


def make_collection(folder: Path, images: int, rng: np.random.Generator) -> Collection:
    (folder / "made.toml").write_text(RECIPE)
    collection = resight.open(folder / "made.resight", folder / "made.toml")
    (layout,) = collection.view().layout
    themes = rng.normal(size=(THEMES, layout.dim))
    for start in range(0, images, BATCH):
        records = []
        for number in range(start, min(start + BATCH, images)):
            tokens = themes[rng.integers(THEMES, size=TOKENS)] + rng.normal(size=(TOKENS, layout.dim))
            name = f"{number:06}"
            attributes = {"year": 1900 + number % 100, "lat": number / images, "lon": 2.0}
            record = ImageRecord(name, folder / name, name, 0, 0, (640, 480), attributes)
            records.append(Record(record, (describe(name, tokens, layout.space),)))
        collection._written.write(records)
    return collection


def describe(name: str, tokens: np.ndarray, space: str) -> Descriptors:
    rows = (tokens / np.linalg.norm(tokens, axis=1, keepdims=True)).astype(np.float32)
    boxes = np.tile(np.array([[0, 0, 640, 480]], np.float32), (len(rows), 1))
    return Descriptors((name,), rows, np.zeros(len(rows), np.int32), boxes, space=space)


def make_query(collection: Collection, number: int, rng: np.random.Generator) -> Query:
    (rows,) = collection.descriptors(0, [f"{number:06}"])
    noise = rng.normal(size=rows.vectors.shape) / np.sqrt(rows.vectors.shape[1])
    seen = describe("query", rows.vectors + 1.5 * noise, rows.space)
    return Query("query", (640, 480), (0.0, 0.0, 640.0, 480.0), (seen,))


def time_queries(ask: Callable[[Query], tuple[str, ...]], queries: list[Query]) -> tuple[float, list[tuple[str, ...]]]:
    """The median time in ms after one query to warm up, and the answers."""
    ask(queries[0])
    times, answers = [], []
    for query in queries:
        start = time.perf_counter()
        answers.append(ask(query))
        times.append(time.perf_counter() - start)
    return round(1000 * float(np.median(times)), 1), answers


if __name__ == "__main__":
    main()
