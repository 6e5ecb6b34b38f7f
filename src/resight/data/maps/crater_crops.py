"""Crops of the craters of a catalogue: a map and a CraterTable in, ImageRefs out, in the order of the map's rows.

The crops are PNG files below one folder. Listing them (`CraterCrops`) renders nothing: a crop is drawn when it is first
read (`CraterCrops.read`), and again if its file is missing or damaged. Its name holds a fingerprint of everything that
shapes it, so that a crop of another map, size or position is another file:

    moon.resight.crops/00012/00-1-001234_3x-8c1f0a2b.png      craters 1200 to 1299 of the catalogue

The attributes of a crop are those of resight.data.maps.crater_view, and `map`, the map's name. A crop is left out, and
counted by reason, if its crater is too small or too large, if it leaves the map, if the map is too coarse for it, or if
the map has no data there, which shows when it is drawn.
"""

import os
import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import numpy as np
from numpy.typing import NDArray

from resight.data import image_files
from resight.data.image_cache import encode_png, is_intact
from resight.data.maps.crater_catalogue import Crater, CraterTable
from resight.data.maps.map_image import Grid, MapGrid, MapImage, Pixels, draw
from resight.errors import ImageError, InputError, RecipeError, StorageError
from resight.files.atomic import replace_atomic
from resight.files.fingerprint import fingerprint
from resight.geodesy import find_number
from resight.plugins import check_range
from resight.types import Attribute, ImageRef, Picture

RENDERING = 1  # increase when the same settings render different crops
FOLDER = 100  # craters whose crops share a folder; with at most MOST_VIEWS views, 1,000 files
MOST_VIEWS = 10
LONGEST = 100  # letters of an id in a file's name
FITS = "fits"
TOO_SMALL, TOO_LARGE = "craters smaller than asked for", "craters larger than asked for"
OFF_MAP, COARSE = "crops that leave the map", "crops with too few map pixels"
NO_DATA = "crops without map data"
REASONS = (FITS, TOO_SMALL, TOO_LARGE, OFF_MAP, COARSE)


@dataclass(frozen=True)
class CropSettings:
    views: tuple[float, ...] = (6.0,)  # sides of the crops, in crater diameters
    pixels: int = 256  # width and height of each crop
    smallest_km: float = 0.0
    largest_km: float = float("inf")
    least_pixels: float = 32.0  # map pixels per side that a crop needs
    most_missing: float = 0.05  # share of a crop where the map may have no data
    map: str = "map"  # name of the map, an attribute of each crop
    prefix: str = ""  # of the ids, to have the same craters of several maps in one collection

    def __post_init__(self) -> None:
        check_range("smallest_km", self.smallest_km, 0, self.largest_km)
        check_range("least_pixels", self.least_pixels, 1)
        check_range("most_missing", self.most_missing, 0, 1)
        check_range("pixels", self.pixels, 8, 4096)
        check_range("the number of views", len(self.views), 1, MOST_VIEWS)
        for view in self.views:
            check_range("the side of a crop, in diameters,", view, 0.1, 20)
        if len(set(self.views)) < len(self.views):
            raise RecipeError("a view is given twice", expected="different views", fix="leave one out")


