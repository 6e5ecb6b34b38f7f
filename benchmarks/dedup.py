"""How well copies are found: `resight dedup` beside perceptual hashes and an embedding, on the same images.

    RESIGHT_DATA=… python benchmarks/dedup.py FOLDER [--second]     makes images and a collection there, once

200 originals, 12 copies of each (dedup_parts/copies.py) and 500 other pictures. Recall: the share of the 2,400 pairs of
an original and its copy that are listed. Precision: the share of listed pairs of one picture, of all pairs listed,
those of two copies of one original too. The peers' thresholds are those with the best recall at a precision of 0.99,
chosen with the truth in hand, and those that they come with; that of resight is its default, 0.5. Peers that are not
installed are left out.
"""

import argparse
import csv
import sys
import time
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from dedup_parts.copies import WAYS
from dedup_parts.peers import Pairs, list_peers
from dedup_parts.pictures import make, tell

from resight.audit.dedup.branches import choose_branches, pool
from resight.audit.dedup.find_duplicates import Report, Settings, find_duplicates
from resight.audit.dedup.pairs import write_pairs
from resight.collection import Collection, open_collection

PRECISION = 0.99


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("folder", type=Path)
    options.add_argument("--second", action="store_true", help="copies of other originals, see dedup_parts/pictures.py")
    given = options.parse_args()
    folder = given.folder
    if not (folder / "pictures").is_dir():
        make(folder / "pictures", given.second)
    collection = open_collection(folder / "pictures.resight")
    collection.add(folder / "pictures")
    ids = [record.id for record in collection.records()]
    started = time.perf_counter()
    report = find_duplicates(collection, settings=Settings(), work=folder / "work", progress=show)
    print(f"\n{len(ids)} images, {report.candidates} candidates verified, {time.perf_counter() - started:.0f} s")
    write_pairs(report.pairs, folder / "pairs.csv")
    tables = {"resight dedup": measure(((pair.a, pair.b) for pair in report.pairs), ids)}
    tables |= {f"{kind} alone": measure(_of_kind(report, kind), ids) for kind in ("near_copy",)}
    for name, pairs in list_peers(folder / "pictures", ids, embed(collection, ids)):
        tables[name] = measure(choose(pairs, ids), ids)
        if pairs.usual is not None:
            listed = pairs.rows[pairs.scores >= pairs.usual].tolist()
            tables[f"{name}, as it comes"] = measure(((ids[a], ids[b]) for a, b in listed), ids)
    print_table(tables)
    print_groups(report)


Row = dict[str, float]


def measure(pairs: Iterable[tuple[str, str]], ids: list[str]) -> Row:
    """Recall of each way, of all, and precision."""
    listed = {(a, b) if a < b else (b, a) for a, b in pairs}
    truths = [tell(a, b) for a, b in listed]
    known = [truth for truth in truths if truth is not None]
    originals = {Path(name).stem: name for name in ids if name.startswith("original/")}
    found: dict[str, list[bool]] = {way: [] for way in WAYS}
    for name in ids:
        way, stem = name.split("/")[0], Path(name).stem
        if way in found:
            original = originals[stem]
            found[way].append(((name, original) if name < original else (original, name)) in listed)
    row = {way: float(np.mean(some)) for way, some in found.items()}
    everything = float(np.mean([one for some in found.values() for one in some]))
    precision = float(np.mean(known)) if known else 1.0
    return {**row, "recall": everything, "precision": precision, "listed": len(known), "wrong": known.count(False)}


def choose(pairs: Pairs, ids: list[str]) -> list[tuple[str, str]]:
    """As many of the nearest as keep the precision: scores are whole steps, and pairs of one step come together."""
    order = np.argsort(-pairs.scores, kind="stable")
    truths = [tell(ids[a], ids[b]) for a, b in pairs.rows[order].tolist()]
    right, known = np.cumsum([truth is True for truth in truths]), np.cumsum([truth is not None for truth in truths])
    last = np.append(np.diff(pairs.scores[order]) != 0, True)  # of a step
    good = np.flatnonzero(last & (right >= PRECISION * known))
    kept = pairs.rows[order][: good[-1] + 1 if len(good) else 0]
    return [(ids[a], ids[b]) for a, b in kept.tolist()]


def embed(collection: Collection, ids: list[str]) -> np.ndarray:
    """The mean of the network's tokens: one vector an image, as peers compare them."""
    return pool(collection, choose_branches(collection.recipe).dense[0], ids)


def print_table(tables: dict[str, Row]) -> None:
    names = list(tables)
    print("| | " + " | ".join(names) + " |\n|---" * 1 + "|---" * len(names) + "|")
    for key in [*WAYS, "recall", "precision", "listed", "wrong"]:
        form = "{:.0f}" if key in ("listed", "wrong") else "{:.3f}"
        print(f"| {key} | " + " | ".join(form.format(tables[name][key]) for name in names) + " |")


def print_groups(report: Report) -> None:
    """Does a group ever hold two pictures?"""
    members: dict[int, set[str]] = {}
    for pair in report.pairs:
        if pair.group is not None:
            members.setdefault(pair.group, set()).update((pair.a, pair.b))
    mixed = [some for some in members.values() if any(tell(min(some), one) is False for one in some)]
    print(
        f"{len(members)} groups; {len(mixed)} hold images of two pictures: {[sorted(some)[:4] for some in mixed[:5]]}"
    )
    wrong = [pair for pair in report.pairs if tell(pair.a, pair.b) is False]
    print(f"expected to be wrong {report.expected_wrong:.1f}, wrong {len(wrong)}")
    writer = csv.writer(sys.stdout)
    writer.writerows([pair.a, pair.b, pair.kind, f"{pair.probability:.4f}"] for pair in wrong[:20])


def show(stage: str, done: int, total: int) -> None:
    print(f"\r{stage} {done}/{total}   ", end="", file=sys.stderr)


def _of_kind(report: Report, kind: str) -> Iterable[tuple[str, str]]:
    return ((pair.a, pair.b) for pair in report.pairs if pair.kind in ("copy", kind))


if __name__ == "__main__":
    main()
