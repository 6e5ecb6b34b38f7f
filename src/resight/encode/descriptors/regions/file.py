"""Boxes from a file of your own: the output of another detector, or annotations.

In: a CSV table or JSON Lines (.jsonl, .ndjson), read once; columns or keys id, x0, y0, x1, y1 and optionally score;
the boxes in pixels of the original. Out: the boxes of each picture.

    id,x0,y0,x1,y1,score
    street/0001.jpg,120,80,310,240,0.93

An id is that of the collection, or the end of the file's path ("street/0001.jpg" for photos/street/0001.jpg), but never
shorter than the id, so that "0001.jpg" does not match in every folder. An image that the file does not name has no
proposals and is described whole. The source sees one picture at a time, so it cannot report a file that names no image
of the collection: all images are then described whole.
"""

import csv
from array import array
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from resight.encode.regions import USUAL_FINEST, Proposals, keep_best
from resight.errors import ManifestError, MissingFile
from resight.files.csv_cells import restore
from resight.files.documents import load_json
from resight.files.fingerprint import fingerprint_file
from resight.plugins import check_range
from resight.types import FloatArray, ImageRef, Picture

COLUMNS = ("id", "x0", "y0", "x1", "y1")
LINES = (".jsonl", ".ndjson")
EXPECTED = "a CSV table or JSON Lines with id, x0, y0, x1, y1 and perhaps score"


@dataclass(frozen=True)
class Config:
    path: Path  # CSV or JSON Lines file with id, x0, y0, x1, y1 and optionally score, in pixels
    most: int | None = 20  # most boxes per image, by score, on a tie the first; None: all
    finest: float = USUAL_FINEST  # image side divided by a small box's side; higher reads images at higher resolution

    def __post_init__(self) -> None:
        check_range("most", 1 if self.most is None else self.most, 1)
        check_range("finest", self.finest, 1, 64)


def build(config: Config) -> "BoxFile":
    return BoxFile(config)


class BoxFile:
    def __init__(self, config: Config) -> None:
        self._spans, self._rows = read_boxes(config.path)
        self.fingerprint = f"file({fingerprint_file(config.path, 8)}, most={config.most})"
        self.finest = config.finest
        self._most = config.most

    def propose(self, picture: Picture) -> Proposals:
        start, stop = next((self._spans[key] for key in list_keys(picture.ref) if key in self._spans), (0, 0))
        rows = self._rows[start:stop]
        return keep_best(Proposals(rows[:, :4], rows[:, 4]), self._most)


def read_boxes(path: Path) -> tuple[dict[str, tuple[int, int]], FloatArray]:
    """For each id its rows [start, stop) of a table [n, 5]: the box and its score."""
    if not path.exists():  # its own class: other recipes of the same run can go on
        raise MissingFile(
            f"there is no box file {path}",
            expected=EXPECTED,
            actual="nothing at that path",
            fix="check the setting `path`; `resight data boxes` writes the true boxes of a data set",
        )
    owners: dict[str, int] = {}
    images, numbers = array("q"), array("f")
    for line, row in _read_rows(path):
        images.append(owners.setdefault(_name(row["id"], path, line), len(owners)))
        numbers.extend(_check(row, path, line))
    table = np.frombuffer(numbers, np.float32).reshape(-1, 5) if images else np.zeros((0, 5), np.float32)
    owner = np.array(images, np.int64)
    ends = np.cumsum(np.bincount(owner, minlength=len(owners))).tolist()
    starts = [0, *ends][: len(ends)]
    spans = {name: (starts[number], ends[number]) for name, number in owners.items()}
    return spans, np.ascontiguousarray(table[np.argsort(owner, kind="stable")])


def list_keys(ref: ImageRef) -> Iterator[str]:
    """The names that a file may use for an image: its id, or the end of its path, the longest first."""
    yield ref.id
    parts = PurePosixPath(ref.path.as_posix()).parts
    for number in range(len(parts)):
        tail = "/".join(parts[number:])
        if tail == ref.id:
            return
        yield tail


def _restore(row: Mapping[str, Any]) -> dict[str, Any]:
    return {key: restore(cell) if isinstance(cell, str) else cell for key, cell in row.items()}


def _read_rows(path: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            if path.suffix.lower() in LINES:
                for line, text in enumerate(file, start=1):
                    if text.strip():
                        yield line, _check_columns(load_json(text), path, line)
                return
            reader = csv.DictReader(file, restkey="", strict=True)
            _check_columns(dict.fromkeys(reader.fieldnames or ()), path, 1)
            for row in reader:
                yield reader.line_num, _restore(row)
    except (OSError, ValueError, csv.Error) as error:
        raise ManifestError(
            f"cannot read the boxes in {path}",
            expected=EXPECTED,
            actual=str(error).partition("\n")[0],
            fix="check the setting `path` and the file",
        ) from error


def _check_columns(row: Any, path: Path, line: int) -> Mapping[str, Any]:
    keys = list(row) if isinstance(row, dict) else []
    if set(keys) - {"score"} != set(COLUMNS):
        raise ManifestError(
            f"{path}, line {line}: these are not the columns of boxes",
            expected="id, x0, y0, x1, y1 and perhaps score, no others",
            actual=", ".join(map(str, keys))[:300] or "none",
            fix="rename or remove the others",
        )
    found: Mapping[str, Any] = row
    return found


def _check(row: Mapping[str, Any], path: Path, line: int) -> list[float]:
    """Box and score."""
    cells = [row[name] for name in COLUMNS[1:]] + [row.get("score", 1.0)]
    try:
        numbers = [float("nan") if isinstance(cell, bool) else float(cell) for cell in cells]
    except (TypeError, ValueError):
        numbers = [float("nan")]
    if not np.isfinite(numbers).all() or numbers[2] <= numbers[0] or numbers[3] <= numbers[1] or "" in row:
        raise ManifestError(
            f"{path}, line {line}: not a box",
            expected="numbers x0 < x1 and y0 < y1 in pixels, one cell per column",
            actual=", ".join(map(str, row.values()))[:200],
            fix="correct or remove the line",
        )
    return numbers


def _name(value: Any, path: Path, line: int) -> str:
    text = "" if value is None else str(value).replace("\\", "/").removeprefix("./")
    if not text:
        raise ManifestError(
            f"{path}, line {line}: a box of no image", expected="an id", actual="nothing", fix="fill it in"
        )
    return text
