"""MoonBench: 24,500 craters of the Moon as instances, asked for under other light and in optical mosaics.

    root/HeadCraters.csv, root/LROCCraters.csv      craters of 20 km and more; craters of 5 to 20 km
    root/terrain_….png and three JPEG files         the maps, listed in resight.data.maps.moon_maps

Its sizes follow CraterBench-R (about 25,000 instances, gallery views of 2 and 3 diameters), its images do not: there
they are photographs of Mars from orbit, here hillshaded heights. Do not compare figures with that benchmark.

    gallery    every crater that is at least `least_pixels` map pixels wide, hillshaded from one azimuth, 2 and 3
               diameters wide
    light      a query: the same heights under light from another side, at another scale, off centre
    optical    a query: the same ground in an optical mosaic, for craters that are wide enough there

A crater asks only if it is at least `query_pixels` map pixels wide. A seed splits these craters into two halves, which
share no crater: settings are chosen on `split = "tuning"`, figures come from `split = "test"`. Of each half the first
`queries` craters ask; the gallery is the same for both. Positives: the gallery views of the crater.

Two entries of a catalogue with nearly the same centre and diameter are one crater. The random draws belong to the
crater, so that another number of queries or of gallery craters changes no crop. The crops are PNG files, rendered once
below `crops`, never beside the data; settings that change no pixels share them.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from scipy.spatial import KDTree

from resight.data.image_cache import encode_png, name_folder, write_images
from resight.data.maps.crater_catalogue import Crater, read_catalogue
from resight.data.maps.map_image import Frame
from resight.data.maps.moon_maps import MOSAICS, MoonMaps, find_maps
from resight.data.maps.terrain import MOON_RADIUS, Light
from resight.data.sets import find_root
from resight.errors import RecipeError
from resight.plugins import check_range
from resight.types import Attribute, Dataset, ImageRef, Judgement

CATALOGUES = {  # name of its craters → file, columns of longitude, latitude and diameter
    "head": ("HeadCraters.csv", "Lon", "Lat", "Diam_km"),
    "lroc": ("LROCCraters.csv", "Long", "Lat", "Diameter (km)"),
}
TWIN_DISTANCE, TWIN_RATIO = 0.25, 1.25  # of the smaller diameter; of the diameters
RENDERING = 1  # increase when the same settings render different crops
BATCH = 256  # crops that are rendered before any is written
Kind = Literal["light", "optical"]
KINDS: tuple[Kind, ...] = ("light", "optical")


@dataclass(frozen=True)
class Config:
    split: Literal["tuning", "test"] = "test"  # the half of the craters that asks
    queries: int = 500  # craters of that half that ask; 0: all
    kinds: tuple[Kind, ...] = KINDS  # queries per crater: light, optical (where a crater is wide enough for it)
    craters: int = 0  # craters in the gallery: those that ask in either split, then others at random; 0: all
    seed: int = 0  # random seed of the split, the queries and the choice of craters
    least_pixels: float = 2.5  # craters fewer map pixels wide are left out
    query_pixels: float = 5.0  # craters fewer map pixels wide are never asked for
    optical_pixels: float = 7.5  # the same in the optical mosaics
    views: tuple[float, ...] = (2.0, 3.0)  # sides of the gallery crops, in crater diameters
    azimuth: float = 270.0  # direction of the gallery's light, degrees clockwise from north
    query_azimuths: tuple[float, ...] = (315.0, 0.0, 45.0)  # directions of the queries' light, drawn at random
    query_smallest: float = 2.0  # smallest side of a query crop, in crater diameters; sides are drawn uniformly
    query_largest: float = 3.0  # largest side of a query crop, in crater diameters
    query_shift: float = 0.25  # largest shift of a query crop off centre, east and north, in crater diameters
    altitude: float = 45.0  # height of the light above the horizon, degrees, 0 to 90
    pixels: int = 224  # width and height of each crop in pixels
    crops: Path | None = None  # folder below which crops are rendered; None: resight in the user's cache directory

    def __post_init__(self) -> None:
        for name in ("queries", "craters", "seed"):
            check_range(name, getattr(self, name), 0)
        for name in ("least_pixels", "query_pixels", "optical_pixels"):
            check_range(name, getattr(self, name), 1, 1000)
        check_range("altitude", self.altitude, 0, 90)
        check_range("pixels", self.pixels, 8, 4096)
        check_range("query_shift", self.query_shift, 0, 10)
        check_range("query_smallest", self.query_smallest, 0.1, self.query_largest)
        for view in (*self.views, self.query_largest):
            check_range("the side of a crop", view, 0.1, 10)
        if not (self.views and self.query_azimuths and self.kinds):
            raise RecipeError("no crops", expected="views, query_azimuths and kinds, at least one each", fix="add one")


def build(config: Config) -> "MoonBenchSource":
    return MoonBenchSource(config)


@dataclass(frozen=True)
class MoonBenchSource:
    config: Config

    def load(self, root: Path) -> Dataset:
        config = self.config
        root = find_root(root, "moon", CATALOGUES["lroc"][0])
        maps = find_maps(root)
        sites = find_sites(root, maps, config)
        tuning, test, others = split_sites(sites, config)
        asking = tuning if config.split == "tuning" else test
        chosen = choose_gallery(tuning + test, others, config)
        gallery = [show(site, view, config) for site in chosen for view in config.views]
        queries = [query for site in asking for query in ask(site, maps, config)]
        inputs = [*maps.paths, *(root / parts[0] for parts in CATALOGUES.values())]
        folder = name_folder("moonbench", (RENDERING, _rendering_settings(config)), inputs, config.crops)
        make_crops([*gallery, *queries], maps, folder, config)
        return Dataset(
            f"MoonBench, {len(chosen):,} craters, {config.split} queries",
            tuple(crop.refer(folder) for crop in gallery),
            tuple(crop.refer(folder) for crop in queries),
            {query.id: Judgement({show(query.site, view, config).id: 1 for view in config.views}) for query in queries},
        )


@dataclass(frozen=True)
class Site:
    """A crater, the map that shows it, and the random numbers of its queries."""

    crater: Crater
    coarse: bool  # on the 8-bit heights, because the 16-bit ones do not hold its widest crop
    map_pixels: float  # its diameter
    draws: Mapping[str, tuple[float, ...]]  # kind of query → shift east and north, side, light or mosaic; 0 to 1


@dataclass(frozen=True)
class Crop:
    id: str
    site: Site
    frame: Frame
    azimuth: float | None  # None: from the optical mosaic `mosaic`
    mosaic: int
    about: Mapping[str, Attribute]

    def refer(self, folder: Path) -> ImageRef:
        # Not lat and lon: every other module takes those for a position on the Earth.
        crater = self.site.crater
        position = {"crater_lat": crater.lat, "crater_lon": crater.lon, "diameter_km": crater.diameter}
        pixels: dict[str, Attribute] = {"map_pixels": round(self.site.map_pixels, 2)}
        attributes = {"label": crater.id, **self.about, **position, **pixels}
        return ImageRef(self.id, self.locate(folder), attributes=attributes)

    def locate(self, folder: Path) -> Path:
        return folder / f"{self.id.replace('/', '_')}.png"

    def draw(self, maps: MoonMaps, config: Config) -> bytes:
        if self.azimuth is None:
            return encode_png(maps.photograph(self.frame, self.mosaic, config.pixels))
        light = Light(self.azimuth, config.altitude, 1.0)
        return encode_png(maps.shade(self.frame, self.site.coarse, light, config.pixels))


def find_sites(root: Path, maps: MoonMaps, config: Config) -> list[Site]:
    """The distinct craters of both catalogues that a map shows, in the catalogues' order."""
    craters = [
        Crater(f"{name}-{crater.id}", crater.lat, crater.lon, crater.diameter)
        for name, (file, *columns) in CATALOGUES.items()
        for crater in read_catalogue(root / file, *columns)
    ]
    draws = np.random.default_rng(config.seed).random((len(craters), len(KINDS), 4))
    widest = max(*config.views, config.query_largest + 2 * config.query_shift)
    sites = []
    for crater, rows, twin in zip(craters, draws.tolist(), find_twins(craters), strict=True):
        grid = None if twin else maps.choose_relief(crater.frame(widest, MOON_RADIUS))
        if grid is None or 1000 * crater.diameter / grid.pixel < config.least_pixels:
            continue
        pixels = 1000 * crater.diameter / grid.pixel
        sites.append(Site(crater, grid != maps.terrain.grid, pixels, dict(zip(KINDS, map(tuple, rows), strict=True))))
    return sites


