"""A catalogue of craters in, Craters out: one by one (`stream_catalogue`), as a list, or as a compact table.

The catalogue is a table of text (CSV; also with tabs or semicolons). The caller names the columns of longitude,
latitude and diameter; by default they are the first of these in the header:

    longitude   LON_CIRC_IMG (Robbins), LON_ELLI_IMG, LONGITUDE_CIRCLE_IMAGE (Robbins, Mars), Lon, Long, Longitude, …
    latitude    LAT_CIRC_IMG, LAT_ELLI_IMG, LATITUDE_CIRCLE_IMAGE, Lat, Latitude, …
    diameter    DIAM_CIRC_IMG, DIAM_CIRCLE_IMAGE, Diam_km, Diameter (km), Diameter, …
    id          CRATER_ID, id; without such a column, the crater's number in the table, from 0

Case is ignored. Degrees and kilometres. Lines may end in CR, LF or both. It is read line by line: the catalogue may be
larger than memory, and a `CraterTable` takes about 50 bytes for each crater.
"""

import csv
import re
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

import numpy as np
from numpy.typing import NDArray

from resight.data.maps.map_image import Frame
from resight.errors import ManifestError
from resight.files.fingerprint import fingerprint

LON = ("lon_circ_img", "lon_elli_img", "longitude_circle_image", "lon", "long", "longitude")
LAT = ("lat_circ_img", "lat_elli_img", "latitude_circle_image", "lat", "latitude")
DIAMETER = (
    *("diam_circ_img", "diam_circle_image", "diam_elli_major_img", "diam_km", "diameter (km)", "diameter_km"),
    *("diameter", "diam"),
)
ID = ("crater_id", "id")
LONGEST_LINE = 1 << 17  # letters
DELIMITERS = (",", "\t", ";")
LISTED = 1000  # lines left out that a table lists; it counts them all


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


@dataclass(frozen=True)
class Columns:
    """Names of the catalogue's columns; empty: the usual names."""

    lon: str = ""
    lat: str = ""
    diameter: str = ""
    id: str = ""
    is_west: bool = False  # longitudes grow to the west; those of the craters never do


class CraterTable:
    """Craters in the order of their catalogue, in a few bytes each.

    `bad` counts the lines left out; `bad_lines` lists the first of them, each with the reason.
    """

    def __init__(self) -> None:
        self.bad = 0
        self.bad_lines: list[str] = []
        self._numbers: array[float] = array("d")  # latitude, longitude, diameter of one crater after the other
        self._ids = bytearray()
        self._ends: array[int] = array("q", [0])  # of the ids

    def add(self, crater: Crater) -> None:
        self._numbers.extend((crater.lat, crater.lon, crater.diameter))
        self._ids += crater.id.encode()
        self._ends.append(len(self._ids))

    def leave_out(self, line: str) -> None:
        self.bad += 1
        if len(self.bad_lines) < LISTED:
            self.bad_lines.append(line)

    def __len__(self) -> int:
        return len(self._ends) - 1

    def __getitem__(self, row: int) -> Crater:
        name = self._ids[self._ends[row] : self._ends[row + 1]].decode()
        return Crater(name, *self._numbers[3 * row : 3 * row + 3])

    @property
    def numbers(self) -> NDArray[np.float64]:
        """[n, 3] latitude, longitude, diameter in km."""
        return np.frombuffer(self._numbers).reshape(-1, 3)

    def find_twin(self) -> tuple[int, int] | None:
        """The rows of two craters with the same id, if there are any."""
        ids = (bytes(self._ids[begin:end]) for begin, end in zip(self._ends, self._ends[1:], strict=False))
        digests = np.fromiter((int(fingerprint(name, 16), 16) for name in ids), np.uint64, len(self))
        order = np.argsort(digests, kind="stable")
        for place in np.flatnonzero(digests[order][1:] == digests[order][:-1]):
            one, other = int(order[place]), int(order[place + 1])
            if self[one].id == self[other].id:
                return one, other
        return None


def read_catalogue(path: Path, lon: str = "", lat: str = "", diameter: str = "", id: str = "") -> list[Crater]:
    """All craters; columns that are not named are found by the names in the module's docstring."""
    craters = list(stream_catalogue(path, Columns(lon, lat, diameter, id)))
    seen: set[str] = set()
    for crater in craters:
        if crater.id in seen:
            raise _refuse_twins(path, crater.id)
        seen.add(crater.id)
    return craters


