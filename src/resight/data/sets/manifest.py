"""Have latitude and longitude changed places? Positions of a database and its queries in, a ManifestError or nothing.

A latitude beyond 90 degrees is refused where it is read. In most of Europe and Africa both orders are possible, and a
table by itself cannot tell. Two tables can: where every query lies more than FAR from all images as it is written, and
nearly all of them within NEAR when lat and lon change places, one of the two was written in another order. Which of
them it is, nobody can tell from here.

A manifest (CSV or JSON lines) in, a Dataset with its truth out; resight.data.manifest_rows has the columns.

`refs` streams the images of the database, for indexing. What is true of a query, first that applies:
1. its `positives`;
2. when it has a label: the database images with the same label;
3. when it has lat and lon: the database images within `within_metres`, and with `heading` only those whose camera
   looked at most so many degrees away (attribute `heading`; an image without one is then no positive).
A query that is in the database too (role `both`) is neither a positive nor a mistake for itself: it is ignored.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from resight.data.manifest_rows import SUFFIXES, Place, Row, read_rows
from resight.data.spatial_index import Places, read_heading
from resight.errors import ManifestError
from resight.plugins import check_range
from resight.types import Dataset, ImageRef, Judgement

FAR, NEAR = 50_000.0, 1_000.0  # metres
NEARLY_ALL = 0.9
LOOKED_AT = 200  # queries


def refuse_swapped(places: Places, queries: Sequence[ImageRef], name: str) -> None:
    placed = [ref for ref in queries if {"lat", "lon"} <= ref.attributes.keys()]
    chosen = [placed[row] for row in np.linspace(0, len(placed) - 1, min(len(placed), LOOKED_AT)).astype(int)]
    points = [(float(ref.attributes["lat"]), float(ref.attributes["lon"])) for ref in chosen]
    if not points or not places.ids or any(places.within(lat, lon, FAR) for lat, lon in points):
        return
    turned = sum(abs(lon) <= 90 and bool(places.within(lon, lat, NEAR)) for lat, lon in points)
    if turned >= NEARLY_ALL * len(points):
        lat, lon = points[0]
        raise ManifestError(
            f"{name}: lat and lon of the queries, or those of the database, look swapped",
            expected=f"queries within {FAR / 1000:g} km of the database",
            actual=f"none is; with lat and lon exchanged, {turned} of {len(points)} are within {NEAR / 1000:g} km, "
            f"e.g. {chosen[0].id!r} at {lat:g}, {lon:g}",
            fix="exchange the two columns on the side that is wrong",
        )


@dataclass(frozen=True)
class Config:
    within_metres: float = 25.0
    heading: float | None = None  # degrees

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
        """The data set that a manifest describes; `root` is the file, or a folder with one called `manifest`."""
        path = _find_manifest(root)
        rows = list(read_rows(path))
        database = tuple(row.ref for row in rows if row.role != "query")
        known = frozenset(ref.id for ref in database)
        labels = _group_by_label(database)
        places = Places.of(database)
        judgements: dict[str, Judgement] = {}
        for row in rows:
            _check_ids(row, known, path)
            if row.role != "database":
                judgements[row.ref.id] = _judge(row, labels, places, self.config)
        queries = tuple(row.ref for row in rows if row.role != "database")
        refuse_swapped(places, queries, str(path))
        return Dataset(path.stem, database, queries, judgements)


def refs(path: Path) -> Iterator[ImageRef]:
    """The database images of a manifest, one by one."""
    return (row.ref for row in read_rows(path) if row.role != "query")


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
                raise Place(path, row.line).refuse(problem, "ids of database rows", repr(id), fix)


def _judge(row: Row, labels: Mapping[str, Mapping[str, int]], places: Places, config: Config) -> Judgement:
    id, attributes = row.ref.id, row.ref.attributes
    if row.positives is not None:
        grades: Mapping[str, int] = row.positives
    elif "label" in attributes:
        grades = _Others(labels.get(str(attributes["label"]), {}), id)
    elif "lat" in attributes:
        lat, lon = float(attributes["lat"]), float(attributes["lon"])
        near = places.within(lat, lon, config.within_metres, read_heading(row.ref), config.heading)
        grades = {other: 1 for other in near if other != id}
    else:
        grades = {}
    itself = {id} if row.role == "both" and id not in grades else set()
    return Judgement(grades, row.ignored | itself, row.boxes)


def _group_by_label(database: tuple[ImageRef, ...]) -> dict[str, dict[str, int]]:
    groups: dict[str, dict[str, int]] = defaultdict(dict)
    for ref in database:
        if "label" in ref.attributes:
            groups[str(ref.attributes["label"])][ref.id] = 1
    return groups


class _Others(Mapping[str, int]):
    """The members of a group but one. A view: a copy a query would take the square of a large group."""

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