def find_twins(craters: Sequence[Crater]) -> list[bool]:
    """Whether an earlier entry has nearly the same centre and diameter."""
    lats, lons = (np.radians([getattr(crater, name) for crater in craters]) for name in ("lat", "lon"))
    places = np.stack([np.cos(lats) * np.cos(lons), np.cos(lats) * np.sin(lons), np.sin(lats)], axis=1)
    sizes = np.array([1000 * crater.diameter for crater in craters]) / MOON_RADIUS
    near = KDTree(places).query_ball_point(places, TWIN_DISTANCE * sizes)
    twins = [False] * len(craters)
    for number, neighbours in enumerate(near):
        for other in neighbours:
            small, large = sorted((sizes[number], sizes[other]))
            close = np.linalg.norm(places[number] - places[other]) <= TWIN_DISTANCE * small
            if other != number and close and large <= TWIN_RATIO * small:
                twins[max(number, other)] = True
    return twins


def split_sites(sites: Sequence[Site], config: Config) -> tuple[list[Site], list[Site], list[Site]]:
    """The craters that ask for tuning, those that ask in the test, and all others; each in random order."""
    order = np.random.default_rng([config.seed, 1]).permutation(len(sites))
    mixed = [sites[number] for number in order]
    able = [site for site in mixed if site.map_pixels >= config.query_pixels]
    halves = able[0::2], able[1::2]
    count = config.queries or len(halves[0])
    if len(halves[1]) < config.queries or not halves[1]:
        raise RecipeError(
            f"there are not {max(config.queries, 1)} craters that can ask",
            expected=f"at most {len(halves[1])}",
            actual=str(config.queries),
            fix="ask for fewer queries, or lower query_pixels",
        )
    tuning, test = halves[0][:count], halves[1][:count]
    asking = {site.crater.id for site in (*tuning, *test)}
    return tuning, test, [site for site in mixed if site.crater.id not in asking]


