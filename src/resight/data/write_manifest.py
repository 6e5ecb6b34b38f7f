"""Write a data set as a manifest (`write_manifest`): a Dataset in, a CSV or JSON file out.

The data set `manifest` reads the same database, queries, judgements, boxes and ignored images from it; columns and
formats are those of resight.data.manifest_rows. An image that is also a query becomes one row with the role `both`. A
path is relative if the image lies below the manifest's folder, and absolute otherwise.

A manifest cannot hold everything, and CSV less than JSON: grades other than 1, true and false, and texts that look like
numbers need JSON Lines. The writer reads the file back row by row before it takes its place, and refuses a data set
that would come back different, with the reason.
"""

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from resight.data.manifest_rows import COLUMNS, NUMBER, SUFFIXES, Row, read_rows
from resight.data.sets.manifest import check_latlon
from resight.data.spatial_index import LatLonIndex
from resight.errors import ManifestError
from resight.files import remote
from resight.files.atomic import write_atomic
from resight.files.csv_cells import make_writer
from resight.types import Attribute, Box, Dataset, ImageRef, Judgement

OWN_COLUMNS = ("label", "lat", "lon")  # columns that are attributes
JSON_LINES = "write JSON Lines instead, e.g. --out manifest.jsonl"

Cells = dict[str, Any]


@dataclass(frozen=True)
class Written:
    database: int
    queries: int
    both: int  # images that are in the database and queries
    reordered: bool  # queries follow the order of the database, because an image has one row


@dataclass(frozen=True)
class Item:
    """A row to write."""

    ref: ImageRef
    role: str
    judgement: Judgement | None  # of a query


def write_manifest(dataset: Dataset, path: Path) -> Written:
    """Write the manifest `path`, whose ending (.csv, .jsonl, .ndjson or .json) chooses the format."""
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES or remote.is_remote(path):
        raise _refuse(
            f"cannot write a manifest to {path}", f"a local file that ends in {', '.join(SUFFIXES)}", str(path)
        )
    _check(dataset)
    check_latlon(LatLonIndex.of(dataset.database), dataset.queries, dataset.name)
    write = {".csv": _write_csv, ".json": _write_json}.get(suffix, _write_json_lines)
    with write_atomic(path) as temporary:
        readable = temporary.with_name(f"{temporary.name}{path.suffix}")  # its ending tells the reader the format
        try:
            with readable.open("w", encoding="utf-8", newline="") as file:
                write(dataset, _name_paths(path.parent), file)
            _compare(dataset, readable)
            readable.replace(temporary)
        except UnicodeEncodeError as error:
            raise _refuse("a name is not valid UTF-8", "names in UTF-8", f"{error.object!r:.200}") from error
        finally:
            readable.unlink(missing_ok=True)
    queries = [(item.ref.id, item.role) for item in _list_items(dataset) if item.role != "database"]
    return Written(
        len(dataset.database),
        len(dataset.queries),
        sum(role == "both" for _, role in queries),
        [id for id, _ in queries] != [ref.id for ref in dataset.queries],
    )


def _list_items(dataset: Dataset) -> Iterator[Item]:
    """Rows in an order that keeps that of the database, and that of the queries where an order can keep both."""
    queries = {ref.id: (number, ref) for number, ref in enumerate(dataset.queries)}
    known = {ref.id for ref in dataset.database} if queries else set()
    alone = [ref for ref in dataset.queries if ref.id not in known]
    written = 0
    for ref in dataset.database:
        if ref.id not in queries:
            yield Item(ref, "database", None)
            continue
        while written < len(alone) and queries[alone[written].id][0] < queries[ref.id][0]:
            yield Item(alone[written], "query", dataset.judgements[alone[written].id])
            written += 1
        yield Item(ref, "both", dataset.judgements[ref.id])
    for ref in alone[written:]:
        yield Item(ref, "query", dataset.judgements[ref.id])


