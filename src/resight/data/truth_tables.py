"""Files in which data sets come with their truth: JSON (`read_json`), CSV (`read_table`), boxes (`read_boxes`), lists
(`read_lines`).

What cannot be read is refused with the file, and the line where there is one.

Images that are searched besides a data set's own. In: a folder, which is walked, or a list of files. Out: ImageRefs.

A list holds one file a line and may be compressed (.gz). Ids begin with "distractors/", so that none is an image of the
data set itself.
"""

import csv
import gzip
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from resight.data.sets.folder import walk
from resight.errors import ManifestError
from resight.types import Box, ImageRef, Skipped


def read_json(path: Path, fix: str) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, ValueError) as error:
        raise refuse_file(path, "valid JSON in UTF-8", error, fix) from error


def read_table(path: Path, columns: Sequence[str], fix: str) -> Iterator[tuple[int, Mapping[str, str]]]:
    """The rows of a CSV file with a header that has `columns`, each with the number of its line."""
    expected = f"a CSV table with the columns {', '.join(columns)}"
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(file, strict=True)
            header = next(reader, [])
            if missing := [name for name in columns if name not in header]:
                problem = f"{path} has no column {', '.join(missing)}"
                raise ManifestError(problem, expected=expected, actual=", ".join(header)[:300] or "nothing", fix=fix)
            for row in reader:
                if row and len(row) != len(header):
                    actual = f"{len(row)} cells for {len(header)} columns"
                    problem = f"{path}, line {reader.line_num}: the row has not one cell a column"
                    raise ManifestError(problem, expected=expected, actual=actual, fix=fix)
                if row:
                    yield reader.line_num, dict(zip(header, row, strict=True))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise refuse_file(path, expected, error, fix) from error


def read_boxes(path: Path, fix: str) -> list[Box]:
    """Boxes from a text with one "x y width height" a line; none where there is no such file."""
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except FileNotFoundError:
        return []
    except (OSError, UnicodeDecodeError) as error:
        raise refuse_file(path, "one box a line", error, fix) from error
    boxes: list[Box] = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            x, y, width, height = (float(cell) for cell in line.replace(",", " ").split())
        except ValueError:
            x = y = width = height = float("nan")
        if not (width > 0 and height > 0 and abs(x) < float("inf") and abs(y) < float("inf")):
            raise ManifestError(
                f"{path}, line {number}: not a box",
                expected="x y width height in pixels, width and height above 0",
                actual=line[:100],
                fix=fix,
            )
        boxes.append((x, y, x + width, y + height))
    return boxes


def read_lines(path: Path, fix: str) -> Iterator[tuple[int, str]]:
    """Lines that are not empty, with their numbers; of a file that may be compressed (.gz)."""
    try:
        with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8") as file:
            for number, line in enumerate(file, start=1):
                if line.strip():
                    yield number, line.strip()
    except (OSError, UnicodeDecodeError, EOFError) as error:
        raise refuse_file(path, "a list, one id or file a line", error, fix) from error


def surround(boxes: Sequence[Box]) -> Box:
    """The smallest box around all."""
    x0, y0, x1, y1 = zip(*boxes, strict=True)
    return min(x0), min(y0), max(x1), max(y1)


def refuse_file(path: Path, expected: str, error: Exception, fix: str) -> ManifestError:
    actual = "no such file" if isinstance(error, FileNotFoundError) else str(error)
    return ManifestError(f"{path} cannot be read", expected=expected, actual=actual[:300], fix=fix)


def list_distractors(
    place: Path | None, fix: str, beside: str = ""
) -> tuple[tuple[ImageRef, ...], tuple[Skipped, ...]]:
    """The images at a place, each once, and what had to be passed over; none for no place.

    Files of a list are relative to the folder `beside` next to it, where there is one, and else to its own.
    """
    if place is None:
        return (), ()
    found = list(_read_list(place, fix, beside) if place.is_file() else walk(place))
    refs = [item for item in found if isinstance(item, ImageRef)]
    _check(place, [ref.id for ref in refs], fix)
    named = tuple(ImageRef(f"distractors/{ref.id}", ref.path) for ref in refs)
    return named, tuple(item for item in found if isinstance(item, Skipped))


def _read_list(path: Path, fix: str, beside: str) -> Iterator[ImageRef]:
    folder = path.parent / beside if (path.parent / beside).is_dir() else path.parent
    return (ImageRef(line, folder / line) for _, line in read_lines(path, fix))


def _check(place: Path, ids: Sequence[str], fix: str) -> None:
    if not ids or len(set(ids)) < len(ids):
        raise ManifestError(
            f"{place}: these are no distractors",
            expected="a folder of images, or a list of their names, each once",
            actual=f"{len(ids):,} names, {len(set(ids)):,} of them different",
            fix=fix,
        )