class CraterCrops:
    """The crops that fit a map, counted and in order; `left_out` counts the others by reason."""

    def __init__(
        self, image: MapImage, craters: CraterTable, settings: CropSettings, folder: Path, stamp: object = ""
    ) -> None:
        """`stamp` identifies the file of the map: its name, size and date, for instance."""
        self.settings = settings
        self.craters = craters
        self.folder = Path(os.path.abspath(folder))  # noqa: PTH100 - as a collection keeps paths: links stay
        self._image = image
        self._stamp = repr((RENDERING, stamp, image.grid, settings.pixels))
        self._fates = self._judge()
        counts = Counter({REASONS[fate]: int((self._fates == fate).sum()) for fate in range(1, len(REASONS))})
        for reason in (TOO_SMALL, TOO_LARGE):
            counts[reason] //= len(settings.views)
        self.left_out = {reason: count for reason, count in counts.items() if count}
        self._empty: Counter[str] = Counter()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return int((self._fates == 0).sum())

    def __iter__(self) -> Iterator[ImageRef]:
        """North to south in bands of the map, west to east within each: neighbours share the map's pixels."""
        lats, lons, _ = self.craters.numbers.T
        for row in np.lexsort((lons % 360, np.floor(-lats))):
            for view, fate in zip(self.settings.views, self._fates[row], strict=True):
                if fate == 0:
                    yield self.refer(int(row), view)

    def refer(self, row: int, view: float) -> ImageRef:
        crater = self.craters[row]
        radius = self._image.grid.radius
        name = f"{crater.id}_{view:g}x"
        digest = fingerprint(repr((self._stamp, crater, view)), 8)
        file = f"{quote(crater.id, safe='')[:LONGEST]}_{view:g}x-{digest}.png"
        # Not lat and lon: every other module takes those for a position on the Earth.
        attributes: dict[str, Attribute] = {
            "label": crater.id,
            "view": f"{view:g}x",
            "crater_lat": crater.lat,
            "crater_lon": crater.lon,
            "diameter_km": crater.diameter,
            "radius_km": radius / 1000,
            "map": self.settings.map,
        }
        path = self.folder / f"{row // FOLDER:05d}" / file
        return ImageRef(self.settings.prefix + name, path, attributes=attributes)

    def read(self, ref: ImageRef, max_side: int | None = None) -> Picture:
        """The crop as a picture, drawn first if its file is missing; ImageError where the map has no data."""
        if "crater_lat" in ref.attributes and ref.path.is_relative_to(self.folder) and not is_intact(ref.path):
            self._render(ref)
        return image_files.read(ref, max_side)

    def take_empty(self) -> Counter[str]:
        """The paths of the crops that had no data since the last call."""
        with self._lock:
            empty, self._empty = self._empty, Counter()
        return empty

    def check(self) -> None:
        """Refuse a catalogue and a map of which no crater fits."""
        if len(self):
            return
        lats, lons, diameters = self.craters.numbers.T
        grid = self._image.grid
        where = (
            f"longitudes {grid.west:g} to {grid.east:g}, latitudes {grid.south:g} to {grid.north:g}"
            if isinstance(grid, Grid)
            else "a pole"
        )
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in self.left_out.items())
        raise InputError(
            f"0 of {len(self.craters):,} craters can be cut out of the map: {reasons}",
            expected=f"craters on the map, which shows {where}",
            actual=f"longitudes {lons.min():g} to {lons.max():g}, latitudes {lats.min():g} to {lats.max():g}, "
            f"diameters {diameters.min():g} to {diameters.max():g} km",
            fix="check --bounds and --body, or the limits --smallest-km, --largest-km and --least-pixels",
        )

    def _judge(self) -> NDArray[np.uint8]:
        """[n, views] why each crop is left out, as a number among REASONS; 0: it fits."""
        settings, grid = self.settings, self._image.grid
        lats, _, diameters = self.craters.numbers.T
        fates = np.zeros((len(self.craters), len(settings.views)), np.uint8)
        for column, view in zip(fates.T, settings.views, strict=True):
            sides = 1000 * view * diameters
            column[sides / grid.pixel < settings.least_pixels] = REASONS.index(COARSE)
            held = _lies_inside(grid, lats, sides)
            held |= (diameters < settings.smallest_km) | (diameters > settings.largest_km)  # not asked
            for row in np.flatnonzero(~held):
                if not grid.holds(self.craters[int(row)].frame(view, grid.radius)):
                    column[row] = REASONS.index(OFF_MAP)
        fates[diameters < settings.smallest_km] = REASONS.index(TOO_SMALL)
        fates[diameters > settings.largest_km] = REASONS.index(TOO_LARGE)
        return fates

    def draw(self, ref: ImageRef) -> Pixels:
        """The crop [pixels, pixels] or [pixels, pixels, 3]; ImageError where the map has no data."""
        position = (find_number(ref.attributes, name) or 0.0 for name in ("crater_lat", "crater_lon", "diameter_km"))
        crater = Crater(str(ref.attributes["label"]), *position)
        frame = crater.frame(float(str(ref.attributes["view"]).removesuffix("x")), self._image.grid.radius)
        crop = draw(self._image, frame, self.settings.pixels)
        if crop.missing > self.settings.most_missing:
            raise ImageError(
                f"cannot read {ref.path}: the map has no data for {crop.missing:.0%} of it",
                expected=f"at most {self.settings.most_missing:.0%}",
                actual=f"{crop.missing:.0%}",
                fix="take another map, or a higher --most-missing",
            )
        return np.asarray(crop.pixels, np.uint8)

    def _render(self, ref: ImageRef) -> None:
        try:
            data = encode_png(self.draw(ref))
        except ImageError:
            with self._lock:
                self._empty[str(ref.path)] += 1
            raise
        try:
            ref.path.parent.mkdir(parents=True, exist_ok=True)
            # The same temporary name each time: the next run overwrites what a killed one left.
            with replace_atomic(ref.path, unique=False) as temporary:
                temporary.write_bytes(data)
        except OSError as error:
            raise StorageError(
                f"the crops cannot be written to {self.folder}",
                expected="a writable folder with free space",
                actual=str(error),
                fix="free some space or choose another folder with --crops, and run the same command again",
            ) from error


def _lies_inside(grid: MapGrid, lats: NDArray[np.float64], sides: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Which frames surely lie on a map of all longitudes, so that most craters need no closer look."""
    if not isinstance(grid, Grid) or not grid.wraps:
        return np.zeros(len(lats), np.bool_)
    reach = np.degrees(np.arcsin(np.clip(sides / grid.radius * np.sqrt(0.5), 0, 1)))  # to the corners
    edge = (grid.north - grid.south) / grid.height
    return np.asarray((sides < grid.radius) & (lats + reach < grid.north - edge) & (lats - reach > grid.south + edge))
