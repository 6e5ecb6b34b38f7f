"""Build MoonBench, and describe its craters.

    python benchmarks/moonbench.py build ROOT [--crops FOLDER] [--queries 500]
    python benchmarks/moonbench.py sizes ROOT [--crops FOLDER]

ROOT is the folder of the maps and catalogues that resight.data.sets.moonbench lists. `build` renders every crop of the
gallery and of the queries of both splits, and prints how long it took; whatever uses the data set afterwards finds
them. `sizes` prints how many craters there are by their width in map pixels. Both print JSON.
"""

import argparse
import itertools
import json
import os
import time
from collections import Counter
from pathlib import Path
from typing import Any

from resight.data import sets
from resight.types import Dataset

EDGES = (2.5, 5.0, 10.0, 20.0, 40.0, float("inf"))  # of the bins of width, in map pixels


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=("build", "sizes"))
    parser.add_argument("root", type=Path, help="folder of the maps and catalogues")
    parser.add_argument("--crops", type=Path, help="folder below which crops are rendered; default: the user's cache")
    parser.add_argument("--queries", type=int, default=500, help="craters per split that ask")
    options = parser.parse_args()
    command = build if options.command == "build" else count_sizes
    print(json.dumps(command(options.root, options.crops, options.queries), indent=1))


def build(root: Path, crops: Path | None, queries: int) -> dict[str, Any]:
    """Render everything, and report what there is and how long it took."""
    wall, cpu = time.perf_counter(), time.process_time()
    loaded = load(root, crops, queries)
    test = loaded["test"]
    return {
        "seconds": round(time.perf_counter() - wall, 1),
        "cpu_seconds": round(time.process_time() - cpu, 1),
        "cores": os.cpu_count(),
        "gallery images": len(test.database),
        "craters": len({ref.attributes["label"] for ref in test.database}),
        "queries": {
            split: Counter(str(ref.attributes["set"]) for ref in each.queries) for split, each in loaded.items()
        },
        "megabytes": round(sum(ref.path.stat().st_size for ref in test.database) / 1e6),
        "folder": str(test.database[0].path.parent),
    }


def count_sizes(root: Path, crops: Path | None, queries: int) -> dict[str, Any]:
    """Craters, and craters that ask, by their width in map pixels."""
    found: dict[str, Any] = {}
    for split, dataset in load(root, crops, queries).items():
        gallery = {str(ref.attributes["label"]): ref for ref in dataset.database}
        asking = {str(ref.attributes["label"]): ref for ref in dataset.queries}
        found["gallery"], found[split] = _bin(gallery), _bin(asking)
    return found


def load(root: Path, crops: Path | None, queries: int) -> dict[str, Dataset]:
    settings: dict[str, Any] = {"queries": queries, **({"crops": crops} if crops else {})}
    return {split: sets.build("moonbench", split=split, **settings).load(root) for split in ("tuning", "test")}


def _bin(refs: dict[str, Any]) -> dict[str, int]:
    widths = [float(ref.attributes["map_pixels"]) for ref in refs.values()]
    pairs = itertools.pairwise(EDGES)
    return {f"{low:g} to {high:g}": sum(low <= width < high for width in widths) for low, high in pairs}


if __name__ == "__main__":
    main()