def read_table(path: Path, columns: Columns | None = None, *, skip_bad: bool = False) -> CraterTable:
    """All craters in a compact table; with `skip_bad` it lists lines that cannot be read instead of refusing them."""
    table = CraterTable()
    for crater in stream_catalogue(path, columns or Columns(), table.leave_out if skip_bad else None):
        table.add(crater)
    if twins := table.find_twin():
        raise _refuse_twins(path, table[twins[0]].id, f"craters {twins[0]} and {twins[1]}, counted from 0")
    if not len(table):
        raise refuse(path, "the crater catalogue has no crater", f"{table.bad} lines that cannot be read")
    return table


def stream_catalogue(path: Path, columns: Columns, skip: Callable[[str], None] | None = None) -> Iterator[Crater]:
    """The craters one by one; `skip` is called with each line that cannot be read, which is else an error."""
    try:
        with path.open(encoding="utf-8-sig", newline=None) as file:
            lines = _read_lines(file, path)
            first = next(lines, "")
            delimiter = max(DELIMITERS, key=first.count)
            header = [cell.strip() for cell in next(csv.reader([first], delimiter=delimiter, strict=True), [])]
            wanted = ((columns.lon, LON), (columns.lat, LAT), (columns.diameter, DIAMETER))
            chosen = [_find_column(header, name, known, path) for name, known in wanted]
            named = _find_column(header, columns.id, ID, path) if columns.id or _has_any(header, ID) else None
            reader = csv.reader(lines, delimiter=delimiter, strict=True)
            for number, row in enumerate(reader):
                if not row:
                    continue
                crater = _parse(row, chosen, named, number, columns.is_west)
                if isinstance(crater, Crater):
                    yield crater
                elif skip:
                    skip(f"line {reader.line_num + 1}: {crater}")
                else:
                    raise _refuse_line(path, reader.line_num + 1, number, crater, row)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise refuse(path, "the crater catalogue cannot be read", str(error)) from error


def refuse(path: Path, problem: str, actual: str, fix: str = "") -> ManifestError:
    return ManifestError(
        f"{path}: {problem}",
        expected="a CSV table with a header and columns of longitude, latitude (degrees) and diameter (km)",
        actual=actual[:300],
        fix=fix or "give a whole catalogue, or name its columns with the settings lon, lat and diameter",
    )


def _read_lines(file: TextIO, path: Path) -> Iterator[str]:
    while line := file.readline(LONGEST_LINE):
        if len(line) == LONGEST_LINE:
            raise refuse(path, f"the crater catalogue has a line of more than {LONGEST_LINE:,} letters", "no table")
        yield line


def _find_column(header: Sequence[str], name: str, known: Iterable[str], path: Path) -> int:
    names = [cell.lower() for cell in header]
    for wanted in (name.lower(),) if name else known:
        if wanted in names:
            return names.index(wanted)
    sought = repr(name) if name else f"of {', '.join(known)}"
    raise refuse(path, f"the crater catalogue has no column {sought}", ", ".join(header) or "nothing")


def _has_any(header: Sequence[str], known: Iterable[str]) -> bool:
    return not {cell.lower() for cell in header}.isdisjoint(known)


def _parse(row: Sequence[str], columns: Sequence[int], named: int | None, number: int, is_west: bool) -> Crater | str:
    """The crater of a row, or what is wrong with the row."""
    try:
        lon, lat, diameter = (float(row[column]) for column in columns)
        name = f"{number:04d}" if named is None else row[named].strip()
    except (ValueError, IndexError):
        return "it cannot be read"
    if not (abs(lon) <= 360 and abs(lat) <= 90 and 0 < diameter < float("inf")):
        return "it cannot be read: no such longitude, latitude or diameter"
    if not re.fullmatch(r"[^\x00-\x1f/\\]+", name):
        return f"it has no usable id: {name!r}"
    return Crater(name, lat, -lon % 360 if is_west else lon, diameter)


def _refuse_line(path: Path, line: int, number: int, problem: str, row: Sequence[str]) -> ManifestError:
    return refuse(
        path,
        f"line {line} (crater {number}): {problem}",
        ", ".join(row),
        "correct the line, or name the columns with lon, lat and diameter; `resight craters --skip-bad` leaves it out",
    )


def _refuse_twins(path: Path, name: str, where: str = "") -> ManifestError:
    actual = f"{name!r}: {where}" if where else repr(name)
    fix = "name a column of unique ids, or remove one of them; a table without an id column is numbered"
    return refuse(path, "two craters have the same id", actual, fix)
