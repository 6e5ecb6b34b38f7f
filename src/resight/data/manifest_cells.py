"""Cells of a manifest in, checked values out; resight.data.manifest_rows says what each column holds."""

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from resight.errors import ManifestError
from resight.types import Attribute, Box

COLUMNS = ("path", "id", "label", "box", "lat", "lon", "role", "positives", "ignored", "positive_boxes")
NUMBER = re.compile(r"[+-]?(0|[1-9]\d*)(\.\d*)?([eE][+-]?\d+)?|[+-]?\.\d+([eE][+-]?\d+)?", re.ASCII)


@dataclass(frozen=True)
class Place:
    """Where in a manifest a cell stands, for messages."""

    file: Path
    line: int

    def refuse(self, problem: str, expected: str, actual: object, fix: str) -> ManifestError:
        return ManifestError(
            f"{self.file}, line {self.line}: {problem}", expected=expected, actual=str(actual)[:300], fix=fix
        )


def parse_attributes(cells: Mapping[str, Any], place: Place) -> dict[str, Attribute]:
    attributes: dict[str, Attribute] = {}
    if "label" in cells:
        attributes["label"] = parse_id(cells["label"], place)
    if ("lat" in cells) != ("lon" in cells):
        raise place.refuse("half a position", "both lat and lon, or neither", "one of them", "fill in the other")
    for name, limit in (("lat", 90.0), ("lon", 180.0)):
        if name in cells:
            degrees = _parse_number(cells[name])
            if degrees is None or abs(degrees) > limit:
                expected = f"degrees from {-limit:g} to {limit:g}"
                fix = "give decimal degrees"
                if name == "lat" and degrees is not None and abs(degrees) <= 180 and _may_be_lat(cells["lon"]):
                    fix = f"lat and lon look swapped: lon is {cells['lon']}, which could be a latitude"
                raise place.refuse(f"{name} out of range", expected, repr(cells[name]), fix)
            attributes[name] = degrees
    for name, value in cells.items():
        if name not in COLUMNS:
            if not isinstance(value, (str, int, float, bool)):
                raise place.refuse(
                    f"{name!r} holds a {type(value).__name__}", "text, number or truth", value, "flatten it"
                )
            attributes[name] = _guess_number(value) if place.file.suffix.lower() == ".csv" else value
    return attributes


def _may_be_lat(value: Any) -> bool:
    degrees = _parse_number(value)
    return degrees is not None and abs(degrees) <= 90


def parse_id(value: Any, place: Place) -> str:
    """An id or label; a whole number in JSON counts as its text."""
    if isinstance(value, str) or type(value) is int:
        return str(value)
    raise place.refuse("not an id or label", "text", repr(value), "put it in quotes")


def _guess_number(text: Attribute) -> Attribute:
    if not isinstance(text, str) or not NUMBER.fullmatch(text):
        return text
    if re.fullmatch(r"[+-]?\d+", text):
        return int(text) if len(text) <= 18 else text  # longer ones do not fit 64 bits
    return float(text) if math.isfinite(float(text)) else text


def _parse_number(value: Any) -> float | None:
    """A finite number, or None."""
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return number if math.isfinite(number) and not isinstance(value, bool) else None


def parse_box(value: Any, place: Place) -> Box:
    parts = re.split(r"[,\s]+", value.strip()) if isinstance(value, str) else value
    numbers = [_parse_number(part) for part in parts] if isinstance(parts, list) else []
    if len(numbers) == 4:
        x0, y0, x1, y1 = numbers
        if x0 is not None and y0 is not None and x1 is not None and y1 is not None and x0 < x1 and y0 < y1:
            return x0, y0, x1, y1
    raise place.refuse(
        "not a box", "x0, y0, x1, y1 with x0 < x1 and y0 < y1", repr(value), "give four numbers in pixels"
    )


def parse_boxes(value: Any, place: Place) -> dict[str, Box]:
    if isinstance(value, str):
        pairs: Iterable[tuple[str, Any]] = (_split_pair(part, place) for part in value.split(";") if part.strip())
    elif isinstance(value, dict):
        pairs = value.items()
    else:
        raise place.refuse("positive_boxes cannot be read", "{id: box}", repr(value), "give an object, id to box")
    return {id: parse_box(box, place) for id, box in pairs}


def _split_pair(part: str, place: Place) -> tuple[str, str]:
    id, colon, box = part.rpartition(":")
    if not colon:
        raise place.refuse("positive_boxes without an id", "id:x0 y0 x1 y1", repr(part), "put the id and a colon first")
    return id.strip(), box


def parse_ids(value: Any, place: Place) -> dict[str, int]:
    """id → grade; 1 where no grade is given."""
    if isinstance(value, str):
        parts = value.split(";") if ";" in value else value.split()
        return {part.strip(): 1 for part in parts if part.strip()}
    if isinstance(value, list) and all(isinstance(id, (str, int)) for id in value):
        return {str(id): 1 for id in value}
    if isinstance(value, dict) and all(type(grade) is int and grade >= 0 for grade in value.values()):
        return dict(value)
    raise place.refuse("ids cannot be read", "a list of ids, or {id: grade from 0}", repr(value), "correct the ids")
