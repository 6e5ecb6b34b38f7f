"""Rows of a manifest (`read_rows`): a CSV or JSON file in, checked rows out, one by one.

CSV (.csv, with a header), JSON Lines (.jsonl, .ndjson) or one JSON list (.json); UTF-8, with or without a BOM.

    path            relative to the manifest's folder, absolute, or a URL (s3://bucket/a.jpg); required
    id              default: the path as written
    label           text
    box             "x0,y0,x1,y1" or "x0 y0 x1 y1"; in JSON also a list
    lat, lon        degrees
    role            database (the default), query or both
    positives       ids separated by spaces, or by `;` if an id contains a space; in JSON a list or {id: grade}
    ignored         ids, as above
    positive_boxes  "id:x0 y0 x1 y1;id2:…"; in JSON {id: box}
    any other       an attribute; a CSV cell that looks like a number becomes one ("007" does not)

An empty CSV cell and a JSON null mean that the value is absent.
"""

import csv
import io
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from resight.errors import ManifestError
from resight.files import remote
from resight.files.csv_cells import restore
from resight.files.documents import parse_json
from resight.types import Attribute, Box, ImageRef

SUFFIXES = (".csv", ".jsonl", ".ndjson", ".json")
ROLES = ("database", "query", "both")
COLUMNS = ("path", "id", "label", "box", "lat", "lon", "role", "positives", "ignored", "positive_boxes")
NUMBER = re.compile(r"[+-]?(0|[1-9]\d*)(\.\d*)?([eE][+-]?\d+)?|[+-]?\.\d+([eE][+-]?\d+)?", re.ASCII)


@dataclass(frozen=True)
class Row:
    line: int  # of the file; in a .json list, the item's number
    ref: ImageRef
    role: str
    positives: Mapping[str, int] | None  # id → grade; None: the manifest lists none
    ignored: frozenset[str]
    boxes: Mapping[str, Box]


@dataclass(frozen=True)
class FileLine:
    """A line of a file, for error messages."""

    file: Path
    line: int

    def refuse(self, problem: str, expected: str, actual: object, fix: str) -> ManifestError:
        return ManifestError(
            f"{self.file}, line {self.line}: {problem}", expected=expected, actual=str(actual)[:300], fix=fix
        )


def read_rows(path: Path) -> Iterator[Row]:
    """Yield the rows of a manifest in order and check that their ids are unique."""
    lines: dict[str, int] = {}
    for line, cells in _read_cells(path):
        where = FileLine(path, line)
        row = _parse_row(cells, where)
        if row.ref.id in lines:
            problem = f"the id {row.ref.id!r} was used in line {lines[row.ref.id]} already"
            fix = "give each row an id of its own (without an id column, the path is the id)"
            raise where.refuse(problem, "unique ids", f"lines {lines[row.ref.id]} and {line}", fix)
        lines[row.ref.id] = line
        yield row


