"""Images and ground truth from a manifest (CSV or JSON Lines); resight.data.manifest_rows lists the columns.

The first of these that applies gives the positives of a query:

1. its `positives`;
2. its label: the database images with the same label;
3. its lat and lon: the database images within `within_metres`, and with `heading` only those whose camera direction
   differs by at most so many degrees (attribute `heading`; an image without one is then no positive).

A query that is in the database too (role `both`) is ignored in its own ranking. A manifest whose lat and lon look
swapped is refused (`check_latlon`).
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from resight.data.manifest_rows import SUFFIXES, FileLine, Row, read_rows
from resight.data.spatial_index import LatLonIndex, read_heading
from resight.errors import ManifestError
from resight.plugins import check_range
from resight.types import Dataset, ImageRef, Judgement

FAR, NEAR = 50_000.0, 1_000.0  # metres
MOST = 0.9  # share of queries
CHECKED_QUERIES = 200


@dataclass(frozen=True)
class Config:
    within_metres: float = 25.0  # by position: database images within this many metres of a query are its positives
    heading: float | None = None  # by position: largest difference between camera directions in degrees; None: any

    def __post_init__(self) -> None:
        check_range("within_metres", self.within_metres, 0)
        if self.heading is not None:
            check_range("heading", self.heading, 0, 180)


def build(config: Config) -> "ManifestSource":
    return ManifestSource(config)


@dataclass(frozen=True)
class ManifestSource:
    config: Config

    def load(self, root: Path) -> Dataset:
        """Load the manifest `root`, or the file `manifest` (.csv, .jsonl, …) in the folder `root`."""
        path = _find_manifest(root)
        rows = list(read_rows(path))
        database = tuple(row.ref for row in rows if row.role != "query")
        known = frozenset(ref.id for ref in database)
        labels = _group_by_label(database)
        index = LatLonIndex.of(database)
        judgements: dict[str, Judgement] = {}
        for row in rows:
            _check_ids(row, known, path)
            if row.role != "database":
                judgements[row.ref.id] = _judge(row, labels, index, self.config)
        queries = tuple(row.ref for row in rows if row.role != "database")
        check_latlon(index, queries, str(path))
        return Dataset(path.stem, database, queries, judgements)


def refs(path: Path) -> Iterator[ImageRef]:
    """Yield the database images of a manifest, for indexing."""
    return (row.ref for row in read_rows(path) if row.role != "query")


def check_latlon(index: LatLonIndex, queries: Sequence[ImageRef], name: str) -> None:
    """Raise ManifestError if lat and lon look swapped in the queries or in the database.

    A latitude beyond 90 degrees is refused where it is read, but in most of Europe and Africa both orders are possible.
    Two tables give the swap away: every query is more than FAR from all images as written, and MOST of them are within
    NEAR once lat and lon are exchanged. Which of the two tables is wrong remains open.
    """
    placed = [ref for ref in queries if {"lat", "lon"} <= ref.attributes.keys()]
    chosen = [placed[row] for row in np.linspace(0, len(placed) - 1, min(len(placed), CHECKED_QUERIES)).astype(int)]
    points = [(float(ref.attributes["lat"]), float(ref.attributes["lon"])) for ref in chosen]
    if not points or not index.ids or any(index.within(lat, lon, FAR) for lat, lon in points):
        return
    turned = sum(abs(lon) <= 90 and bool(index.within(lon, lat, NEAR)) for lat, lon in points)
    if turned >= MOST * len(points):
        lat, lon = points[0]
        raise ManifestError(
            f"{name}: lat and lon of the queries, or those of the database, look swapped",
            expected=f"queries within {FAR / 1000:g} km of the database",
            actual=f"none is; with lat and lon exchanged, {turned} of {len(points)} are within {NEAR / 1000:g} km, "
            f"e.g. {chosen[0].id!r} at {lat:g}, {lon:g}",
            fix="exchange the two columns on the side that is wrong",
        )


def _find_manifest(root: Path) -> Path:
    if not root.is_dir():
        return root
    for suffix in SUFFIXES:
        if (root / f"manifest{suffix}").is_file():
            return root / f"manifest{suffix}"
    raise ManifestError(
        f"no manifest in {root}",
        expected=f"manifest{', manifest'.join(SUFFIXES)}",
        actual="none of them",
        fix="name the manifest's file itself",
    )


def _check_ids(row: Row, known: frozenset[str], path: Path) -> None:
    for column, ids in (("positives", row.positives or {}), ("ignored", row.ignored), ("positive_boxes", row.boxes)):
        for id in ids:
            if id not in known:
                problem = f"{column} names {id!r}, which is not in the database"
                fix = "correct the id, or give its row the role database or both"
                raise FileLine(path, row.line).refuse(problem, "ids of database rows", repr(id), fix)


def _judge(row: Row, labels: Mapping[str, Mapping[str, int]], index: LatLonIndex, config: Config) -> Judgement:
    id, attributes = row.ref.id, row.ref.attributes
    if row.positives is not None:
        grades: Mapping[str, int] = row.positives
    elif "label" in attributes:
        grades = _AllBut(labels.get(str(attributes["label"]), {}), id)
    elif "lat" in attributes:
        lat, lon = float(attributes["lat"]), float(attributes["lon"])
        near = index.within(lat, lon, config.within_metres, read_heading(row.ref), config.heading)
        grades = {other: 1 for other in near if other != id}
    else:
        grades = {}
    itself = {id} if row.role == "both" and id not in grades else set()
    return Judgement(grades, row.ignored | itself, row.boxes)


class _AllBut(Mapping[str, int]):
    """A view of a group without one member; a copy per query would need the square of a large group's size."""

    def __init__(self, members: Mapping[str, int], left_out: str) -> None:
        self._members, self._left_out = members, left_out

    def __getitem__(self, id: str) -> int:
        if id == self._left_out:
            raise KeyError(id)
        return self._members[id]

    def __iter__(self) -> Iterator[str]:
        return (id for id in self._members if id != self._left_out)

    def __len__(self) -> int:
        return len(self._members) - (self._left_out in self._members)


def _group_by_label(database: tuple[ImageRef, ...]) -> dict[str, dict[str, int]]:
    groups: dict[str, dict[str, int]] = defaultdict(dict)
    for ref in database:
        if "label" in ref.attributes:
            groups[str(ref.attributes["label"])][ref.id] = 1
    return groups
