"""Tables about overlap: counts of a leak audit, and of training sets and their classes.

In: a PaperTable. Out: a Measured per cell, a count. Rows have one of two further keys, or name a class:

    counts    an evaluation set of an audit, "text" or "total": what it shares and what goes
    source    a data set with labels: its images and classes, counted by its loader
    neither   the row's name is a class of Google Landmarks v2: its images that go, by the audit or by train_clean.csv

The user gives one audit of all evaluation sets by `--set audit=FOLDER`, where images have the attribute `set`, or one
per set by `--set audit.roxford5k=FOLDER --set audit.rparis6k=FOLDER`; a class that several remove goes once.
Metrics: images, touched (evaluation images with a confirmed match), share (of them), classes, removed (images).
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from resight import plugins
from resight.errors import InputError, RecipeError
from resight.files.documents import load_json
from resight.recipe.tables import read_choice
from resight.reproduce import worker
from resight.reproduce.kinds import Requirements
from resight.reproduce.paper_table import PaperRow, PaperTable
from resight.reproduce.run import Cell, Measured, NotRun, Run

METRICS = ("images", "touched", "share", "classes", "removed")
COUNTS, SOURCE = "counts", "source"
AUDIT = "audit"  # of --set
ALL = ""  # an audit of all evaluation sets
NOT_SETS = ("text", "total")  # rows of an audit that are no evaluation sets
REPORT = "audit.json"
CLEAN = {"name": "gldv2", "which": "clean"}
COUNT = "resight.reproduce.kinds.audit:count_labels"
NO_AUDIT = (
    "no audit: run `resight audit gldv2:ROOT revisited,which=roxford5k:ROOT --out FOLDER`, vote on its pairs by "
    "`resight review FOLDER`, run it again, do the same for rparis6k, then add --set audit.roxford5k=FOLDER "
    "--set audit.rparis6k=FOLDER"
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
    try:
        audits = _read_audits(run.overrides)
        if SOURCE in row.settings:
            return _count_source(row.settings[SOURCE], (), run)
        if COUNTS in row.settings:
            return _read_set(audits, str(row.settings[COUNTS])) if audits else NotRun(NO_AUDIT)
        if audits:
            return {"removed": float(_list_removed(audits).get(row.name, {"images": 0})["images"])}
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


def _read_set(audits: Mapping[str, Any], name: str) -> dict[str, float] | NotRun:
    """The counts of an evaluation set, of classes that their name suggested, or of all."""
    rows = {str(row["name"]).lower(): row for row in audits[ALL]["sets"]} if ALL in audits else _join_audits(audits)
    if name not in rows:
        return NotRun(f"the audit has no evaluation set {name!r}, but {', '.join(rows)}")
    row = rows[name]
    counts = {key: float(row[key]) for key in ("images", "touched", "classes", "removed") if row[key] is not None}
    if counts.get("images") and "touched" in counts:
        counts["share"] = counts["touched"] / counts["images"]
    return counts


def _join_audits(audits: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The rows of several audits, one per evaluation set, as those of one audit."""
    rows: dict[str, dict[str, Any]] = {}
    for name, report in audits.items():
        own = [row for row in report["sets"] if row["name"] not in NOT_SETS]
        rows[name] = {key: sum(row[key] for row in own) for key in ("images", "touched", "classes", "removed")}
    removed = _list_removed(audits)
    by_name = [entry for entry in removed.values() if not entry["evaluation"]]
    for name, entries in (("text", by_name), ("total", list(removed.values()))):
        rows[name] = {
            "images": None if name == "text" else sum(rows[one]["images"] for one in audits),
            "touched": None if name == "text" else sum(rows[one]["touched"] for one in audits),
            "classes": len(entries),
            "removed": sum(entry["images"] for entry in entries),
        }
    return rows


def _list_removed(audits: Mapping[str, Any]) -> dict[str, Any]:
    """What goes, by class: for its matches, if any audit has found some, or else for its name."""
    entries = [entry for report in audits.values() for entry in report["removed"]]
    return {entry["name"]: entry for entry in sorted(entries, key=lambda entry: bool(entry["evaluation"]))}


def _read_audits(overrides: Sequence[str]) -> dict[str, Any]:
    """The audits that the user names, by their evaluation set."""
    found = {}
    for override in overrides:
        key, _, folder = override.partition("=")
        first, _, name = key.strip().partition(".")
        if first == AUDIT:
            found[name] = _read_audit(folder.strip())
    return found


def _read_audit(folder: str) -> dict[str, Any]:
    path = Path(folder) / REPORT
    try:
        report: dict[str, Any] = load_json(path.read_text(encoding="utf-8"))
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
