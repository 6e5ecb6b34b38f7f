"""A catalogue of craters (CSV) in, Craters out, in the same order (`read_catalogue`).

The caller names the columns of longitude, latitude and diameter; by default they are the first of these in the header:

    longitude   LON_CIRC_IMG (Robbins), LON_ELLI_IMG, Lon, Long, Longitude, …
    latitude    LAT_CIRC_IMG, LAT_ELLI_IMG, Lat, Latitude, …
    diameter    DIAM_CIRC_IMG, DIAM_CIRCLE_IMAGE, Diam_km, Diameter (km), Diameter, …
    id          CRATER_ID, id; without such a column, the crater's number in the table, from 0

Case is ignored. Degrees and kilometres. Lines may end in CR, LF or both.
"""

import csv
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from resight.data.maps.map_image import Frame
from resight.errors import ManifestError

LON = ("lon_circ_img", "lon_elli_img", "longitude_circle_image", "lon", "long", "longitude")
LAT = ("lat_circ_img", "lat_elli_img", "latitude_circle_image", "lat", "latitude")
DIAMETER = (
    *("diam_circ_img", "diam_circle_image", "diam_elli_major_img", "diam_km", "diameter (km)", "diameter_km"),
    *("diameter", "diam"),
)
ID = ("crater_id", "id")


@dataclass(frozen=True)
class Crater:
    id: str
    lat: float
    lon: float
    diameter: float  # kilometres

    def frame(self, diameters: float, radius: float, east: float = 0.0, north: float = 0.0) -> Frame:
        """A square `diameters` wide, on a globe of `radius` metres.

        Its centre is `east` and `north` diameters away from the crater's.
        """
        metres = 1000 * self.diameter
        lat = self.lat + np.degrees(north * metres / radius)
        lon = self.lon + np.degrees(east * metres / radius) / np.cos(np.radians(self.lat))
        return Frame(float(lat), float(lon), diameters * metres)


def read_catalogue(path: Path, lon: str = "", lat: str = "", diameter: str = "", id: str = "") -> list[Crater]:
    """Read all craters; columns that are not named are found by the names in the module's docstring."""
    try:
        with path.open(encoding="utf-8-sig", newline=None) as file:
            reader = csv.reader(file, strict=True)
            header = [cell.strip() for cell in next(reader, [])]
            columns = ((lon, LON), (lat, LAT), (diameter, DIAMETER))
            chosen = [_find_column(header, name, known, path) for name, known in columns]
            named = _find_column(header, id, ID, path) if id or _has_any(header, ID) else None
            craters = [
                _parse(row, chosen, named, number, reader.line_num, path) for number, row in enumerate(reader) if row
            ]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise refuse(path, "the crater catalogue cannot be read", str(error)) from error
    _check_ids(craters, path)
    return craters


def refuse(path: Path, problem: str, actual: str) -> ManifestError:
    return ManifestError(
        f"{path}: {problem}",
        expected="a CSV table with a header and columns of longitude, latitude (degrees) and diameter (km)",
        actual=actual[:300],
        fix="give a whole catalogue, or name its columns with the settings lon, lat and diameter",
    )


def _find_column(header: Sequence[str], name: str, known: Iterable[str], path: Path) -> int:
    names = [cell.lower() for cell in header]
    for wanted in (name.lower(),) if name else known:
        if wanted in names:
            return names.index(wanted)
    sought = repr(name) if name else f"of {', '.join(known)}"
    raise refuse(path, f"the crater catalogue has no column {sought}", ", ".join(header) or "nothing")


def _has_any(header: Sequence[str], known: Iterable[str]) -> bool:
    return not {cell.lower() for cell in header}.isdisjoint(known)


def _parse(row: Sequence[str], columns: Sequence[int], named: int | None, number: int, line: int, path: Path) -> Crater:
    try:
        lon, lat, diameter = (float(row[column]) for column in columns)
        id = f"{number:04d}" if named is None else row[named].strip()
    except (ValueError, IndexError):
        lon = lat = diameter = float("nan")
        id = ""
    if not (abs(lon) <= 360 and abs(lat) <= 90 and 0 < diameter < float("inf")):
        raise refuse(path, f"line {line} (crater {number}) cannot be read", ", ".join(row))
    if not re.fullmatch(r"[^\x00-\x1f/\\]+", id):
        raise refuse(path, f"line {line} (crater {number}) has no usable id", repr(id))
    return Crater(id, lat, lon, diameter)


def _check_ids(craters: Sequence[Crater], path: Path) -> None:
    seen: set[str] = set()
    for crater in craters:
        if crater.id in seen:
            raise refuse(path, "two craters have the same id", repr(crater.id))
        seen.add(crater.id)
