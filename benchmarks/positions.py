"""Figures of docs/guides/places.md: how good the estimate of a position is, and what a sequence adds to single frames.

    RESIGHT_DATA=FOLDER python benchmarks/positions.py [--preset NAME]… [--json FILE]

FOLDER holds `halensee/` (67 photos of one walk in 157 of another: positions) and `gardenspoint/` (200 frames by night
in 200 by day: order). Halensee's own database asks too, each photo among the others: on that, with a look at the 67
photos, the constants of `search/position.py` were chosen. Errors are great-circle metres to the true position.
"""

import argparse
import json
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from resight.collection import Collection, open_collection
from resight.data import sets
from resight.geodesy import metres_between
from resight.search.pipeline import search
from resight.search.position import estimate_position
from resight.search.sequences import Config, match_sequences
from resight.search.tracking import track
from resight.types import Dataset, ImageRef, PositionEstimate, Ranking

PRESETS = ("tokens", "products", "sift_tokens")
WINDOWS = (1, 5, 10, 20)
SPEEDS = {"0.8 to 1.25": Config(), "1, as it is": Config(slowest=1, fastest=1, speeds=1)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--preset", choices=PRESETS, action="append")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    root = Path(os.environ["RESIGHT_DATA"])
    figures: list[dict[str, Any]] = []
    for preset in options.preset or PRESETS:
        figures += measure_positions(preset, sets.build("halensee").load(root))
        figures += measure_sequences(preset, sets.build("gardens_point").load(root))
    for figure in figures:
        print(", ".join(f"{name} {value}" for name, value in figure.items()))
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")


def measure_positions(preset: str, dataset: Dataset) -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as scratch:
        collection = make_collection(Path(scratch), preset, dataset)
        positions = collection.view().positions()
        walk = [rank(collection, ref) for ref in dataset.queries]
        ids = frozenset(ref.id for ref in dataset.database)
        others = [rank(collection, ref, ids - {ref.id}) for ref in dataset.database]
    single = [estimate_position(ranking, positions) for ranking in walk]
    return [
        {"preset": preset, "asked": "single photos", **judge(single, dataset.queries)},
        {"preset": preset, "asked": "a sequence", **judge(list(track(walk, positions)), dataset.queries)},
        {
            "preset": preset,
            "asked": "the database itself",
            **judge([estimate_position(ranking, positions) for ranking in others], dataset.database),
        },
    ]


def judge(estimates: Sequence[PositionEstimate | None], truth: Sequence[ImageRef]) -> dict[str, Any]:
    found = [estimate for estimate in estimates if estimate is not None]
    assert len(found) == len(truth)
    errors = np.array(
        [
            metres_between(estimate.lat, estimate.lon, [ref.attributes["lat"]], [ref.attributes["lon"]])[0]
            for estimate, ref in zip(found, truth, strict=True)
        ]
    )
    known = np.array([estimate.known for estimate in found])
    inside = errors <= np.array([estimate.metres for estimate in found])
    return {
        "photos": len(found),
        "median error": round(float(np.median(errors)), 1),
        "within 25 m": round(float((errors <= 25).mean()), 3),
        "inside the circle": round(float(inside.mean()), 3),
        "known": int(known.sum()),
        "known: median error": round(float(np.median(errors[known])), 1),
        "known: inside the circle": round(float(inside[known].mean()), 3),
        "known: median radius": round(float(np.median([e.metres for e in found if e.known])), 0),
        "known: within 50 m": round(float((errors[known] <= 50).mean()), 3),
        "known: mean probability": round(float(np.mean([e.probability for e in found if e.known])), 3),
        "unknown: within 50 m": round(float((errors[~known] <= 50).mean()), 3),
    }


def measure_sequences(preset: str, dataset: Dataset) -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as scratch:
        collection = make_collection(Path(scratch), preset, dataset)
        frames = [rank(collection, ref) for ref in dataset.queries]
    order = [ref.id for ref in dataset.database]
    rows = []
    for speed, config in SPEEDS.items():
        for window in WINDOWS:
            wanted = Config(window, config.slowest, config.fastest, config.speeds)
            found = match_sequences(frames, order, wanted)
            right = [ranking.ids[0] in dataset.judgements[ranking.query_id].grades for ranking in found]
            rows.append({"preset": preset, "speed": speed, "window": window, "R@1": round(float(np.mean(right)), 3)})
    return rows


def make_collection(folder: Path, preset: str, dataset: Dataset) -> Collection:
    collection = open_collection(folder / "database.resight", preset)
    collection.add(dataset.database)
    return collection


def rank(collection: Collection, ref: ImageRef, allowed: frozenset[str] | None = None) -> Ranking:
    return search(collection.encode_query(ref), collection.view().pipeline, len(collection), allowed, by_tokens=0)


if __name__ == "__main__":
    main()
