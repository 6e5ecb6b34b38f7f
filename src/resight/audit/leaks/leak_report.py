"""Write the files of a leak audit. In: an Audit, its folder and the training images.

evidence.csv    every pair, surest first: probability, matched key points, box, classes, and the decision
removal.csv     classes to remove (or images without a class): class, name, images, why, evaluation
clean.csv       a manifest of the training images that stay
candidates.csv  classes that a text suggests, for reviewers to fill in (name_candidates.py); only with texts
overlap.csv     every evaluation image: id, class, split (overlapping or other), matches, training classes; for
                `resight eval --split`. If images have classes, one overlapping image makes its class overlap
audit.md, .json the tables, and the notes needed to read them
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from resight.audit.leaks.find_leaks import Audit, Decisions, Rules
from resight.audit.leaks.name_candidates import FILE, write_candidates
from resight.audit.leaks.removal import SetRow
from resight.audit.leaks.sources import read_class
from resight.collection import Collection
from resight.files.atomic import write_atomic
from resight.files.csv_cells import make_writer
from resight.store import ImageRecord

OVERLAPPING, OTHER = "overlapping", "other"
EVIDENCE = ("a", "b", "probability", "kind", "inliers", "box", "a_class", "b_class", "decision", "doubt")
REMOVAL = ("class", "name", "images", "why", "evaluation")
SPLIT = ("id", "class", "split", "matches", "training_classes")
Cells = Sequence[object]


def write_audit(audit: Audit, folder: Path, train: Collection, rules: Rules) -> None:
    _write_table(folder / "evidence.csv", EVIDENCE, _list_evidence(audit))
    _write_table(folder / "removal.csv", REMOVAL, _list_removals(audit))
    _write_table(folder / "overlap.csv", SPLIT, _list_splits(audit))
    if audit.candidates:
        write_candidates(audit.candidates, folder / FILE, audit.classes.names, audit.classes.sizes)
    write_clean(audit, folder / "clean.csv", train, rules)
    with write_atomic(folder / "audit.md") as temporary:
        temporary.write_text(describe_audit(audit), encoding="utf-8")
    with write_atomic(folder / "audit.json") as temporary:
        temporary.write_text(json.dumps(summarise(audit), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def write_clean(audit: Audit, path: Path, train: Collection, rules: Rules) -> None:
    """Two passes over the records; they are never all in memory."""
    names = sorted({name for record in train.records() for name in record.attributes} - {"id", "path"})
    gone = {(removal.name, removal.labelled) for removal in audit.chosen.removals}
    stay = (record for record in train.records() if _find_owner(record, rules) not in gone)
    rows = ([record.id, record.path, *(record.attributes.get(name, "") for name in names)] for record in stay)
    _write_table(path, ("id", "path", *names), rows)


def summarise(audit: Audit) -> dict[str, object]:
    return {
        "evaluation_images": audit.overlap.images,
        "pairs": len(audit.overlap.leaks),
        "votes": audit.votes,
        "confirmed_by_votes": len(audit.decisions.by_votes),
        "confirmed_by_probability": len(audit.decisions.by_probability),
        "refuted": len(audit.decisions.refuted),
        "least": audit.decisions.least,
        "sets": [asdict(row) for row in audit.sets],
        "sizes": [asdict(row) for row in audit.sizes],
        "removed": [asdict(row) for row in audit.removed],
        "candidates": [{"class": one.name, "text": one.text, "decision": one.decision} for one in audit.candidates],
        "notes": list(audit.notes),
    }


def list_evidence(audit: Audit) -> dict[str, list[object]]:
    """The columns of evidence.csv."""
    rows = list(_list_evidence(audit))
    columns: dict[str, list[object]] = {name: [row[n] for row in rows] for n, name in enumerate(EVIDENCE)}
    return columns | {"probability": [leak.pair.probability for leak in audit.overlap.leaks]}


def describe_audit(audit: Audit) -> str:
    """Markdown."""
    sets = [_show_set(row) for row in audit.sets]
    sizes = [(row.name, f"{row.images:,}", f"{row.classes:,}") for row in audit.sizes]
    removed = [(row.name, row.called, f"{row.images:,}", row.why, len(row.evaluation)) for row in audit.removed]
    return (
        "\n\n".join(
            [
                "# Leak audit",
                f"{len(audit.overlap.leaks):,} pairs listed, {len(audit.decisions.confirmed):,} of them confirmed.",
                "\n".join(f"- {note}" for note in audit.notes),
                "## Evaluation images that the training set contains\n",
                _draw(("evaluation set", "images", "with a match", "classes removed", "images removed"), sets),
                "## The training set\n",
                _draw(("training set", "images", "classes"), sizes),
                "## Classes to remove\n",
                _draw(("class", "name", "images", "why", "evaluation images"), removed) if removed else "None.",
            ]
        ).replace("\n\n\n", "\n\n")
        + "\n"
    )


def _show_set(row: SetRow) -> Cells:
    share = f" ({row.touched / row.images:.0%})" if row.images and row.touched is not None else ""
    images = "" if row.images is None else f"{row.images:,}"
    touched = "" if row.touched is None else f"{row.touched:,}{share}"
    return row.name, images, touched, f"{row.classes:,}", f"{row.removed:,}"


def _list_evidence(audit: Audit) -> Iterator[Cells]:
    decided = _name_decisions(audit.decisions)
    for leak in audit.overlap.leaks:
        pair = leak.pair
        box = "" if leak.box is None else " ".join(f"{side:.1f}" for side in leak.box)
        classes = audit.evaluation_classes[pair.a] or "", audit.train_classes[pair.b] or ""
        evidence = f"{pair.probability:.6f}", pair.kind, leak.inliers, box
        yield pair.a, pair.b, *evidence, *classes, decided[pair.a, pair.b], leak.doubt


def _list_removals(audit: Audit) -> Iterator[Cells]:
    for row in audit.removed:
        yield row.name, row.called, row.images, row.why, ";".join(row.evaluation)


def _list_splits(audit: Audit) -> Iterator[Cells]:
    found: dict[str, list[str]] = {}
    for pair in audit.matches:
        found.setdefault(pair.a, []).append(audit.train_classes[pair.b] or pair.b)
    classes = {audit.evaluation_classes[image] for image in found} - {None}
    for image, label in audit.evaluation_classes.items():
        matches = found.get(image, [])
        split = OVERLAPPING if matches or label in classes else OTHER
        yield image, label or "", split, len(matches), ";".join(sorted(set(matches)))


def _name_decisions(decisions: Decisions) -> Mapping[tuple[str, str], str]:
    parts = {
        "confirmed by votes": decisions.by_votes,
        "confirmed by probability": decisions.by_probability,
        "refuted": decisions.refuted,
        "open": decisions.open,
    }
    return {(pair.a, pair.b): name for name, pairs in parts.items() for pair in pairs}


def _find_owner(record: ImageRecord, rules: Rules) -> tuple[str, bool]:
    """The unit of removal of an image: its class, or itself if it has none."""
    label = read_class(record, rules.class_attribute)
    return (record.id, False) if label is None else (label, True)


def _draw(header: Sequence[str], rows: Iterable[Cells]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(str(cell).replace("|", "\\|") for cell in line) + " |" for line in lines)


def _write_table(path: Path, header: Sequence[str], rows: Iterable[Cells]) -> None:
    with write_atomic(path) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
        table = make_writer(file)
        table.writerow(header)
        table.writerows(rows)
