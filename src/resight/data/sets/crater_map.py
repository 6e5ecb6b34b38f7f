"""Craters cut out of a map of a globe, by a catalogue (CSV), in; a Dataset of crops out.

    root/map.png            equirectangular map: .png, .jpg or .tif; resight.data.maps.map_file lists the kinds
    root/craters.csv        lon, lat, diameter in km; resight.data.maps.crater_catalogue lists the columns
    root/query_map.png      another map of the same globe: other light, other camera (optional)

Each crater is an instance. The database has a crop of 2 and one of 3 times its diameter (`views`), as seen from
straight above, so that craters are round at any latitude. With a query map, each crater is also a query, cut out of
that map (`query_views`); its positives are the database's crops of the same crater. Without one there are no queries.

Left out: craters outside the range of diameters, craters with a crop that leaves the maps, and craters whose smallest
crop has less than `least_pixels` map pixels per side. The crops are PNG files, rendered once below `crops`, never
beside the data. A missing or damaged crop is rendered again.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from urllib.parse import quote

import numpy as np

from resight.data.image_cache import encode_png, is_intact, name_folder, write_images
from resight.data.maps.crater_catalogue import Crater, read_catalogue
from resight.data.maps.map_file import open_map
from resight.data.maps.map_image import MapImage, cut
from resight.data.sets import Published
from resight.errors import ManifestError, RecipeError
from resight.plugins import check_range
from resight.types import Attribute, Dataset, ImageRef, Judgement

SUFFIXES = (".png", ".jpg", ".jpeg", ".tif", ".tiff")
RENDERING = 1  # increase when the same settings render different crops


@dataclass(frozen=True)
class Config:
    map: Path = Path("map")  # map of the globe, below the root; without a suffix: .png, .jpg, .jpeg, .tif or .tiff
    bounds: tuple[float, ...] = ()  # west, south, east, north of the map in degrees; default: the GeoTIFF's, or globe
    catalogue: Path = Path("craters.csv")  # CSV table of the craters, below the root
    query_map: Path = Path("query_map")  # second map, to cut queries from, below the root; without one: no queries
    query_bounds: tuple[float, ...] = ()  # west, south, east, north of query_map; default: as for the map
    radius_km: float = 1737.4  # radius of the globe in km: Moon 1737.4, Mars 3389.5, Mercury 2439.7
    views: tuple[float, ...] = (2.0, 3.0)  # sides of the database crops, in crater diameters
    query_views: tuple[float, ...] = (2.5,)  # sides of the query crops, in crater diameters
    smallest_km: float = 0.0  # smallest crater diameter in km
    largest_km: float = float("inf")  # largest crater diameter in km
    least_pixels: float = 32.0  # leave out craters whose smallest crop has fewer map pixels per side
    craters: int = 0  # number of craters to draw at random; 0: all
    seed: int = 0  # random seed of the draw of craters
    pixels: int = 256  # width and height of each crop in pixels
    lon: str = ""  # catalogue's column of longitudes, in degrees; empty: the usual names
    lat: str = ""  # catalogue's column of latitudes, in degrees; empty: the usual names
    diameter: str = ""  # catalogue's column of diameters, in km; empty: the usual names
    id: str = ""  # catalogue's column of ids; empty: the usual names, else the row's number
    crops: Path | None = None  # folder below which crops are rendered; None: resight in the user's cache directory

    def __post_init__(self) -> None:
        check_range("radius_km", self.radius_km, 1)
        check_range("smallest_km", self.smallest_km, 0, self.largest_km)
        check_range("least_pixels", self.least_pixels, 1)
        check_range("craters", self.craters, 0)
        check_range("pixels", self.pixels, 8, 4096)
        for view in (*self.views, *self.query_views):
            check_range("the side of a crop", view, 0.1, 10)
        if not self.views or not self.query_views:
            raise RecipeError("no crops", expected="at least one of views and of query_views", fix="e.g. [2, 3]")
        for bounds in (self.bounds, self.query_bounds):
            _check_bounds(bounds)


def build(config: Config) -> "CraterMapSource":
    return CraterMapSource(config)


@dataclass(frozen=True)
class CraterMapSource:
    config: Config

    @property
    def published(self) -> Published:
        return Published(
            counts={},
            downloads=(
                "a global mosaic in the equirectangular projection, e.g. LROC WAC (Moon) or Viking MDIM (Mars), "
                "from astrogeology.usgs.gov → map.tif",
                "a crater catalogue with lon, lat, diameter, e.g. Robbins (Moon 2019, Mars 2012), from the same "
                "→ craters.csv",
            ),
            licence="see the makers of map and catalogue",
        )

    def load(self, root: Path) -> Dataset:
        config = self.config
        path = _find_map(root, config.map)
        if path is None:
            raise ManifestError(
                f"there is no map in {root}",
                expected=f"{config.map}, ending in {', '.join(SUFFIXES)}",
                actual="no such file",
                fix="give the folder that holds map and catalogue, or name them with the settings map and catalogue",
            )
        other = _find_map(root, config.query_map)
        craters = read_catalogue(root / config.catalogue, config.lon, config.lat, config.diameter, config.id)
        gallery = open_map(path, config.bounds, config.radius_km * 1000)
        second = open_map(other, config.query_bounds, config.radius_km * 1000) if other else None
        chosen = _choose(craters, gallery, second, config, root / config.catalogue)
        database = [Crop("gallery", crater, view) for crater in chosen for view in config.views]
        queries = [Crop("query", crater, view) for crater in chosen for view in config.query_views] if second else []
        inputs = [path, root / config.catalogue, *([other] if other else [])]
        folder = name_folder("crater_map", (RENDERING, asdict(replace(config, crops=None))), inputs, config.crops)
        drawn = (
            (
                crop.locate(folder),
                encode_png(cut(image, crop.crater.frame(crop.view, image.grid.radius), config.pixels)),
            )
            for crop, image in _list_missing(database, gallery, queries, second, folder)
        )
        write_images(drawn, folder, "data.crops")
        return Dataset(
            f"crater_map, {len(chosen)} craters",
            tuple(crop.refer(folder, config.radius_km) for crop in database),
            tuple(crop.refer(folder, config.radius_km) for crop in queries),
            {
                crop.id: Judgement({Crop("gallery", crop.crater, view).id: 1 for view in config.views})
                for crop in queries
            },
        )


@dataclass(frozen=True)
class Crop:
    role: str
    crater: Crater
    view: float  # side in diameters

    @property
    def id(self) -> str:
        return f"{self.role}/{self.crater.id}_{self.view:g}x"

    def locate(self, folder: Path) -> Path:
        return folder / f"{self.role}_{quote(self.crater.id, safe='')}_{self.view:g}x.png"

    def refer(self, folder: Path, radius_km: float) -> ImageRef:
        # Not lat and lon: every other module takes those for a position on the Earth.
        attributes: dict[str, Attribute] = {
            "label": self.crater.id,
            "view": f"{self.view:g}x",
            "radius_km": radius_km,
            "crater_lat": self.crater.lat,
            "crater_lon": self.crater.lon,
            "diameter_km": self.crater.diameter,
        }
        return ImageRef(self.id, self.locate(folder), attributes=attributes)


def _find_map(root: Path, name: Path) -> Path | None:
    named = [root / name] if name.suffix else [(root / name).with_suffix(suffix) for suffix in SUFFIXES]
    return next((path for path in named if path.is_file()), None)


def _choose(
    craters: Sequence[Crater], gallery: MapImage, second: MapImage | None, config: Config, catalogue: Path
) -> list[Crater]:
    """Craters that meet the settings, in the catalogue's order."""
    fitting = [
        crater
        for crater in craters
        if config.smallest_km <= crater.diameter <= config.largest_km
        and _fits(crater, gallery, config.views, config.least_pixels)
        and (second is None or _fits(crater, second, config.query_views, config.least_pixels))
    ]
    if len(fitting) < max(config.craters, 1):
        raise RecipeError(
            f"{catalogue} and the map do not have {max(config.craters, 1)} such craters",
            expected=f"at most {len(fitting)} of the {len(craters)} in the catalogue",
            actual=f"{config.smallest_km:g} to {config.largest_km:g} km, at least {config.least_pixels:g} map pixels",
            fix="widen the range of diameters, lower least_pixels, or check bounds and radius_km",
        )
    if not config.craters:
        return fitting
    rows = np.random.default_rng(config.seed).permutation(len(fitting))[: config.craters]
    return [fitting[row] for row in sorted(rows)]


def _fits(crater: Crater, image: MapImage, views: Sequence[float], least_pixels: float) -> bool:
    grid = image.grid
    enough = min(views) * crater.diameter * 1000 / grid.pixel >= least_pixels
    return enough and grid.holds(crater.frame(max(views), grid.radius))


def _list_missing(
    database: Sequence[Crop], gallery: MapImage, queries: Sequence[Crop], second: MapImage | None, folder: Path
) -> Iterator[tuple[Crop, MapImage]]:
    for crops, image in ((database, gallery), (queries, second)):
        for crop in crops:
            if image is not None and not is_intact(crop.locate(folder)):
                yield crop, image


def _check_bounds(bounds: tuple[float, ...]) -> None:
    if not bounds:
        return
    good = len(bounds) == 4 and all(map(np.isfinite, bounds))
    if not (good and bounds[0] < bounds[2] <= bounds[0] + 360 and -90 <= bounds[1] < bounds[3] <= 90):
        raise RecipeError(
            "the bounds cannot be those of a map",
            expected="west, south, east, north in degrees: west < east, at most 360 apart; -90 ≤ south < north ≤ 90",
            actual=", ".join(f"{value:g}" for value in bounds),
            fix="e.g. bounds = [-180, -90, 180, 90]",
        )