def _read_cells(path: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    readers = {".csv": _read_csv, ".jsonl": _read_json_lines, ".ndjson": _read_json_lines, ".json": _read_json}
    reader = readers.get(path.suffix.lower())
    there = path.is_file() if not remote.is_remote(path) else remote.stat(path) is not None
    if reader is None or not there:
        raise ManifestError(
            f"{remote.to_url(path)} is not a manifest",
            expected=f"a file that ends in {', '.join(SUFFIXES)}",
            actual=path.name if there else "no such file",
            fix="check the path",
        )
    try:
        yield from reader(path)
    except UnicodeDecodeError as error:
        raise ManifestError(
            f"{path} is not UTF-8", expected="UTF-8 text", actual=str(error), fix="save it as UTF-8"
        ) from error
    except OSError as error:
        raise ManifestError(f"{path} cannot be read", expected="a readable file", actual=str(error)) from error


def _read_csv(path: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    with _open(path, newline="") as file:
        reader = csv.reader(file, strict=True)
        try:
            header = [restore(name.strip()) for name in next(reader, [])]
            _check_header(header, FileLine(path, 1))
            for cells in reader:
                if len(cells) > len(header):
                    fix = "put a cell that holds commas in double quotes"
                    expected, actual = f"{len(header)} cells", f"{len(cells)} cells"
                    raise FileLine(path, reader.line_num).refuse("too many cells", expected, actual, fix)
                named = {name: restore(cell.strip()) for name, cell in zip(header, cells, strict=False)}
                if any(named.values()):
                    yield reader.line_num, {name: cell for name, cell in named.items() if cell}
        except csv.Error as error:
            fix = "close its quotes; put very long cells into JSON Lines instead"
            raise FileLine(path, reader.line_num).refuse(
                "not valid CSV", "comma-separated cells", error, fix
            ) from error


def _open(path: Path, newline: str | None = None) -> io.TextIOWrapper:
    return io.TextIOWrapper(remote.open_file(path), encoding="utf-8-sig", newline=newline)


def _check_header(header: list[str], where: FileLine) -> None:
    found = ", ".join(header) or "none"
    if "path" not in header:
        raise where.refuse(
            "no column 'path'", "a header with a column 'path'", f"columns: {found}", "name it in line 1"
        )
    if len(set(header)) < len(header):
        raise where.refuse("a column twice", "each column once", f"columns: {found}", "rename or remove one")


def _read_json_lines(path: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    with _open(path) as file:
        for line, text in enumerate(file, start=1):
            if text.strip():
                yield line, _check_object(_parse_json(text, FileLine(path, line)), FileLine(path, line))


def _read_json(path: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    with _open(path) as file:
        items = _parse_json(file.read(), FileLine(path, 1))
    if not isinstance(items, list):
        raise FileLine(path, 1).refuse(
            "not a list", "a JSON list of objects", type(items).__name__, "wrap the rows in [ ]"
        )
    for number, item in enumerate(items, start=1):
        yield number, _check_object(item, FileLine(path, number))


def _parse_json(text: str, where: FileLine) -> Any:
    try:
        return parse_json(text, what="it", error=ManifestError, constants=False)
    except ManifestError as error:
        fix = "correct it; one object per line in .jsonl"
        raise where.refuse("not valid JSON", error.expected, error.actual, fix) from error


def _check_object(item: Any, where: FileLine) -> Mapping[str, Any]:
    if not isinstance(item, dict):
        raise where.refuse("not an object", '{"path": …}', repr(item), "make each row an object")
    if "path" not in item:
        raise where.refuse("no 'path'", '{"path": …}', f"keys: {', '.join(item) or 'none'}", "add the image's path")
    return {key: value for key, value in item.items() if value is not None}


def _parse_row(cells: Mapping[str, Any], where: FileLine) -> Row:
    path = cells.get("path")
    if not isinstance(path, str) or not path:
        raise where.refuse("no path", "the path of an image", repr(path), "fill in the path")
    role = cells.get("role", "database")
    if role not in ROLES:
        raise where.refuse("unknown role", f"one of {', '.join(ROLES)}", repr(role), "correct the role")
    box = parse_box(cells["box"], where) if "box" in cells else None
    file = Path(path) if remote.is_remote(path) else where.file.parent / path
    ref = ImageRef(_parse_id(cells.get("id", path), where), file, box, _parse_attributes(cells, where))
    positives = _parse_ids(cells["positives"], where) if "positives" in cells else None
    ignored = frozenset(_parse_ids(cells.get("ignored", []), where))
    return Row(where.line, ref, role, positives, ignored, _parse_boxes(cells.get("positive_boxes", {}), where))


def _parse_attributes(cells: Mapping[str, Any], where: FileLine) -> dict[str, Attribute]:
    attributes: dict[str, Attribute] = {}
    if "label" in cells:
        attributes["label"] = _parse_id(cells["label"], where)
    if ("lat" in cells) != ("lon" in cells):
        raise where.refuse("half a position", "both lat and lon, or neither", "one of them", "fill in the other")
    for name, limit in (("lat", 90.0), ("lon", 180.0)):
        if name in cells:
            degrees = _parse_number(cells[name])
            if degrees is None or abs(degrees) > limit:
                expected = f"degrees from {-limit:g} to {limit:g}"
                fix = "give decimal degrees"
                if name == "lat" and degrees is not None and abs(degrees) <= 180 and _may_be_lat(cells["lon"]):
                    fix = f"lat and lon look swapped: lon is {cells['lon']}, which could be a latitude"
                raise where.refuse(f"{name} out of range", expected, repr(cells[name]), fix)
            attributes[name] = degrees
    for name, value in cells.items():
        if name not in COLUMNS:
            if not isinstance(value, (str, int, float, bool)):
                raise where.refuse(
                    f"{name!r} holds a {type(value).__name__}", "text, a number, true or false", value, "flatten it"
                )
            attributes[name] = _guess_number(value) if where.file.suffix.lower() == ".csv" else value
    return attributes


def _may_be_lat(value: Any) -> bool:
    degrees = _parse_number(value)
    return degrees is not None and abs(degrees) <= 90


def _parse_id(value: Any, where: FileLine) -> str:
    """An id or label; a whole number in JSON is read as text."""
    if isinstance(value, str) or type(value) is int:
        return str(value)
    raise where.refuse("not an id or label", "text", repr(value), "put it in quotes")


def parse_box(value: Any, where: FileLine) -> Box:
    parts = re.split(r"[,\s]+", value.strip()) if isinstance(value, str) else value
    numbers = [_parse_number(part) for part in parts] if isinstance(parts, list) else []
    if len(numbers) == 4:
        x0, y0, x1, y1 = numbers
        if x0 is not None and y0 is not None and x1 is not None and y1 is not None and x0 < x1 and y0 < y1:
            return x0, y0, x1, y1
    raise where.refuse(
        "not a box", "x0, y0, x1, y1 with x0 < x1 and y0 < y1", repr(value), "give four numbers in pixels"
    )


def _parse_boxes(value: Any, where: FileLine) -> dict[str, Box]:
    if isinstance(value, str):
        pairs: Iterable[tuple[str, Any]] = (_split_pair(part, where) for part in value.split(";") if part.strip())
    elif isinstance(value, dict):
        pairs = value.items()
    else:
        raise where.refuse("positive_boxes cannot be read", "{id: box}", repr(value), "give an object, id to box")
    return {id: parse_box(box, where) for id, box in pairs}


def _split_pair(part: str, where: FileLine) -> tuple[str, str]:
    id, colon, box = part.rpartition(":")
    if not colon:
        raise where.refuse("positive_boxes without an id", "id:x0 y0 x1 y1", repr(part), "put the id and a colon first")
    return id.strip(), box


def _parse_ids(value: Any, where: FileLine) -> dict[str, int]:
    """id → grade; the default grade is 1."""
    if isinstance(value, str):
        parts = value.split(";") if ";" in value else value.split()
        return {part.strip(): 1 for part in parts if part.strip()}
    if isinstance(value, list) and all(isinstance(id, (str, int)) for id in value):
        return {str(id): 1 for id in value}
    if isinstance(value, dict) and all(type(grade) is int and grade >= 0 for grade in value.values()):
        return dict(value)
    raise where.refuse("ids cannot be read", "a list of ids, or {id: grade from 0}", repr(value), "correct the ids")


def _guess_number(text: Attribute) -> Attribute:
    if not isinstance(text, str) or not NUMBER.fullmatch(text):
        return text
    if re.fullmatch(r"[+-]?\d+", text):
        return int(text) if len(text) <= 18 else text  # longer ones do not fit into 64 bits
    return float(text) if math.isfinite(float(text)) else text


def _parse_number(value: Any) -> float | None:
    """A finite number, or None."""
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return number if math.isfinite(number) and not isinstance(value, bool) else None
