"""Where things are in the database of a data set, as its truth says. In: a Dataset. Out: a box file.

    id,x0,y0,x1,y1
    street/0001.jpg,120,80,310,240

One line a box, in pixels of the original, in the order of the database; a box that several queries share stands once.
"""

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path

from resight.errors import ManifestError
from resight.types import Box, Dataset
from resight.whole_files import write_whole

COLUMNS = ("id", "x0", "y0", "x1", "y1")


def list_boxes(dataset: Dataset) -> dict[str, list[Box]]:
    """The different boxes of each database image that has any."""
    found: dict[str, dict[Box, None]] = {ref.id: {} for ref in dataset.database}
    for judgement in dataset.judgements.values():
        for name, box in judgement.boxes.items():
            if name in found:
                found[name][box] = None
    boxes = {name: list(some) for name, some in found.items() if some}
    if not boxes:
        raise ManifestError(
            f"{dataset.name} does not say where things are",
            expected="positives with boxes",
            actual=f"{len(dataset.database):,} database images, none with a box",
            fix="in a manifest, the column positive_boxes says it; docs/data.md shows how",
        )
    return boxes


def write(path: Path, boxes: Mapping[str, Sequence[Box]]) -> None:
    with write_whole(path) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(COLUMNS)
        table.writerows((name, *(f"{side:.10g}" for side in box)) for name, some in boxes.items() for box in some)
