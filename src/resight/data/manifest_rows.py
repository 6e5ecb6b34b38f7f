"""A manifest file in, its rows out one by one, each cell checked (`read_rows`).

CSV (.csv, with a header), JSON lines (.jsonl, .ndjson) or one JSON list (.json); UTF-8, with or without a mark.

    path            relative to the manifest's folder, absolute, or an address (s3://bucket/a.jpg); must be there
    id              default: the path as written
    label           text
    box             "x0,y0,x1,y1" or "x0 y0 x1 y1"; in JSON also a list
    lat, lon        degrees
    role            database (the default), query or both
    positives       ids apart by spaces, or by `;` when an id has a space in it; in JSON a list or {id: grade}
    ignored         ids, as above
    positive_boxes  "id:x0 y0 x1 y1;id2:…"; in JSON {id: box}
    any other       an attribute; a CSV cell that looks like a number becomes one ("007" does not)

An empty CSV cell and a JSON null mean that nothing is said.
"""

import csv
import io
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from resight import places
from resight.data.manifest_cells import Place, parse_attributes, parse_box, parse_boxes, parse_id, parse_ids
from resight.errors import ManifestError
from resight.types import Box, ImageRef

ROLES = ("database", "query", "both")
SUFFIXES = (".csv", ".jsonl", ".ndjson", ".json")


@dataclass(frozen=True)
class Row:
    line: int  # of the file; in a .json list, the number of the item
    ref: ImageRef
    role: str
    positives: Mapping[str, int] | None  # None: the manifest does not say
    ignored: frozenset[str]
    boxes: Mapping[str, Box]


def read_rows(path: Path) -> Iterator[Row]:
    """The rows of a manifest in order, streamed; ids are checked to be unique."""
    lines: dict[str, int] = {}
    for line, cells in _read_cells(path):
        place = Place(path, line)
        row = _parse_row(cells, place)
        if row.ref.id in lines:
            problem = f"the id {row.ref.id!r} was used in line {lines[row.ref.id]} already"
            fix = "give each row an id of its own (without an id column, the path is the id)"
            raise place.refuse(problem, "unique ids", f"lines {lines[row.ref.id]} and {line}", fix)
        lines[row.ref.id] = line
        yield row


def _read_cells(path: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    readers = {".csv": _read_csv, ".jsonl": _read_json_lines, ".ndjson": _read_json_lines, ".json": _read_json}
    reader = readers.get(path.suffix.lower())
    there = path.is_file() if not places.is_remote(path) else places.look_up(path) is not None
    if reader is None or not there:
        raise ManifestError(
            f"{places.to_url(path)} is not a manifest",
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
            header = [name.strip() for name in next(reader, [])]
            _check_header(header, Place(path, 1))
            for cells in reader:
                if len(cells) > len(header):
                    fix = "put a cell that holds commas in double quotes"
                    expected, actual = f"{len(header)} cells", f"{len(cells)} cells"
                    raise Place(path, reader.line_num).refuse("too many cells", expected, actual, fix)
                named = {name: cell.strip() for name, cell in zip(header, cells, strict=False)}
                if any(named.values()):
                    yield reader.line_num, {name: cell for name, cell in named.items() if cell}
        except csv.Error as error:
            fix = "close its quotes; put very long cells into JSON lines instead"
            raise Place(path, reader.line_num).refuse("not valid CSV", "comma-separated cells", error, fix) from error


def _open(path: Path, newline: str | None = None) -> io.TextIOWrapper:
    return io.TextIOWrapper(places.open_place(path), encoding="utf-8-sig", newline=newline)


def _check_header(header: list[str], place: Place) -> None:
    found = ", ".join(header) or "none"
    if "path" not in header:
        raise place.refuse(
            "no column 'path'", "a header with a column 'path'", f"columns: {found}", "name it in line 1"
        )
    if len(set(header)) < len(header):
        raise place.refuse("a column twice", "each column once", f"columns: {found}", "rename or remove one")


def _read_json_lines(path: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    with _open(path) as file:
        for line, text in enumerate(file, start=1):
            if text.strip():
                yield line, _check_object(_parse_json(text, Place(path, line)), Place(path, line))


def _read_json(path: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    with _open(path) as file:
        items = _parse_json(file.read(), Place(path, 1))
    if not isinstance(items, list):
        raise Place(path, 1).refuse(
            "not a list", "a JSON list of objects", type(items).__name__, "wrap the rows in [ ]"
        )
    for number, item in enumerate(items, start=1):
        yield number, _check_object(item, Place(path, number))


def _parse_json(text: str, place: Place) -> Any:
    try:
        return json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise place.refuse("not valid JSON", "JSON", error, "correct it; one object a line in .jsonl") from error


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a number in JSON")


def _check_object(item: Any, place: Place) -> Mapping[str, Any]:
    if not isinstance(item, dict):
        raise place.refuse("not an object", '{"path": …}', repr(item), "make each row an object")
    if "path" not in item:
        raise place.refuse("no 'path'", '{"path": …}', f"keys: {', '.join(item) or 'none'}", "add the image's path")
    return {key: value for key, value in item.items() if value is not None}


def _parse_row(cells: Mapping[str, Any], place: Place) -> Row:
    path = cells.get("path")
    if not isinstance(path, str) or not path:
        raise place.refuse("no path", "the path of an image", repr(path), "fill in the path")
    role = cells.get("role", "database")
    if role not in ROLES:
        raise place.refuse("unknown role", f"one of {', '.join(ROLES)}", repr(role), "correct the role")
    box = parse_box(cells["box"], place) if "box" in cells else None
    file = Path(path) if places.is_remote(path) else place.file.parent / path
    ref = ImageRef(parse_id(cells.get("id", path), place), file, box, parse_attributes(cells, place))
    positives = parse_ids(cells["positives"], place) if "positives" in cells else None
    ignored = frozenset(parse_ids(cells.get("ignored", []), place))
    return Row(place.line, ref, role, positives, ignored, parse_boxes(cells.get("positive_boxes", {}), place))
