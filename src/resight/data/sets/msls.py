"""Mapillary Street-Level Sequences (Warburg et al., CVPR 2020) in, a Dataset of the same places out.

    root/train_val/CITY/query/, root/train_val/CITY/database/, root/test/CITY/…

    images/KEY.jpg
    raw.csv             key, lon, lat; ca (heading), captured_at, pano          optional if the next exists
    postprocessed.csv   key, easting, northing; night, view_direction           optional if raw.csv exists
    seq_info.csv        key; sequence_key (or sequence_id), frame_number        optional
    subtask_index.csv   key, and one column per subtask: True if the image belongs to it; without it all images do

The tables are joined by key. Photos at most `radius` metres apart show the same place, measured in the plane of easting
and northing, or by great circle if a city has only lon and lat. With `heading`, the directions of the two cameras may
also differ by at most so many degrees. As in the published protocol: panoramas and queries without a positive are left
out; the split "val" takes the images that subtask_index.csv marks for `subtask`, and "train" takes all images if the
subtask is "all"; a city without queries or without images for the subtask is left out. The cities of the test split
come without positions. Only the tables are read; `resight data check` lists missing images.

A subset, such as the 1,000 gallery and 500 query images of the study of London, whose list is not published:

    queries = 500      so many queries, drawn at random by `seed`
    gallery = 1000     so many images of the database: in turn, each drawn query adds one of its positives at random,
                       until the number is reached; if the positives are used up, random other images follow
    images = FILE      exactly the images of a list, one id per line, such as london/query/KEY

Each drawn query keeps a positive if `gallery` is not smaller than `queries`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np

from resight.data.sets import Published, _msls_subset, find_root
from resight.data.spatial_index import LatLonIndex, PlaneIndex
from resight.data.truth_tables import locate_image, read_table
from resight.errors import ManifestError, RecipeError
from resight.plugins import check_range
from resight.types import Attribute, Dataset, ImageRef, Judgement

CITIES = {
    "train": (
        *("trondheim", "london", "boston", "melbourne", "amsterdam", "helsinki", "tokyo", "toronto", "saopaulo"),
        *("moscow", "zurich", "paris", "bangkok", "budapest", "austin", "berlin", "ottawa", "phoenix", "goa"),
        *("amman", "nairobi", "manila"),
    ),
    "val": ("cph", "sf"),
    "test": ("miami", "athens", "buenosaires", "stockholm", "bengaluru", "kampala"),
}
TRUTHS = {"true": True, "1": True, "1.0": True, "false": False, "0": False, "0.0": False}
TEXTS = {"sequence": ("sequence_key", "sequence_id"), "view": ("view_direction",), "captured_at": ("captured_at",)}
FIX = "`resight data check msls ROOT` lists what to download and where to put it"


@dataclass(frozen=True)
class Config:
    cities: tuple[str, ...] = ()  # cities to load; default: all of the split
    split: Literal["train", "val", "test"] = "val"  # split to load; its cities are the default of cities
    radius: float = 25.0  # photos at most this many metres apart show the same place
    heading: float | None = None  # largest difference between camera directions in degrees, 0 to 180; None: any
    subtask: Literal["all", "s2w", "w2s", "o2n", "n2o", "d2n", "n2d"] = "all"  # all, summer/winter, old/new, day/night
    panoramas: bool = False  # keep panoramas, which the published protocol leaves out
    unmatched: bool = False  # keep queries without a positive, which the published protocol leaves out
    queries: int = 0  # number of queries to draw at random from all cities; 0: all
    gallery: int = 0  # number of database images to draw, positives of the queries first; 0: all
    seed: int = 0  # random seed of both draws
    images: str = ""  # file with the ids of the images to take, one per line; instead of queries and gallery

    def __post_init__(self) -> None:
        check_range("radius", self.radius, 0)
        check_range("queries", self.queries, 0)
        check_range("gallery", self.gallery, 0)
        if self.images and (self.queries or self.gallery):
            raise RecipeError(
                "the images are chosen twice",
                expected="images (a list), or queries and gallery (a draw)",
                actual=f"images = {self.images!r}, queries = {self.queries}, gallery = {self.gallery}",
                fix="leave out one of them",
            )
        if self.heading is not None:
            check_range("heading", self.heading, 0, 180)


def build(config: Config) -> "MslsSource":
    return MslsSource(config)


@dataclass(frozen=True)
class MslsSource:
    config: Config

    @property
    def published(self) -> Published:
        standard = replace(self.config, seed=0) == Config()
        return Published(
            counts={"database": 18_871, "queries": 740} if standard else {},
            downloads=(
                "metadata.zip of https://www.mapillary.com/dataset/places, unpacked to ROOT/train_val/ and ROOT/test/",
                "images_vol_1.zip to images_vol_6.zip and the patches of the same, unpacked over it",
            ),
            licence="CC BY-NC-SA, under the terms on the makers' page",
        )

    def load(self, root: Path) -> Dataset:
        config = self.config
        cities = config.cities or CITIES[config.split]
        root = find_root(root, "msls", _name_folder(cities[0]))
        parts = [part for city in cities if (part := _read_city(root / _name_folder(city), config)).database]
        if not parts:
            raise ManifestError(
                f"no image of {', '.join(cities)} is left for the database",
                expected=f"images of the subtask {config.subtask!r}"
                + ("" if config.panoramas else " that are no panoramas"),
                actual="none",
                fix="choose another subtask, or panoramas = true",
            )
        database = [ref for part in parts for ref in part.database]
        queries = [(query, judgement) for part in parts for query, judgement in part.queries]
        rng = np.random.default_rng(config.seed)
        if config.queries:
            queries = _msls_subset.draw_queries(queries, config.queries, rng)
        kept = None
        if config.gallery:
            kept = _msls_subset.draw_gallery(database, [judgement for _, judgement in queries], config.gallery, rng)
        elif config.images:
            listed = _msls_subset.read_list(Path(config.images), [*database, *(ref for ref, _ in queries)])
            queries, kept = [(ref, judgement) for ref, judgement in queries if ref.id in listed], listed
        if kept is not None:
            database, queries = _msls_subset.restrict(database, queries, kept, config.unmatched)
        return Dataset(
            f"msls {', '.join(cities)}" + (f", {config.subtask}" if config.subtask != "all" else ""),
            tuple(database),
            tuple(ref for ref, _ in queries),
            {ref.id: judgement for ref, judgement in queries},
        )


@dataclass(frozen=True)
class City:
    database: tuple[ImageRef, ...]
    queries: tuple[tuple[ImageRef, Judgement], ...]


@dataclass(frozen=True)
class Photo:
    ref: ImageRef
    point: tuple[float, float] | None  # easting and northing, metres
    heading: float  # degrees; NaN: unknown


@dataclass(frozen=True)
class Row:
    cells: Mapping[str, str]
    where: str  # file and line, for error messages


def _read_city(folder: Path, config: Config) -> City:
    subtask = config.subtask if config.split != "train" or config.subtask != "all" else None
    database, queries = (_read_side(folder / side, subtask, config.panoramas) for side in ("database", "query"))
    if not database or not queries:
        return City((), ())  # left out: its images would be distractors that the published protocol does not have
    near = _find_near(database, queries, config.radius)
    judged = []
    for query, rows in zip(queries, near, strict=True):
        same = [row for row in rows if _faces_alike(query, database[row], config.heading)]
        if same or config.unmatched:
            judged.append((query.ref, Judgement({database[row].ref.id: 1 for row in same})))
    return City(tuple(photo.ref for photo in database), tuple(judged))


def _find_near(database: Sequence[Photo], queries: Sequence[Photo], radius: float) -> list[list[int]]:
    """For each query, the rows of the database within the radius."""
    points = [photo.point for photo in database]
    if all(point is not None for point in (*points, *(query.point for query in queries))):
        known = [point for point in points if point is not None]
        plane = PlaneIndex.of([x for x, _ in known], [y for _, y in known])
        return [plane.within(*query.point, radius).tolist() for query in queries if query.point is not None]
    row_of = {photo.ref.id: row for row, photo in enumerate(database)}
    index = LatLonIndex.of([photo.ref for photo in database])
    found = []
    for query in queries:
        lat, lon = (float(query.ref.attributes[name]) for name in ("lat", "lon"))
        found.append(sorted(row_of[id] for id in index.within(lat, lon, radius)))
    return found


def _faces_alike(one: Photo, other: Photo, heading: float | None) -> bool:
    """Whether two headings differ by at most `heading` degrees; an unknown heading never matches."""
    return heading is None or abs((one.heading - other.heading + 180) % 360 - 180) <= heading


def _name_folder(city: str) -> str:
    return f"{'test' if city in CITIES['test'] else 'train_val'}/{city}"


def _read_side(folder: Path, subtask: str | None, panoramas: bool) -> list[Photo]:
    """The photos of one side of a city that belong to `subtask` (None: all photos, without reading that table)."""
    raw = _read_rows(folder / "raw.csv", ("lon", "lat"), required=False)
    post = _read_rows(folder / "postprocessed.csv", ("easting", "northing"), required=not raw)
    sequences = _read_rows(folder / "seq_info.csv", (), required=False)
    marks = _read_rows(folder / "subtask_index.csv", (subtask,), required=subtask != "all") if subtask else {}
    city, side, images = folder.parent.name, folder.name, folder / "images"
    photos = []
    for key, row in (post or raw).items():
        for name, table in (("raw.csv", raw), ("subtask_index.csv", marks)):
            if table and key not in table:
                raise _refuse(row.where, f"{key!r} is not in {name}", "the same images in all tables", key)
        if subtask and marks and not _parse_truth(marks[key], subtask):
            continue
        about = raw.get(key, row)
        if not panoramas and "pano" in about.cells and _parse_truth(about, "pano"):
            continue
        more = sequences[key].cells if key in sequences else {}
        attributes, point = _parse(Row({**about.cells, **row.cells, **more}, row.where))
        ref = ImageRef(
            f"{city}/{side}/{key}",
            locate_image(images, f"{key}.jpg", row.where),
            attributes={"city": city, **attributes},
        )
        photos.append(Photo(ref, point, float(attributes.get("heading", np.nan))))
    return photos


def _parse(row: Row) -> tuple[dict[str, Attribute], tuple[float, float] | None]:
    """A photo's attributes, and its easting and northing."""
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
        raise _refuse(row.where, "there is no position", "lat and lon, or easting and northing", "neither")
    return attributes, point