def _check(dataset: Dataset) -> None:
    """Refuse what no format of a manifest can hold."""
    database = _by_id(dataset.database, "database")
    queries = _by_id(dataset.queries, "queries")
    if dataset.judgements.keys() != queries.keys():
        odd = sorted(dataset.judgements.keys() ^ queries.keys())[0]
        raise _refuse("queries and judgements differ", "one judgement per query", odd)
    for ref in (*dataset.database, *dataset.queries):
        if reserved := [name for name in ref.attributes if name in COLUMNS and name not in OWN_COLUMNS]:
            raise _refuse(f"{ref.id!r} has an attribute that is a column of manifests", "other names", reserved[0])
        if ("lat" in ref.attributes) != ("lon" in ref.attributes):
            raise _refuse(f"{ref.id!r} has half a position", "both lat and lon, or neither", "one of them")
        if ref.unsaid:
            raise _refuse(
                f"{ref.id!r} hides attributes of its file", "no such attributes", ", ".join(sorted(ref.unsaid))
            )
    for name, query in queries.items():
        image, judgement = database.get(name), dataset.judgements[name]
        if image is not None and image != query:
            raise _refuse(f"the id {name!r} is one image in the database and another as a query", "unique ids", name)
        if image is not None and name not in judgement.grades and name not in judgement.ignored:
            problem = f"the query {name!r} is in the database, and neither ignored nor a positive"
            raise _refuse(problem, "a query that is ignored in its own ranking, as a manifest has it", "it counts")
        named = {*judgement.grades, *judgement.ignored, *judgement.boxes}
        if foreign := sorted(named - database.keys()):
            raise _refuse(f"the judgement of {name!r} names no database image", "ids of the database", foreign[0])


def _by_id(refs: tuple[ImageRef, ...], side: str) -> dict[str, ImageRef]:
    known = {ref.id: ref for ref in refs}
    if len(known) < len(refs):
        raise _refuse(f"an id occurs twice in the {side}", "unique ids", f"{len(refs) - len(known)} repeated ids")
    return known


def _name_paths(folder: Path) -> Callable[[Path], str]:
    base = os.path.join(os.path.abspath(folder), "")  # noqa: PTH100, PTH118 - millions of paths, and links as they are

    def name(path: Path) -> str:
        if remote.is_remote(path):
            return remote.to_url(path)
        absolute = os.path.abspath(path)  # noqa: PTH100
        return (absolute[len(base) :] if absolute.startswith(base) else absolute).replace(os.sep, "/")

    return name


def _write_json_lines(dataset: Dataset, name: Callable[[Path], str], file: TextIO) -> None:
    for item in _list_items(dataset):
        file.write(_dump(item, name) + "\n")


def _write_json(dataset: Dataset, name: Callable[[Path], str], file: TextIO) -> None:
    for number, item in enumerate(_list_items(dataset)):
        file.write(("[\n" if number == 0 else ",\n") + _dump(item, name))
    file.write("\n]\n")


def _dump(item: Item, name: Callable[[Path], str]) -> str:
    ref, judgement = item.ref, item.judgement
    cells: Cells = {"path": name(ref.path), "id": ref.id, "role": item.role, "box": ref.box, **ref.attributes}
    if judgement is not None:
        plain = all(grade == 1 for grade in judgement.grades.values())
        cells["positives"] = list(judgement.grades) if plain else dict(judgement.grades)
        cells["ignored"] = sorted(judgement.ignored) or None
        cells["positive_boxes"] = dict(judgement.boxes) or None
    try:
        kept = {key: value for key, value in cells.items() if value is not None}
        return json.dumps(kept, ensure_ascii=False, allow_nan=False)
    except ValueError as error:
        raise _refuse(f"{ref.id!r} has a number that JSON cannot hold", "finite numbers", str(error)) from error


