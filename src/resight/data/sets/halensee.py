"""Street photos from Berlin-Halensee (Mapillary, CC BY-SA 4.0) in, a Dataset out.

    root/images.csv             file, role (query or database), lat, lon, heading_deg
    root/query/*.jpg, root/database/*.jpg

Photos at most `metres` apart show the same place, in whatever direction the camera looked; with `heading`, the two
directions may also differ by at most so many degrees. A query with no database photo that close stays, without
positives.
"""

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from resight.data.sets import find_root
from resight.data.spatial_index import LatLonIndex
from resight.data.truth_tables import locate_image
from resight.errors import ManifestError
from resight.plugins import check_range
from resight.types import Dataset, ImageRef, Judgement

TABLE = "images.csv"
COLUMNS = ("file", "role", "lat", "lon", "heading_deg")


@dataclass(frozen=True)
class Config:
    metres: float = 25.0  # photos at most this many metres apart show the same place
    heading: float | None = None  # largest difference between camera directions in degrees, 0 to 180; None: any

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
        index = LatLonIndex.of(database)
        judgements = {}
        for query in queries:
            lat, lon, heading = (float(query.attributes[name]) for name in ("lat", "lon", "heading"))
            same = index.within(lat, lon, self.config.metres, heading, self.config.heading)
            judgements[query.id] = Judgement(dict.fromkeys(same, 1))
        return Dataset("halensee", database, queries, judgements)


def _read_rows(path: Path) -> Sequence[Mapping[str, str]]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file, strict=True)
            rows = list(reader)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise _refuse(f"{path} cannot be read", str(error)) from error
    if set(COLUMNS) - set(reader.fieldnames or ()) or not rows:
        raise _refuse(f"{path} is not the table of photos", f"{len(rows)} rows of {reader.fieldnames}")
    return rows


def _parse(row: Mapping[str, str], line: int, root: Path) -> tuple[str, ImageRef]:
    """The role of a photo, and its reference."""
    where = f"{root / TABLE}, line {line}"
    try:
        file, role, *numbers = (row[name] for name in COLUMNS)
        lat, lon, heading = map(float, numbers)
    except (TypeError, ValueError) as error:
        raise _refuse(f"{where} cannot be read", str(error)) from error
    if role not in ("query", "database") or not (abs(lat) <= 90 and abs(lon) <= 180 and abs(heading) <= 360):
        raise _refuse(f"{where} cannot be read", ", ".join(map(str, row.values())))
    path = locate_image(root, file, where)
    if not path.is_file():
        raise _refuse(f"{where}: the photo is missing", f"no such file as {path}")
    return role, ImageRef(file, path, attributes={"lat": lat, "lon": lon, "heading": heading})


def _refuse(problem: str, actual: str) -> ManifestError:
    expected = f"{TABLE} with {', '.join(COLUMNS)}, roles query and database, and the photos that it names"
    return ManifestError(
        problem, expected=expected, actual=actual[:300], fix="give the folder that holds it, and unpack all of it"
    )
