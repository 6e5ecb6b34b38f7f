"""Craters of the Moon under other light (heights GLD100, catalogue of Head et al.) in, a Dataset out.

    root/terrain_32ppd_lon0-180_lat-60-60.png   heights; resight.data.maps.terrain explains the name
    root/HeadCraters.csv                        Lon, Lat, Diam_km, in degrees and kilometres

Each crater is an instance. Its gallery images are crops of 2 and 3 times its diameter, hillshaded from one azimuth; its
query is a crop at another scale, off centre, under another light. Positives: its gallery crops. This is not
CraterBench-R, which has photographs from orbit; do not compare figures with that benchmark.

The default scales and shifts of the queries make the set as hard as in its first published figures, for
EfficientNet-lite2, block 15, 224 pixels. R@1 and mAP of one mean-pooled vector: .227 and .199 (here .223 and .198);
of late interaction of all 49 tokens: .767 and .567 (here .754 and .575). Only these two methods set the defaults.

The crops are PNG files, rendered once into `crops`/moon-<digest of the settings and of the input's size and date>,
never beside the data. A missing or damaged crop is rendered again.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np

from resight.data.image_cache import encode_png, is_intact, name_folder, write_images
from resight.data.maps.crater_catalogue import Crater, read_catalogue
from resight.data.maps.map_image import Frame
from resight.data.maps.terrain import MOON_RADIUS, Light, Terrain, find_terrain
from resight.data.sets import find_root
from resight.errors import RecipeError
from resight.plugins import check_range
from resight.types import Attribute, Dataset, ImageRef, Judgement

CATALOGUE = "HeadCraters.csv"
COLUMNS = ("Lon", "Lat", "Diam_km")
RENDERING = 1  # increase when the same settings render different crops


@dataclass(frozen=True)
class Config:
    craters: int = 700  # number of craters to draw at random
    smallest_km: float = 20.0  # smallest crater diameter in km
    largest_km: float = 90.0  # largest crater diameter in km
    seed: int = 0  # random seed for the choice of craters and the queries' scale and centre
    views: tuple[float, ...] = (2.0, 3.0)  # sides of the gallery crops, in crater diameters
    azimuth: float = 270.0  # direction of the gallery's light, degrees clockwise from north
    query_azimuths: tuple[float, ...] = (315.0, 0.0, 45.0)  # light of the queries, degrees from north, in equal shares
    query_smallest: float = 1.6  # smallest side of a query crop, in crater diameters; sides are drawn uniformly
    query_largest: float = 3.6  # largest side of a query crop, in crater diameters
    query_shift: float = 0.65  # largest shift of a query crop off centre, east and north, in crater diameters
    altitude: float = 45.0  # height of the light above the horizon, degrees, 0 to 90
    exaggeration: float = 1.0  # vertical exaggeration of heights
    pixels: int = 256  # width and height of each crop in pixels
    crops: Path | None = None  # folder below which crops are rendered; None: resight in the user's cache directory

    def __post_init__(self) -> None:
        check_range("craters", self.craters, 1)
        check_range("smallest_km", self.smallest_km, 1, self.largest_km)
        check_range("altitude", self.altitude, 0, 90)
        check_range("exaggeration", self.exaggeration, 0.01, 100)
        check_range("pixels", self.pixels, 8, 4096)
        check_range("query_shift", self.query_shift, 0, 10)
        check_range("query_smallest", self.query_smallest, 0.1, self.query_largest)
        for view in (*self.views, self.query_largest):
            check_range("the side of a crop", view, 0.1, 10)
        if not self.views or not self.query_azimuths:
            raise RecipeError("no crops", expected="at least one of views and of query_azimuths", fix="e.g. [2, 3]")


def build(config: Config) -> "MoonSource":
    return MoonSource(config)


@dataclass(frozen=True)
class MoonSource:
    config: Config

    def load(self, root: Path) -> Dataset:
        root = find_root(root, "moon", CATALOGUE)
        terrain = find_terrain(root)
        craters = read_catalogue(root / CATALOGUE, *COLUMNS)
        rng = np.random.default_rng(self.config.seed)
        chosen = _choose(craters, terrain, self.config, rng)
        gallery = [_view(crater, view, self.config) for crater in chosen for view in self.config.views]
        queries = _vary(chosen, self.config, rng)
        settings = asdict(replace(self.config, crops=None))
        folder = name_folder("moon", (RENDERING, settings), [terrain.path, root / CATALOGUE], self.config.crops)
        make_crops([*gallery, *queries], terrain, folder, self.config.pixels)
        judgements = {
            f"query/{crater.id}": Judgement({f"gallery/{crater.id}_{view:g}x": 1 for view in self.config.views})
            for crater in chosen
        }
        return Dataset(
            f"moon, {len(chosen)} craters",
            tuple(crop.refer(folder) for crop in gallery),
            tuple(crop.refer(folder) for crop in queries),
            judgements,
        )


@dataclass(frozen=True)
class Crop:
    id: str
    crater: Crater
    frame: Frame
    light: Light
    about: Mapping[str, Attribute]

    def refer(self, folder: Path) -> ImageRef:
        # Not lat and lon: every other module takes those for a position on the Earth.
        position = {"crater_lat": self.crater.lat, "crater_lon": self.crater.lon, "diameter_km": self.crater.diameter}
        return ImageRef(self.id, self.locate(folder), attributes={"label": self.crater.id, **self.about, **position})

    def locate(self, folder: Path) -> Path:
        return folder / f"{self.id.replace('/', '_')}.png"


def make_crops(crops: Sequence[Crop], terrain: Terrain, folder: Path, pixels: int) -> None:
    """Render every crop that `folder` does not hold intact."""
    missing = [crop for crop in crops if not is_intact(crop.locate(folder))]
    if not missing:
        return
    heights = terrain.read_heights()
    drawn = ((crop, terrain.cut(heights, crop.frame, crop.light, pixels)) for crop in missing)
    write_images(((crop.locate(folder), encode_png(image)) for crop, image in drawn), folder, "data.crops")


def _choose(craters: Sequence[Crater], terrain: Terrain, config: Config, rng: np.random.Generator) -> list[Crater]:
    """Craters in random order whose crops all lie on the map, however the query is shifted."""
    widest = max(*config.views, config.query_largest + 2 * config.query_shift)
    fitting = [
        crater
        for crater in craters
        if config.smallest_km <= crater.diameter <= config.largest_km
        and terrain.holds(crater.frame(widest, MOON_RADIUS))
    ]
    if len(fitting) < config.craters:
        raise RecipeError(
            f"the map and the catalogue do not have {config.craters} such craters",
            expected=f"at most {len(fitting)}",
            actual=str(config.craters),
            fix="ask for fewer craters, or for a wider range of diameters",
        )
    return [fitting[number] for number in rng.permutation(len(fitting))[: config.craters]]


def _view(crater: Crater, view: float, config: Config) -> Crop:
    light = Light(config.azimuth, config.altitude, config.exaggeration)
    return Crop(
        f"gallery/{crater.id}_{view:g}x", crater, crater.frame(view, MOON_RADIUS), light, {"view": f"{view:g}x"}
    )


def _vary(craters: Sequence[Crater], config: Config, rng: np.random.Generator) -> list[Crop]:
    """One query per crater. The random draws do not depend on the settings, so that settings can be compared."""
    queries = []
    for number, (crater, draws) in enumerate(zip(craters, rng.random((len(craters), 3)), strict=True)):
        azimuth = config.query_azimuths[number % len(config.query_azimuths)]
        east, north = (2 * draws[:2] - 1) * config.query_shift
        scale = config.query_smallest + (config.query_largest - config.query_smallest) * draws[2]
        light = Light(azimuth, config.altitude, config.exaggeration)
        about: dict[str, Attribute] = {"set": f"azimuth {azimuth:g}", "azimuth": azimuth, "scale": float(scale)}
        frame = crater.frame(scale, MOON_RADIUS, east, north)
        queries.append(Crop(f"query/{crater.id}", crater, frame, light, about))
    return queries
