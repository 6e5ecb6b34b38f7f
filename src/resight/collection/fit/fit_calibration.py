"""A calibration fitted on a collection's own labelled pairs.

In: a CSV file with the columns query (path of an image, or an id), id (in the collection) and same (1 or 0); votes as
`resight votes --out` writes them (a, b, reviewer, verdict), of which the majority of each pair counts; or the labels of
the collection, of which every image is then searched among the others, and images with its label show the same
instance. Out: a Calibration (search/calibration.py).
"""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from resight.collection import Collection
from resight.collection.add import Progress
from resight.collection.fit.fit_whitening import is_same
from resight.data.truth_tables import read_table
from resight.errors import InputError
from resight.search import calibration

CANDIDATES = 30
SAME, DIFFERENT = "same", "different"  # verdicts of votes
Sample = tuple[calibration.Signals, bool]


def fit_calibration(
    collection: Collection, pairs: Path | None, progress: Progress | None = None
) -> calibration.Calibration:
    samples = _from_labels(collection, progress) if pairs is None else _from_file(collection, pairs, progress)
    present = collection.view().pipeline.calibration
    prior = calibration.choose(present.weights) if present else None  # the shipped one, not one that was fitted before
    return calibration.fit(list(samples), prior)


def _from_labels(collection: Collection, progress: Progress | None) -> Iterator[Sample]:
    labels = {record.id: record.attributes.get("label") for record in collection.records()}
    labelled = [record for record in collection.records() if labels[record.id] is not None]
    if not labelled:
        raise InputError(
            "no image of the collection has a label",
            expected="labels (one label per instance), or --pairs",
            actual=f"{len(labels)} images without one",
            fix="give --pairs FILE, or index a manifest with the column label",
        )
    for done, record in enumerate(labelled, start=1):
        ranking = collection.ask(record.ref, k=CANDIDATES).ranking
        for name in ranking.ids:
            if name != record.id and labels[name] is not None:
                yield ranking.signals[name], labels[name] == labels[record.id]
        if progress:
            progress(done, len(labelled))


def _from_file(collection: Collection, path: Path, progress: Progress | None) -> Iterator[Sample]:
    known = _read(path)
    for done, (query, truths) in enumerate(known.items(), start=1):
        file = path.parent / query
        ranking = collection.ask(file if file.exists() else query, k=max(CANDIDATES, len(truths))).ranking
        for name in ranking.ids:
            if name in truths:
                yield ranking.signals[name], truths[name]
        if progress:
            progress(done, len(known))


def _read(path: Path) -> dict[str, dict[str, bool]]:
    """Query → id → whether both show the same object."""
    with path.open(encoding="utf-8-sig", errors="replace") as file:
        columns = {name.strip() for name in file.readline().split(",")}
    if {"a", "b"} <= columns and "query" not in columns:
        return _count_votes(path, "verdict" if "verdict" in columns else "same")
    known: dict[str, dict[str, bool]] = {}
    for line, row in read_table(path, ("query", "id", "same"), "name the columns in the first line"):
        known.setdefault(row["query"], {})[row["id"]] = is_same(row["same"], path, line)
    return known


def _count_votes(path: Path, column: str) -> dict[str, dict[str, bool]]:
    """The majority of each pair; a tie and other verdicts than same and different decide nothing."""
    tally: Counter[tuple[str, str]] = Counter()
    for line, row in read_table(path, ("a", "b", column), "name the columns in the first line"):
        verdict = row[column]
        if column == "same":
            verdict = SAME if is_same(verdict, path, line) else DIFFERENT
        tally[row["a"], row["b"]] += {SAME: 1, DIFFERENT: -1}.get(verdict, 0)
    known: dict[str, dict[str, bool]] = {}
    for (a, b), balance in tally.items():
        if balance:
            known.setdefault(a, {})[b] = balance > 0
    if not known:
        raise InputError(
            f"{path} decides no pair",
            expected="votes same and different",
            actual=f"{len(tally):,} pairs without a majority",
            fix="vote on more pairs with `resight review`",
        )
    return known
