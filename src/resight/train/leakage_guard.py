"""Guard against leakage: refuse, leave out or allow training classes that the evaluation set also has.

In: the data set, and the folder of a `resight audit` (docs/guides/leak-audit.md); its `removal.csv` names the overlap:
classes, and ids of images that had no class in the audit, whose class here is then left out. For Google Landmarks v2
the published list of RGLDv2-clean applies as well. Out: classes to leave out.
"""

import csv
from collections.abc import Iterable
from pathlib import Path

from resight.data.sets.gldv2 import list_removed
from resight.errors import InputError
from resight.files.csv_cells import restore
from resight.train.train_config import Settings
from resight.types import Dataset

REMOVAL = "removal.csv"
SHOWN = 5  # names in a message


def find_left_out(dataset: Dataset, settings: Settings) -> frozenset[str]:
    """Labels that must not be trained on; raises InputError if the settings refuse them."""
    if settings.overlap == "allow":
        return frozenset()
    labels_of = {ref.id: str(ref.attributes["label"]) for ref in dataset.database if "label" in ref.attributes}
    known = frozenset(labels_of.values())
    sources = {}
    if settings.audit is not None:
        sources[str(settings.audit)] = read_removal(settings.audit)
    if dataset.name.startswith("gldv2"):
        sources["RGLDv2-clean"] = frozenset(landmark.gid for landmark in list_removed())
    found = {
        source: sorted((names & known) | {labels_of[name] for name in names & labels_of.keys()})
        for source, names in sources.items()
    }
    overlapping = frozenset(label for labels in found.values() for label in labels)
    if overlapping and settings.overlap == "refuse":
        raise InputError(
            f"{dataset.name} has classes that are also in the evaluation set: {len(overlapping):,}",
            expected="no class that the network is later evaluated on: scores would be too high",
            actual="; ".join(f"{_list(labels)} (by {source})" for source, labels in found.items() if labels),
            fix="set train.overlap=leave_out to train without them (or allow, to measure what the overlap does)",
        )
    return overlapping


def read_removal(folder: Path) -> frozenset[str]:
    """The classes that an audit found to overlap, and ids of images without a class."""
    path = folder / REMOVAL
    try:
        with path.open(encoding="utf-8", newline="") as file:
            return frozenset(restore(row["class"]) for row in csv.DictReader(file))
    except (OSError, KeyError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(
            f"{path} cannot be read",
            expected=f"the folder of `resight audit`, with a {REMOVAL} that has a column class",
            actual=str(error),
            fix="run `resight audit TRAIN EVAL --out FOLDER`, or leave audit out",
        ) from error


def _list(labels: Iterable[str]) -> str:
    labels = list(labels)
    return ", ".join(labels[:SHOWN]) + (f" and {len(labels) - SHOWN} more" if len(labels) > SHOWN else "")
