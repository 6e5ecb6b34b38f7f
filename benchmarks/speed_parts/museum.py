"""A query over the museum's paintings with verification of 30 candidates, against a plain OpenCV loop.

Features of the data base are read from the store. The peer has the same features in memory and does what one writes
with OpenCV alone (brute-force matcher, ratio test, findHomography), once over the same 30 candidates and once over all
images. Both include describing the query.
"""

import os
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import cv2
import numpy as np

from resight.collection import Collection, open_collection
from resight.data.sets import build as build_set
from resight.search.shortlist import shortlist
from resight.types import Dataset, FloatArray, Query
from speed_parts.real_tokens import TokenSet
from speed_parts.results import Part, Row

CANDIDATES = 30
QUERIES = 30
Local = tuple[FloatArray, FloatArray]  # descriptors [n, 128], points [n, 2]


def measure(small: bool, real: TokenSet | None) -> Part:  # noqa: ARG001 - it works on photographs, not on tokens
    if "RESIGHT_DATA" not in os.environ:
        print("(museum is left out: RESIGHT_DATA is not set)")
        return Part(())
    cv2.setNumThreads(1)
    dataset = build_set("museum").load(Path(os.environ["RESIGHT_DATA"]) / "museum")
    with tempfile.TemporaryDirectory() as scratch:
        collection = open_collection(Path(scratch) / "museum.resight", "sift")
        collection.add(dataset.database)
        return measure_queries(collection, dataset, 5 if small else QUERIES)


def measure_queries(collection: Collection, dataset: Dataset, count: int) -> Part:
    queries = [ref for ref in dataset.queries if dataset.judgements[ref.id].grades]
    queries = queries[:: max(len(queries) // count, 1)][:count]
    images = load_all(collection)
    collection.search(queries[0], k=1)  # opens the index and warms the caches of both sides
    stages = collection.view().pipeline
    ours: list[float] = []
    short: list[float] = []
    whole: list[float] = []
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
        candidates = shortlist(query, stages.shortlisters, stages.fusion, CANDIDATES, None).ids
        for times, names, label in ((short, candidates, "loop over 30"), (whole, list(images), "loop over all")):
            started = time.process_time()
            best = loop(local_of(query), images, names)
            times.append(describing + time.process_time() - started)
            right[label] += best in truth
    rows = []
    for label, times in (("loop over 30", short), ("loop over all", whole)):
        ratio = statistics.median(theirs / own for theirs, own in zip(times, ours, strict=True))
        answers = f"right at rank 1: ours {right['ours'] / len(queries):.2f}, peer {right[label] / len(queries):.2f}"
        rows.append(Row(f"query over {len(images)} paintings", "photos", f"OpenCV {label}", ratio, None, answers))
    return Part(tuple(rows), (), {"ours, CPU ms a query": 1000 * statistics.median(ours)})


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
    return np.asarray(rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-6), np.float32)
