"""Planted leaks: 150 photos of a museum against 287 paintings among 2,000 other images. Prints what an audit finds.

    RESIGHT_DATA=FOLDER python benchmarks/audit.py [WORK]

TRAIN: each painting (a class of its own), the 600 frames of Gardens Point (a class a frame number), 1,400 crops of the
Moon. EVAL: the photos. A true pair is a photo and a painting that hangs in it; every other pair is false, also one of a
photo in which a painting hangs that nobody has named. WORK keeps the collections for the next run.
"""

import argparse
import csv
import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from resight.audit.leaks.find_leaks import LEAST, decide
from resight.audit.leaks.overlap import find_overlap
from resight.audit.leaks.sources import open_source
from resight.data import sets
from resight.encode.feature_cache import FeatureCache, find_folder
from resight.types import Dataset

CRATERS = 1400
Pairs = set[tuple[str, str]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work", type=Path, nargs="?")
    given = parser.parse_args()
    data = Path(os.environ["RESIGHT_DATA"])
    with tempfile.TemporaryDirectory() as scratch:
        work = given.work or Path(scratch)
        work.mkdir(parents=True, exist_ok=True)
        museum = sets.build("museum").load(data)
        write_manifest(list_train(data, museum), work / "train.csv")
        write_manifest(((ref.id, ref.path, "") for ref in museum.queries), work / "eval.csv")
        cache = FeatureCache(find_folder(), 4 * 10**9)
        started = time.perf_counter()
        train, _ = open_source(work / "train.csv", work / "train.resight", None, cache=cache)
        evaluation, _ = open_source(work / "eval.csv", work / "eval.resight", None, cache=cache)
        indexed = time.perf_counter()
        overlap = find_overlap(train, evaluation)
        print(
            f"{len(train):,} training images, {len(evaluation):,} evaluation images: indexed in "
            f"{indexed - started:.0f} s, audited in {time.perf_counter() - indexed:.0f} s"
        )
    truth = {(query, name) for query, judgement in museum.judgements.items() for name in judgement.grades}
    pairs = [leak.pair for leak in overlap.leaks]
    listed = {(pair.a, pair.b) for pair in pairs}
    found = len(truth & listed)
    print(f"{len(pairs):,} pairs listed; of {len(truth)} true pairs {found} ({found / len(truth):.1%})")
    doubtful = frozenset((leak.pair.a, leak.pair.b) for leak in overlap.leaks if leak.doubt)
    print("without votes, by probability:     and where doubtful ones count too:")
    print("least  confirmed  true  false      confirmed  true  false")
    for least in sorted({0.5, 0.8, 0.9, 0.95, 0.99, LEAST}):
        cells = [f"{least:5.2f}"]
        for left_out in (doubtful, frozenset[tuple[str, str]]()):
            confirmed = {(pair.a, pair.b) for pair in decide(pairs, (), least, left_out).confirmed}
            cells.append(f"  {len(confirmed):9}  {len(confirmed & truth):4}  {len(confirmed - truth):5}")
        print("    ".join(cells))
    for pair in decide(pairs, (), LEAST, doubtful).confirmed:
        if (pair.a, pair.b) not in truth:
            print(f"false: {pair.a} {pair.b}")


def list_train(data: Path, museum: Dataset) -> Iterator[tuple[str, Path, str]]:
    """id, path, class"""
    for ref in museum.database:
        yield ref.id, ref.path, ref.id
    for path in sorted((data / "gardenspoint").glob("*/*.jpg")):
        yield f"walk/{path.parent.name}/{path.name}", path, f"walk {path.stem}"
    moon = sets.build("moon").load(data)
    for ref in moon.database[:CRATERS]:
        yield f"moon/{ref.id}", ref.path, f"moon {ref.attributes.get('label', ref.id)}"


def write_manifest(rows: Iterator[tuple[str, Path, str]], path: Path) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file)
        table.writerow(("id", "path", "label"))
        table.writerows(rows)


if __name__ == "__main__":
    main()
