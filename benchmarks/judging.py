"""How long it takes to judge rankings of a million images, and how much memory: one ranking after another.

    python benchmarks/judging.py [--queries 1000] [--images 1000000] [--positives 50] [--run-figures] [--json FILE]

Each query has as many easy positives, hard positives and ignored images as --positives says. Rankings are random, made
one at a time from the query's number, and judged by revisited and other metrics under three protocols. Making them is
timed too, and taken off. --run-figures adds uap, for which all rankings are made twice more. Peak memory is that of the
process, numpy and the rankings in hand included.
"""

import argparse
import json
import resource
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from resight.evaluate.judge_runs import judge_rankings
from resight.types import Judgement

SINGLE = ["ap", "ap@20", "recall@10", "recall_fraction@10", "precision@10"]
METRICS = SINGLE + [
    f"{protocol}/{metric}"
    for protocol in ("easy", "medium", "hard")
    for metric in ("ap_trapezoid", "precision_revisited@1", "precision_revisited@5", "precision_revisited@10")
]
BARS = {"seconds": 60.0, "gibibytes": 2.0}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--queries", type=int, default=1000)
    parser.add_argument("--images", type=int, default=1_000_000)
    parser.add_argument("--positives", type=int, default=50)
    parser.add_argument("--run-figures", action="store_true")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    rankings = Rankings(options.queries, options.images)
    judgements = {
        str(query): draw_judgement(query, options.images, options.positives) for query in range(options.queries)
    }
    names = METRICS + (["uap"] if options.run_figures else [])
    started, cpu_started = time.perf_counter(), time.process_time()
    judged = judge_rankings(rankings, judgements, names, np.random.default_rng(0))
    whole = time.perf_counter() - started
    cpu = time.process_time() - cpu_started
    figures = {
        "queries": options.queries,
        "images": options.images,
        "metrics": len(names),
        "seconds": round(whole - sum(rankings.seconds), 1),
        "cpu_seconds": round(cpu - sum(rankings.cpu_seconds), 1),
        "seconds_with_making_the_rankings": round(whole, 1),
        "gibibytes": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20, 2),
        "bars": BARS,
        "medium_ap_trapezoid": judged.figures["medium/ap_trapezoid"].value,
    }
    print(json.dumps(figures, indent=1))
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1), encoding="utf-8")


@dataclass(frozen=True)
class Rankings:
    """Random rankings of rows, generated again on each iteration."""

    queries: int
    images: int
    seconds: list[float] = field(default_factory=list)  # that each took to make
    cpu_seconds: list[float] = field(default_factory=list)

    def __iter__(self) -> Iterator[tuple[str, NDArray[np.int64], NDArray[np.float64]]]:
        for query in range(self.queries):
            started, cpu_started = time.perf_counter(), time.process_time()
            generator = np.random.default_rng(query)
            rows = generator.permutation(self.images)
            scores = np.linspace(1.0, 0.0, self.images) * generator.uniform(0.5, 1.0)
            self.seconds.append(time.perf_counter() - started)
            self.cpu_seconds.append(time.process_time() - cpu_started)
            yield str(query), rows, scores


def draw_judgement(query: int, images: int, count: int) -> Judgement:
    """Rows as ids: grade 2, grade 1 and ignored, `count` of each."""
    rows = np.random.default_rng([query, 1]).choice(images, size=3 * count, replace=False).tolist()
    grades = {row: 2 if number < count else 1 for number, row in enumerate(rows[: 2 * count])}
    return Judgement(grades, frozenset(rows[2 * count :]))


if __name__ == "__main__":
    main()