def _write_csv(dataset: Dataset, name: Callable[[Path], str], file: TextIO) -> None:
    attributes = dict.fromkeys(key for ref in (*dataset.database, *dataset.queries) for key in ref.attributes)
    header = ["path", "id", "role", "box", *attributes, "positives", "ignored", "positive_boxes"]
    table = make_writer(file, "\n")
    table.writerow(header)
    for item in _list_items(dataset):
        ref, judgement = item.ref, item.judgement
        cells: Cells = {"path": name(ref.path), "id": ref.id, "role": item.role, "box": _format_box(ref.box)}
        cells |= {key: _format_attribute(key, value, ref.id) for key, value in ref.attributes.items()}
        if judgement is not None:
            if any(grade != 1 for grade in judgement.grades.values()):
                raise _refuse(f"the query {ref.id!r} has graded positives", "grades of 1 in CSV", "others", JSON_LINES)
            cells["positives"] = (
                _join(judgement.grades, ref.id) or ";"
            )  # ";": none, instead of those by label or position
            cells["ignored"] = _join(sorted(judgement.ignored), ref.id)
            cells["positive_boxes"] = ";".join(f"{id}:{_format_box(box)}" for id, box in judgement.boxes.items())
        table.writerow([cells.get(column, "") for column in header])


def _format_box(box: Box | None) -> str:
    return " ".join(map(repr, box)) if box else ""


def _format_attribute(name: str, value: Attribute, id: str) -> str:
    looks_like_number = isinstance(value, str) and name != "label" and NUMBER.fullmatch(value)
    if isinstance(value, bool) or looks_like_number or value == "":
        problem = f"{id!r}: CSV cannot hold {name} = {value!r}"
        raise _refuse(problem, "text that does not look like a number, or a number", type(value).__name__, JSON_LINES)
    return value if isinstance(value, str) else repr(value)


def _join(ids: Mapping[str, int] | list[str], query: str) -> str:
    if odd := [id for id in ids if ";" in id]:
        raise _refuse(f"the judgement of {query!r} names {odd[0]!r}", "ids without ; in CSV", odd[0], JSON_LINES)
    spaced = any(re.search(r"\s", id) for id in ids)
    return ";".join([*ids, ""] if len(ids) == 1 else ids) if spaced else " ".join(ids)


def _compare(dataset: Dataset, path: Path) -> None:
    """Read every row back, and refuse the first that differs."""
    fix = JSON_LINES if path.suffix.lower() == ".csv" else "rename it, or leave it out"
    rows = read_rows(path)
    for item in _list_items(dataset):
        try:
            row = next(rows)
        except ManifestError as error:
            raise _refuse(f"a manifest cannot hold {item.ref.id!r}", error.expected, error.actual, fix) from error
        for part, wanted, found in _list_parts(item, row):
            if wanted != found:
                problem = f"a manifest cannot hold {part} of {item.ref.id!r}"
                raise _refuse(problem, f"{wanted!r:.200}", f"read back as {found!r:.200}", fix)


def _list_parts(item: Item, row: Row) -> Iterator[tuple[str, object, object]]:
    """The name of each part of a row, the part as given, and as read back."""
    judgement = item.judgement or Judgement({})
    yield "the id", item.ref.id, row.ref.id
    yield "the path", _normalise(item.ref.path), _normalise(row.ref.path)
    yield "the role", item.role, row.role
    yield "the box", item.ref.box, row.ref.box
    yield "the attributes", _with_types(item.ref.attributes), _with_types(row.ref.attributes)
    yield "the positives", dict(judgement.grades), dict(row.positives or {})
    yield "the ignored images", judgement.ignored, row.ignored
    yield "the boxes of the positives", dict(judgement.boxes), dict(row.boxes)


def _normalise(path: Path) -> str:
    return remote.to_url(path) if remote.is_remote(path) else os.path.abspath(path)  # noqa: PTH100


def _with_types(attributes: Mapping[str, Attribute]) -> dict[str, tuple[Attribute, type]]:
    """True is not 1, and 3 is not 3.0, except that positions are read as floats."""
    return {name: (value, float if name in ("lat", "lon") else type(value)) for name, value in attributes.items()}


def _refuse(problem: str, expected: str, actual: str, fix: str = "") -> ManifestError:
    return ManifestError(problem, expected=expected, actual=actual[:300], fix=fix or "correct the data set")