def _read_rows(path: Path, columns: Sequence[str], required: bool) -> dict[str, Row]:
    """Rows by key; none if a file that is not required does not exist."""
    if not required and not path.exists():
        return {}
    rows: dict[str, Row] = {}
    file = str(path)
    for line, cells in read_table(path, ("key", *columns), FIX):
        key, where = cells["key"].strip(), f"{file}, line {line}"
        if not key or key in rows or "/" in key or "\\" in key:
            raise _refuse(where, "the key cannot be used", "the name of an image's file, each once", repr(key))
        rows[key] = Row(cells, where)
    return rows


def _parse_number(row: Row, column: str, limit: float = np.inf) -> float:
    try:
        value = float(row.cells[column])
    except ValueError:
        value = np.nan
    if not (np.isfinite(value) and abs(value) <= limit):
        expected = "a number" if limit == np.inf else f"{-limit:g} to {limit:g}"
        raise _refuse(row.where, f"{column} cannot be read", expected, repr(row.cells[column]))
    return value


def _parse_truth(row: Row, column: str) -> bool:
    value = TRUTHS.get(row.cells[column].strip().lower())
    if value is None:
        raise _refuse(row.where, f"{column} cannot be read", "True or False", repr(row.cells[column]))
    return value


def _refuse(where: str, problem: str, expected: str, actual: str) -> ManifestError:
    return ManifestError(f"{where}: {problem}", expected=expected, actual=actual[:300], fix=FIX)