def choose_gallery(asking: Sequence[Site], others: Sequence[Site], config: Config) -> list[Site]:
    count = config.craters or len(asking) + len(others)
    if not len(asking) <= count <= len(asking) + len(others):
        raise RecipeError(
            f"the gallery cannot have {count} craters",
            expected=f"{len(asking)}, which ask for tuning or in the test, to {len(asking) + len(others)}",
            actual=str(count),
            fix="change craters, or ask for fewer queries",
        )
    return [*asking, *others][:count]


def show(site: Site, view: float, config: Config) -> Crop:
    """A gallery view."""
    name = f"gallery/{site.crater.id}_{view:g}x"
    return Crop(name, site, site.crater.frame(view, MOON_RADIUS), config.azimuth, 0, {"view": f"{view:g}x"})


def ask(site: Site, maps: MoonMaps, config: Config) -> Iterator[Crop]:
    """The queries of a crater, one per kind that it is wide enough for."""
    for kind in config.kinds:
        east, north, size, choice = site.draws[kind]
        scale = config.query_smallest + (config.query_largest - config.query_smallest) * size
        shift = [(2 * draw - 1) * config.query_shift for draw in (east, north)]
        frame = site.crater.frame(scale, MOON_RADIUS, *shift)
        name, about = f"query/{site.crater.id}_{kind}", {"set": kind, "scale": scale}
        if kind == "light":
            azimuth = config.query_azimuths[int(choice * len(config.query_azimuths))]
            yield Crop(name, site, frame, azimuth, 0, {**about, "azimuth": azimuth})
            continue
        mosaic = int(choice * len(MOSAICS))
        grid = maps.mosaic_grids[mosaic]
        if 1000 * site.crater.diameter / grid.pixel >= config.optical_pixels and grid.holds(frame):
            yield Crop(name, site, frame, None, mosaic, {**about, "mosaic": MOSAICS[mosaic]})


def make_crops(crops: Sequence[Crop], maps: MoonMaps, folder: Path, config: Config) -> None:
    """Render every crop that `folder` lacks. Files are written atomically, so that those there are whole."""
    known = {entry.name for entry in os.scandir(folder)} if folder.is_dir() else set()
    missing = [crop for crop in crops if crop.locate(folder).name not in known]
    with ThreadPoolExecutor(os.cpu_count() or 1, thread_name_prefix="crops") as pool:
        for start in range(0, len(missing), BATCH):
            batch = missing[start : start + BATCH]
            drawn = pool.map(lambda crop: (crop.locate(folder), crop.draw(maps, config)), batch)
            write_images(drawn, folder, "data.crops")


def _rendering_settings(config: Config) -> tuple[object, ...]:
    """The settings that change pixels of a crop of the same name."""
    names = ("seed", "views", "azimuth", "query_azimuths", "query_smallest", "query_largest", "query_shift")
    return tuple(getattr(config, name) for name in (*names, "altitude", "pixels"))
