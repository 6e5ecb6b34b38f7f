"""Readers for the files that data sets keep their ground truth in.

    read_json           JSON
    read_table          CSV with a header, row by row
    read_boxes          text, one "x y width height" per line
    read_lines          text, one id or file name per line, possibly gzipped
    read_mat            MATLAB, version 5: lists, structs, text and numbers
    locate_image        the path of an image that a truth file names
    list_distractors    a folder of images or a list of files, as ImageRefs that extend a data set's database

A file that cannot be read gives a ManifestError that names it, and the line if there is one.
"""

import csv
import gzip
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np

from resight.data.folder_walk import walk
from resight.errors import ManifestError
from resight.files.csv_cells import restore
from resight.files.documents import read_json as parse_file
from resight.files.inside import resolve_inside
from resight.types import Box, ImageRef, Skipped

MAT_VERSION_5 = (b"\x00\x01IM", b"\x01\x00MI")  # little-endian, big-endian
MAT_COMPRESSED = 15
MAX_MAT_BYTES = 1 << 30  # of one variable, unpacked


def read_json(path: Path, fix: str) -> Any:
    try:
        return parse_file(path, error=ManifestError, fix=fix)
    except OSError as error:
        raise refuse_file(path, "valid JSON in UTF-8", error, fix) from error


def read_table(path: Path, columns: Sequence[str], fix: str) -> Iterator[tuple[int, Mapping[str, str]]]:
    """Yield the rows of a CSV file whose header has `columns`, each with its line number."""
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
                    problem = f"{path}, line {reader.line_num}: the row has not one cell per column"
                    raise ManifestError(problem, expected=expected, actual=actual, fix=fix)
                if row:
                    yield reader.line_num, dict(zip(header, map(restore, row), strict=True))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise refuse_file(path, expected, error, fix) from error


def read_boxes(path: Path, fix: str) -> list[Box]:
    """Boxes from a text with one "x y width height" per line; an empty list if the file does not exist."""
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except FileNotFoundError:
        return []
    except (OSError, UnicodeDecodeError) as error:
        raise refuse_file(path, "one box per line", error, fix) from error
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
    """Yield the non-empty lines of a text or .gz file, with their numbers."""
    try:
        with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8") as file:
            for number, line in enumerate(file, start=1):
                if line.strip():
                    yield number, line.strip()
    except (OSError, UnicodeDecodeError, EOFError) as error:
        raise refuse_file(path, "a list, one id or file per line", error, fix) from error


def read_mat(path: Path, fix: str) -> dict[str, Any]:
    """The variables of a MATLAB file of version 5, by name, read with scipy.

    A cell array becomes a list in MATLAB's order (column by column), a struct array a list of {field: value}, text a
    str, numbers an ndarray of MATLAB's shape. Sparse, complex and object arrays are refused, and so is version 7.3,
    which is HDF5.
    """
    from scipy.io import loadmat

    try:
        content = path.read_bytes()
        if content[124:128] not in MAT_VERSION_5:
            raise ValueError("not a MATLAB file of version 5")
        _check_mat_size(content)
        return {name: _simplify(value) for name, value in loadmat(path).items() if not name.startswith("__")}
    except Exception as error:  # a damaged file makes scipy raise errors of any class
        expected = "a whole MATLAB file of version 5 with lists, structs, text and numbers"
        raise refuse_file(path, expected, error, fix) from error


def list_distractors(
    source: Path | None, fix: str, beside: str = ""
) -> tuple[tuple[ImageRef, ...], tuple[Skipped, ...]]:
    """The images of a folder, or of a list with one file per line (may be .gz), and what was skipped.

    Ids begin with "distractors/", so that none equals an id of the data set itself. The files of a list are relative to
    the folder `beside` next to the list if that exists, and else to the list's own folder. No `source`, no images.
    """
    if source is None:
        return (), ()
    found = list(_read_list(source, fix, beside) if source.is_file() else walk(source))
    refs = [item for item in found if isinstance(item, ImageRef)]
    _check_distractors(source, [ref.id for ref in refs], fix)
    named = tuple(ImageRef(f"distractors/{ref.id}", ref.path) for ref in refs)
    return named, tuple(item for item in found if isinstance(item, Skipped))


def locate_image(root: Path, name: object, where: Path | str) -> Path:
    """The path of an image that the truth file `where` names, below `root`; links there may lead to another disk."""
    return resolve_inside(root, str(name), what=f"{where}: an image", error=ManifestError, links=True)


def surround(boxes: Sequence[Box]) -> Box:
    """The smallest box around all boxes."""
    x0, y0, x1, y1 = zip(*boxes, strict=True)
    return min(x0), min(y0), max(x1), max(y1)


def refuse_file(path: Path, expected: str, error: Exception, fix: str) -> ManifestError:
    actual = "no such file" if isinstance(error, FileNotFoundError) else str(error)
    return ManifestError(f"{path} cannot be read", expected=expected, actual=actual[:300], fix=fix)


def _read_list(path: Path, fix: str, beside: str) -> Iterator[ImageRef]:
    folder = path.parent / beside if (path.parent / beside).is_dir() else path.parent
    return (ImageRef(line, locate_image(folder, line, path)) for _, line in read_lines(path, fix))


def _check_distractors(source: Path, ids: Sequence[str], fix: str) -> None:
    if not ids or len(set(ids)) < len(ids):
        raise ManifestError(
            f"{source} does not hold distractors",
            expected="a folder of images, or a list of their names, each once",
            actual=f"{len(ids):,} names, {len(set(ids)):,} of them different",
            fix=fix,
        )


def _check_mat_size(content: bytes) -> None:
    """Refuse a truncated file, and one that unpacks to more than MAX_MAT_BYTES per variable."""
    order: Literal["little", "big"] = "little" if content[126:128] == b"IM" else "big"
    at = 128
    while at + 8 <= len(content):
        kind, size = (int.from_bytes(content[start : start + 4], order) for start in (at, at + 4))
        data = content[at + 8 : at + 8 + size]
        if len(data) < size:
            raise ValueError("it ends early")
        if kind == MAT_COMPRESSED:
            unpacker = zlib.decompressobj()
            unpacker.decompress(data, MAX_MAT_BYTES)
            if unpacker.unconsumed_tail:
                raise ValueError(f"a variable takes more than {MAX_MAT_BYTES:,} bytes")
        at += 8 + size + (0 if kind == MAT_COMPRESSED else -size % 8)


def _simplify(value: Any) -> Any:
    """Lists, dictionaries and text instead of scipy's arrays of objects, records and characters."""
    if type(value) is not np.ndarray or value.dtype.kind == "c":
        raise ValueError(f"it holds a {type(value).__name__}" if type(value) is not np.ndarray else "complex numbers")
    if value.dtype.names:
        names = value.dtype.names
        return [{name: _simplify(record[name]) for name in names} for record in value.ravel(order="F")]
    if value.dtype.kind == "O":
        return [_simplify(item) for item in value.ravel(order="F")]
    return "".join(value.ravel()) if value.dtype.kind == "U" else value
