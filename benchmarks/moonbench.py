"""Build MoonBench, describe its craters, and measure a table on each kind of query or on the tuning craters.

    python benchmarks/moonbench.py build ROOT [--crops FOLDER] [--queries 500]
    python benchmarks/moonbench.py sizes ROOT [--crops FOLDER]
    python benchmarks/moonbench.py kinds ROOT [--table directions] [--split tuning] [--cache FOLDER]

ROOT is the folder of the maps and catalogues that resight.data.sets.moonbench lists. `build` renders every crop of the
gallery and of the queries of both splits, and prints how long it took; whatever uses the data set afterwards finds
them. `sizes` prints how many craters there are by their width in map pixels. `kinds` prints the mean of each metric
over all queries and over those of each kind, for every experiment of a table of recipes/papers/moonbench. All print
JSON.
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
from resight.encode.feature_cache import FeatureCache, find_folder
from resight.evaluate.measure import load_dataset
from resight.evaluate.variants import measure_variants
from resight.recipe import parse
from resight.reproduce.experiments import list_experiments
from resight.reproduce.paper_table import load_table
from resight.types import Dataset

CACHE_BYTES = 50 * 10**9
EDGES = (2.5, 5.0, 10.0, 20.0, 40.0, float("inf"))  # of the bins of width, in map pixels


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=("build", "sizes", "kinds"))
    parser.add_argument("root", type=Path, help="folder of the maps and catalogues")
    parser.add_argument("--crops", type=Path, help="folder below which crops are rendered; default: the user's cache")
    parser.add_argument("--queries", type=int, default=500, help="craters per split that ask")
    parser.add_argument("--table", default="directions", help="of recipes/papers/moonbench, for `kinds`")
    parser.add_argument("--split", default="test", choices=("tuning", "test"), help="the craters that ask, for `kinds`")
    parser.add_argument("--cache", type=Path, default=find_folder(), help="folder of features and results, for `kinds`")
    options = parser.parse_args()
    if options.command == "kinds":
        found = measure_kinds(options.root, options.table, options.split, options.cache)
    else:
        command = build if options.command == "build" else count_sizes
        found = command(options.root, options.crops, options.queries)
    print(json.dumps(found, indent=1))


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


def measure_kinds(root: Path, name: str, split: str, cache: Path) -> dict[str, Any]:
    """Row of the table → kind of query → number of queries and the mean of each metric."""
    table = load_table(f"moonbench/{name}")
    overrides = ["data.split=tuning"] if split == "tuning" else []
    found: dict[str, Any] = {}
    for each in list_experiments(table, table.rows, overrides):
        recipe = parse({**each.table, "name": each.cells[0][0]})
        evaluation = measure_variants([recipe], load_dataset(recipe, root), cache=FeatureCache(cache, CACHE_BYTES))
        judged = evaluation.rows[0].summary.judged
        kinds = {"all": judged, **{kind: [q for q in judged if q.stratum == kind] for kind in ("light", "optical")}}
        found[recipe.name] = {
            kind: {"queries": len(part)}
            | {metric: round(sum(q.values[metric] for q in part) / len(part), 4) for metric in recipe.metrics}
            for kind, part in kinds.items()
            if part
        }
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
