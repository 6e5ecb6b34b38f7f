"""Speed as a ratio against a peer in the same run: CPU time of one process, one thread each, answers compared.

    RESIGHT_DATA=FOLDER python benchmarks/speed.py [--queries 30] [--json FILE]

Row 1: one query over the 287 paintings of the museum set, verification of 30 candidates, features of the data base
read from the store; the peer is a plain OpenCV loop over the same features (brute-force matcher, ratio test,
findHomography), once over the same 30 candidates and once over all images. Both include describing the query.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from resight.collection import Collection, open_collection
from resight.data.sets import build as build_set
from resight.search.pipeline import shortlist
from resight.types import Dataset, FloatArray, Query

CANDIDATES = 30
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
Local = tuple[FloatArray, FloatArray]  # descriptors [n, 128], points [n, 2]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--queries", type=int, default=30)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    if not ONE_THREAD.items() <= os.environ.items():  # numpy reads them when it is loaded: start again with them set
        os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, **ONE_THREAD})
    cv2.setNumThreads(1)
    dataset = build_set("museum").load(Path(os.environ["RESIGHT_DATA"]) / "museum")
    with tempfile.TemporaryDirectory() as scratch:
        collection = open_collection(Path(scratch) / "museum.resight")
        collection.add(dataset.database)
        figures = measure(collection, dataset, options.queries)
    for name, value in figures.items():
        print(f"{name:<46} {value:.4g}" if isinstance(value, float) else f"{name:<46} {value}")
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")


def measure(collection: Collection, dataset: Dataset, count: int) -> dict[str, Any]:
    queries = [ref for ref in dataset.queries if dataset.judgements[ref.id].grades]
    queries = queries[:: max(len(queries) // count, 1)][:count]
    images = load_all(collection)
    collection.search(queries[0], k=1)  # opens the index and warms the caches of both sides
    ours, short, whole = [], [], []
    right = {"ours": 0, "loop over 30": 0, "loop over all": 0}
    for ref in queries:
        truth = set(dataset.judgements[ref.id].grades)
        started = time.process_time()
        best = collection.search(ref, k=10)[0].id
        ours.append(time.process_time() - started)
        right["ours"] += best in truth

        started = time.process_time()
        query = collection.encode_query(ref)
        describing = time.process_time() - started
        candidates = shortlist(query, collection.pipeline.shortlisters, CANDIDATES, None).ids
        for times, names, label in ((short, candidates, "loop over 30"), (whole, list(images), "loop over all")):
            started = time.process_time()
            best = loop(local_of(query), images, names)
            times.append(describing + time.process_time() - started)
            right[label] += best in truth
    return {
        "queries": len(queries),
        "images": len(images),
        "ours, CPU ms a query": 1000 * statistics.median(ours),
        "OpenCV loop over the same 30, CPU ms": 1000 * statistics.median(short),
        "OpenCV loop over all, CPU ms": 1000 * statistics.median(whole),
        "ratio to the loop over 30 (median)": statistics.median(b / a for a, b in zip(ours, short, strict=True)),
        "ratio to the loop over all (median)": statistics.median(b / a for a, b in zip(ours, whole, strict=True)),
        **{f"right at rank 1, {name}": value / len(queries) for name, value in right.items()},
    }


def loop(query: Local, images: dict[str, Local], names: Sequence[str]) -> str:
    """What one writes with OpenCV alone: the image with the most RANSAC inliers."""
    matcher = cv2.BFMatcher(cv2.NORM_L2)
    inliers = {}
    for name in names:
        descriptors, points = images[name]
        pairs = matcher.knnMatch(query[0], descriptors, 2)
        good = [pair[0] for pair in pairs if len(pair) == 2 and pair[0].distance < 0.8 * pair[1].distance]
        inliers[name] = 0
        if len(good) >= 4:
            source = query[1][[match.queryIdx for match in good]]
            target = points[[match.trainIdx for match in good]]
            _, mask = cv2.findHomography(source, target, cv2.RANSAC, 5.0)
            inliers[name] = 0 if mask is None else int(mask.sum())
    return max(inliers, key=lambda name: inliers[name])


def load_all(collection: Collection) -> dict[str, Local]:
    """The peer has its features in memory already, in the form it wants."""
    images: dict[str, Local] = {}
    for chunk in collection.descriptors(1):
        assert chunk.points is not None
        for number, name in enumerate(chunk.ids):
            rows = chunk.owners == number
            images[name] = (unit(chunk.vectors[rows]), chunk.points[rows, :2])
    return images


def local_of(query: Query) -> Local:
    rows = query.descriptors[1]
    assert rows.points is not None
    return unit(rows.vectors), rows.points[:, :2]


def unit(vectors: np.ndarray) -> FloatArray:
    rows = vectors.astype(np.float32)
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-6)


if __name__ == "__main__":
    main()
