"""Street photos from Berlin-Halensee (Mapillary, CC BY-SA 4.0) in, a Dataset out.

    root/images.csv             file, role (query or database), lat, lon, heading_deg
    root/query/*.jpg, root/database/*.jpg

The same place is what was taken at most `metres` away, whichever way the camera looked; with `heading`, the cameras may
also differ by at most so many degrees. A query that nothing in the database is so near to stays, as a query without
positives.
"""

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from resight.data.sets import find_root
from resight.errors import ManifestError
from resight.geodesy import metres_between, turn_between
from resight.plugins import check_range
from resight.types import Dataset, ImageRef, Judgement

TABLE = "images.csv"
COLUMNS = ("file", "role", "lat", "lon", "heading_deg")


@dataclass(frozen=True)
class Config:
    metres: float = 25.0
    heading: float | None = None  # degrees that the cameras of the same place may differ by; None: any

    def __post_init__(self) -> None:
        check_range("metres", self.metres, 0)
        if self.heading is not None:
            check_range("heading", self.heading, 0, 180)


def build(config: Config) -> "HalenseeSource":
    return HalenseeSource(config)


@dataclass(frozen=True)
class HalenseeSource:
    config: Config

    def load(self, root: Path) -> Dataset:
        root = find_root(root, "halensee", TABLE)
        photos = [_parse(row, number, root) for number, row in enumerate(_read_rows(root / TABLE), start=2)]
        database = tuple(ref for role, ref in photos if role == "database")
        queries = tuple(ref for role, ref in photos if role == "query")
        lats, lons, headings = (
            np.array([ref.attributes[name] for ref in database], np.float64) for name in ("lat", "lon", "heading")
        )
        judgements = {}
        for query in queries:
            distances = metres_between(float(query.attributes["lat"]), float(query.attributes["lon"]), lats, lons)
            same = distances <= self.config.metres
            if self.config.heading is not None:
                same &= turn_between(float(query.attributes["heading"]), headings) <= self.config.heading
            judgements[query.id] = Judgement({database[row].id: 1 for row in np.flatnonzero(same)})
        return Dataset("halensee", database, queries, judgements)


def _read_rows(path: Path) -> Sequence[Mapping[str, str]]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file, strict=True)
            rows = list(reader)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise _refuse(f"{path} cannot be read", str(error)) from error
    if set(COLUMNS) - set(reader.fieldnames or ()) or not rows:
        raise _refuse(f"{path} is not the table of the photos", f"{len(rows)} rows of {reader.fieldnames}")
    return rows


def _parse(row: Mapping[str, str], line: int, root: Path) -> tuple[str, ImageRef]:
    """The role and the reference of a photo."""
    where = f"{root / TABLE}, line {line}"
    try:
        file, role, *numbers = (row[name] for name in COLUMNS)
        lat, lon, heading = map(float, numbers)
    except (TypeError, ValueError) as error:
        raise _refuse(f"{where} cannot be read", str(error)) from error
    if role not in ("query", "database") or not (abs(lat) <= 90 and abs(lon) <= 180 and abs(heading) <= 360):
        raise _refuse(f"{where} cannot be read", ", ".join(map(str, row.values())))
    path = root / file
    if not path.is_file():
        raise _refuse(f"{where}: the photo is missing", f"no such file as {path}")
    return role, ImageRef(file, path, attributes={"lat": lat, "lon": lon, "heading": heading})


def _refuse(problem: str, actual: str) -> ManifestError:
    expected = f"{TABLE} with {', '.join(COLUMNS)}, roles query and database, and the photos that it names"
    return ManifestError(problem, expected=expected, actual=actual[:300], fix="give the folder that holds it, whole")
