"""How presets do on the test halves of all shared sets, whose tuning halves the probabilities were fitted on.

    RESIGHT_DATA=FOLDER python benchmarks/presets.py [--preset NAME]… [--most 100] [--json FILE] [--work FOLDER]

Of each set and preset: R@1 with its 95 % interval (bootstrap over queries); AUC, how well the probability of the first
answer tells a query whose answer is in the database from one whose answer was taken out; ECE of the first answer's
probability over both (ten bins of equal count); and the CPU time of a query in its own thread.
"""

import argparse
import json
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from preset_parts.halves import Half, load_halves

from resight.collection import open_collection
from resight.collection.view import View
from resight.evaluate.statistics.reliability import auc, expected_calibration_error
from resight.search.pipeline import search
from resight.search.request import SearchRequest

PRESETS = ("sift_tokens", "products", "sift", "tokens")
DRAWS = 2000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--preset", action="append", help="recipe; may be given several times")
    parser.add_argument("--half", default="test", choices=("tuning", "test"))
    parser.add_argument("--most", type=int, help="queries per set; default: all of the half")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--work", type=Path, help="folder for the collections, kept; default: a temporary one")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        work = options.work or Path(scratch)
        found = [
            {"preset": preset, "set": half.name, **measure(preset, half, work)}
            for preset in options.preset or PRESETS
            for half in load_halves(options.half, options.most)
        ]
    if options.json:
        options.json.write_text(json.dumps(found, indent=1))


def measure(preset: str, half: Half, work: Path) -> dict[str, Any]:
    collection = open_collection(work / f"{Path(preset).stem} {half.name}.resight", preset)
    collection.add(list(half.dataset.database))
    view = collection.view()
    right, seconds = [], 0.0
    known: list[float] = []
    unknown: list[float] = []
    for ref in half.queries:
        start = time.thread_time()
        query = view.encode_query(SearchRequest(ref))
        image, chance = first(view, query, frozenset(view_ids(half)) - half.ignored(ref))
        seconds += time.thread_time() - start
        right.append(image in half.positives(ref))
        known.append(chance)
        unknown.append(first(view, query, half.unlike(ref))[1])
    figures = {
        "queries": len(right),
        "recall@1": float(np.mean(right)),
        "interval": interval(np.array(right, float)),
        "auc": auc(known, unknown),
        "ece": expected_calibration_error([*known, *unknown], [*right, *[False] * len(unknown)]),
        "milliseconds": 1000 * seconds / len(right),
    }
    print(
        f"{preset:14} {half.name:13} {len(right):4} R@1 {figures['recall@1']:.3f} "
        f"[{figures['interval'][0]:.3f}, {figures['interval'][1]:.3f}] AUC {figures['auc']:.3f} "
        f"ECE {figures['ece']:.3f} {figures['milliseconds']:.0f} ms",
        flush=True,
    )
    return figures


def first(view: View, query: Any, allowed: frozenset[str]) -> tuple[str, float]:
    """The first answer among `allowed`, and its probability."""
    ranking = search(query, view.pipeline, 1, allowed, by_tokens=0)
    return ranking.ids[0], ranking.probabilities.get(ranking.ids[0], 0.0)


def view_ids(half: Half) -> list[str]:
    return [ref.id for ref in half.dataset.database]


def interval(right: np.ndarray) -> tuple[float, float]:
    draws = np.random.default_rng(0).choice(right, (DRAWS, len(right))).mean(axis=1)
    low, high = np.percentile(draws, (2.5, 97.5))
    return float(low), float(high)


if __name__ == "__main__":
    main()
