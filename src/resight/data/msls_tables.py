"""The tables of one side (query or database) of a city of MSLS in, its Photos out, in order (`read_side`).

    raw.csv             key, lon, lat; ca (heading), captured_at, pano          may be absent where the next is there
    postprocessed.csv   key, easting, northing; night, view_direction           may be absent where raw.csv is there
    seq_info.csv        key; sequence_key (or sequence_id), frame_number        may be absent
    subtask_index.csv   key, and a column a subtask: True where an image takes part; absent: all of them do

The tables are joined by key. What cannot be read is refused with its line.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from resight.data.truth_files import read_table
from resight.errors import ManifestError
from resight.types import Attribute, ImageRef

TRUTHS = {"true": True, "1": True, "1.0": True, "false": False, "0": False, "0.0": False}
FIX = "`resight data check msls ROOT` tells what to download and where it goes"
TEXTS = {"sequence": ("sequence_key", "sequence_id"), "view": ("view_direction",), "captured_at": ("captured_at",)}


@dataclass(frozen=True)
class Photo:
    ref: ImageRef
    point: tuple[float, float] | None  # easting and northing, metres
    heading: float  # degrees; NaN: not known


@dataclass(frozen=True)
class Row:
    cells: Mapping[str, str]
    place: str  # file and line, for messages


def read_side(folder: Path, subtask: str | None, panoramas: bool) -> list[Photo]:
    """The photos that take part in `subtask` (None: whatever the table of subtasks says), with or without panoramas."""
    raw = _read_rows(folder / "raw.csv", ("lon", "lat"), required=False)
    post = _read_rows(folder / "postprocessed.csv", ("easting", "northing"), required=not raw)
    sequences = _read_rows(folder / "seq_info.csv", (), required=False)
    marks = _read_rows(folder / "subtask_index.csv", (subtask,), required=subtask != "all") if subtask else {}
    city, side, images = folder.parent.name, folder.name, folder / "images"
    photos = []
    for key, row in (post or raw).items():
        for name, table in (("raw.csv", raw), ("subtask_index.csv", marks)):
            if table and key not in table:
                raise _refuse(row.place, f"{key!r} is not in {name}", "the same images in all tables", key)
        if subtask and marks and not _parse_truth(marks[key], subtask):
            continue
        about = raw.get(key, row)
        if not panoramas and "pano" in about.cells and _parse_truth(about, "pano"):
            continue
        more = sequences[key].cells if key in sequences else {}
        attributes, point = _parse(Row({**about.cells, **row.cells, **more}, row.place))
        ref = ImageRef(f"{city}/{side}/{key}", images / f"{key}.jpg", attributes={"city": city, **attributes})
        photos.append(Photo(ref, point, float(attributes.get("heading", np.nan))))
    return photos


def _parse(row: Row) -> tuple[dict[str, Attribute], tuple[float, float] | None]:
    """What is known of a photo, and its easting and northing."""
    attributes: dict[str, Attribute] = {}
    for name, column, limit in (("lat", "lat", 90), ("lon", "lon", 180), ("heading", "ca", 360)):
        if row.cells.get(column, "").strip():
            attributes[name] = _parse_number(row, column, limit)
    if "night" in row.cells:
        attributes["night"] = _parse_truth(row, "night")
    if "frame_number" in row.cells:
        attributes["frame"] = int(_parse_number(row, "frame_number"))
    for name, columns in TEXTS.items():
        value = next((row.cells[column] for column in columns if row.cells.get(column)), "")
        if value:
            attributes[name] = value
    point = None
    if "easting" in row.cells:
        point = _parse_number(row, "easting"), _parse_number(row, "northing")
    elif not {"lat", "lon"} <= attributes.keys():
        raise _refuse(row.place, "there is no position", "lat and lon, or easting and northing", "neither")
    return attributes, point


def _read_rows(path: Path, columns: Sequence[str], required: bool) -> dict[str, Row]:
    """Rows by key; none where the file is neither there nor required."""
    if not required and not path.exists():
        return {}
    rows: dict[str, Row] = {}
    file = str(path)
    for line, cells in read_table(path, ("key", *columns), FIX):
        key, place = cells["key"].strip(), f"{file}, line {line}"
        if not key or key in rows or "/" in key or "\\" in key:
            raise _refuse(place, "the key cannot be used", "the name of an image's file, each once", repr(key))
        rows[key] = Row(cells, place)
    return rows


def _parse_number(row: Row, column: str, limit: float = np.inf) -> float:
    try:
        value = float(row.cells[column])
    except ValueError:
        value = np.nan
    if not (np.isfinite(value) and abs(value) <= limit):
        expected = "a number" if limit == np.inf else f"{-limit:g} to {limit:g}"
        raise _refuse(row.place, f"{column} cannot be read", expected, repr(row.cells[column]))
    return value


def _parse_truth(row: Row, column: str) -> bool:
    value = TRUTHS.get(row.cells[column].strip().lower())
    if value is None:
        raise _refuse(row.place, f"{column} cannot be read", "True or False", repr(row.cells[column]))
    return value


def _refuse(place: str, problem: str, expected: str, actual: str) -> ManifestError:
    return ManifestError(f"{place}: {problem}", expected=expected, actual=actual[:300], fix=FIX)
