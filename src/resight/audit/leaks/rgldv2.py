"""Make RGLDv2-clean from GLDv2-clean: remove the published list of classes from the published table.

In: a CSV file with the columns landmark_id and images (ids separated by spaces), such as GLDv2's train_clean.csv. Out:
the table without the 18 classes of Table A12 of CiDeR, and the differences from the published counts: 18 classes with
1,565 images go, 1,578,905 images of 81,295 classes stay. The table is read line by line.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from resight.data.sets.gldv2 import COUNTS, list_removed
from resight.errors import ManifestError
from resight.files.atomic import write_atomic

NAMES = ("rgldv2",)
HEADER = "landmark_id,images"


@dataclass(frozen=True)
class Applied:
    removed: Mapping[str, int]  # class → images removed
    images: int  # that stay
    classes: int
    differences: tuple[str, ...]  # from the published counts; empty: exactly the published set


def apply_rgldv2(source: Path, out: Path) -> Applied:
    wanted = {landmark.gid: landmark for landmark in list_removed()}
    removed: dict[str, int] = {}
    images = classes = 0
    try:
        with source.open(encoding="utf-8-sig") as table, write_atomic(out) as temporary, temporary.open("w") as clean:
            _check_header(next(table, ""), source)
            clean.write(HEADER + "\n")
            for number, line in enumerate(table, start=2):
                if not line.strip():
                    continue
                label, count = _read_line(line, source, number)
                if label in wanted:
                    removed[label] = removed.get(label, 0) + count
                else:
                    clean.write(line.rstrip("\r\n") + "\n")
                    images += count
                    classes += 1
    except (FileNotFoundError, IsADirectoryError, PermissionError, UnicodeDecodeError) as error:
        raise _refuse(f"{source} cannot be read", str(error)) from error
    return Applied(removed, images, classes, tuple(_list_differences(removed, images, classes)))


def _list_differences(removed: Mapping[str, int], images: int, classes: int) -> list[str]:
    differences = []
    for landmark in list_removed():
        count = removed.get(landmark.gid, 0)
        if count != landmark.images:
            expected = f"{landmark.images} images published"
            differences.append(f"class {landmark.gid} ({landmark.name}): {count} images removed, {expected}")
    published = COUNTS["rgldv2_clean"]
    if images != published["database"]:
        differences.append(f"{images:,} images left, {published['database']:,} published")
    if classes != published["labels"]:
        differences.append(f"{classes:,} classes left, {published['labels']:,} published")
    return differences


def _read_line(line: str, source: Path, number: int) -> tuple[str, int]:
    """The class and its number of images. Not by Python's csv, which refuses such long cells."""
    label, comma, ids = line.strip().partition(",")
    if not comma or not label.isdigit() or not ids.strip('" '):
        raise _refuse(f"{source}, line {number}: not a class", line[:80])
    return label, len(ids.strip('"').split())


def _check_header(line: str, source: Path) -> None:
    if [name.strip() for name in line.strip().split(",")] != HEADER.split(","):
        raise _refuse(f"{source}, line 1: another header", line.strip()[:80] or "nothing")


def _refuse(problem: str, actual: str) -> ManifestError:
    return ManifestError(
        problem, expected=f"a table with the columns {HEADER}", actual=actual, fix="give GLDv2's train_clean.csv"
    )
