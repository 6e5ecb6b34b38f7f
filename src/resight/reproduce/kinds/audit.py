"""Tables about overlap: counts of a leak audit, and of training sets and their classes.

In: a PaperTable. Out: a Measured per cell, a count. Rows have one of two further keys, or name a class:

    counts    an evaluation set of the audit in `--set audit=FOLDER`, "text" or "total": what it shares and what goes
    source    a data set with labels: its images and classes, counted by its loader
    neither   the row's name is a class of Google Landmarks v2: its images that go, by the audit or by train_clean.csv

Metrics: images, touched (evaluation images with a confirmed match), share (of them), classes, removed (images).
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from resight import plugins
from resight.errors import InputError, RecipeError
from resight.recipe.tables import read_choice
from resight.reproduce import worker
from resight.reproduce.kinds import Requirements
from resight.reproduce.paper_table import PaperRow, PaperTable
from resight.reproduce.run import Cell, Measured, NotRun, Run

METRICS = ("images", "touched", "share", "classes", "removed")
COUNTS, SOURCE = "counts", "source"
AUDIT = "audit="  # of --set
REPORT = "audit.json"
CLEAN = {"name": "gldv2", "which": "clean"}
COUNT = "resight.reproduce.kinds.audit:count_labels"
NO_AUDIT = (
    "no audit: run `resight audit gldv2:ROOT revisited:ROOT --out FOLDER`, vote on its pairs by "
    "`resight review FOLDER`, run it again, then add --set audit=FOLDER"
)


def check(table: PaperTable) -> None:
    for key in table.settings:
        raise plugins.refuse_key(key, (), "the table")
    for column in table.measured:
        if column.metric not in METRICS:
            raise _refuse(f"the column {column.name!r} has no count", ", ".join(METRICS), column.metric or "nothing")
    for row in table.rows:
        for key in row.settings:
            if key not in (COUNTS, SOURCE):
                raise plugins.refuse_key(key, (COUNTS, SOURCE), f"the row {row.name!r}")
        if SOURCE in row.settings and read_choice(row.settings[SOURCE], SOURCE).name not in table.data:
            raise _refuse(f"{row.name!r}: its data set is not in `data`", ", ".join(table.data), "another")


def requirements(table: PaperTable) -> Requirements:
    counted = any(COUNTS in row.settings for row in table.rows)
    return Requirements(weights=("the folder of a `resight audit` (--set audit=FOLDER)",) if counted else ())


def measure(table: PaperTable, rows: Sequence[PaperRow], run: Run) -> Iterator[tuple[str, str, Cell]]:
    labels = [row.name for row in table.rows if not row.settings]
    for row in rows:
        found = NotRun(row.skip) if row.skip else _count(row, labels, run)
        for column in table.measured:
            if isinstance(found, NotRun):
                yield row.name, column.name, found
                continue
            value = found.get(column.metric)
            missing = NotRun(f"{row.name} has no such count")
            yield row.name, column.name, missing if value is None else Measured(value)


def count_labels(data: Mapping[str, Any], root: str, labels: Sequence[str]) -> dict[str, Any]:
    """The images and classes of a data set, and the images of some classes."""
    from resight.data import sets

    choice = read_choice(dict(data), "data")
    dataset = sets.build(choice.name, **choice.settings).load(Path(root))
    sizes = Counter(str(ref.attributes["label"]) for ref in dataset.database if "label" in ref.attributes)
    return {"images": len(dataset.database), "classes": len(sizes), "sizes": {label: sizes[label] for label in labels}}


def _count(row: PaperRow, labels: Sequence[str], run: Run) -> dict[str, float] | NotRun:
    """The counts of a row, by metric."""
    folder = next((text.removeprefix(AUDIT) for text in reversed(run.overrides) if text.startswith(AUDIT)), "")
    try:
        if SOURCE in row.settings:
            return _count_source(row.settings[SOURCE], (), run)
        if COUNTS in row.settings:
            return _read_set(_read_audit(folder), str(row.settings[COUNTS])) if folder else NotRun(NO_AUDIT)
        if folder:
            removed = {entry["name"]: entry["images"] for entry in _read_audit(folder)["removed"]}
            return {"removed": float(removed.get(row.name, 0))}
        counted = _count_source(CLEAN, labels, run)
    except InputError as error:
        return NotRun(worker.describe(error))
    return counted if isinstance(counted, NotRun) else {"removed": counted[row.name]}


def _count_source(data: Any, labels: Sequence[str], run: Run) -> dict[str, float] | NotRun:
    choice = read_choice(data, SOURCE)
    root = run.root(choice.name)
    run.report(f"counting {choice.name}")
    table = {"name": choice.name, **choice.settings}
    answer = run.isolate(COUNT, {"data": table, "root": str(root), "labels": list(labels)})
    if isinstance(answer, NotRun):
        return answer
    return {"images": float(answer["images"]), "classes": float(answer["classes"]), **answer["sizes"]}


def _read_set(report: Mapping[str, Any], name: str) -> dict[str, float] | NotRun:
    rows = {str(row["name"]).lower(): row for row in report["sets"]}
    if name not in rows:
        return NotRun(f"the audit has no evaluation set {name!r}, but {', '.join(rows)}")
    row = rows[name]
    counts = {key: float(row[key]) for key in ("images", "touched", "classes", "removed") if row[key] is not None}
    if counts.get("images") and "touched" in counts:
        counts["share"] = counts["touched"] / counts["images"]
    return counts


def _read_audit(folder: str) -> dict[str, Any]:
    path = Path(folder) / REPORT
    try:
        report: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        _ = report["sets"], report["removed"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(
            f"{path} cannot be read",
            expected="the folder of a `resight audit`",
            actual=str(error),
            fix="give --set audit=FOLDER, the --out of `resight audit`",
        ) from error
    return report


def _refuse(problem: str, expected: str, actual: str) -> RecipeError:
    return RecipeError(problem, expected=expected, actual=actual, fix="correct the table's file")
