"""A map of a globe in, square crops of the ground out (`draw`, `cut`), each with the share of it that is missing.

Maps are equirectangular (`Grid`): rows run from north to south and columns from west to east, both in equal degrees, so
that ground away from the equator is stretched; or they lie around a pole (resight.data.maps.polar_grid). A crop shows
the ground from straight above its centre (orthographic projection), north up, so that craters are round in it. On a map
that spans the whole globe, columns continue over its edge: column `width` is column 0.

A crop reads only its window of the map, and of a map much finer than the crop only every second, third … pixel; large
crops are drawn in strips. So memory does not grow with the map.
"""

from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import cv2
import numpy as np
from numpy.typing import NDArray

PROBES = np.linspace(-0.5, 0.5, 9)  # points per side of a frame that must lie on the map
MARGIN = 2  # pixels around a window, for the interpolation at its edge
MAX_WINDOW = 32_000  # pixels per side, just below the limit of cv2.remap
MAX_FINER = 16  # a crop is sampled at most this many times finer, then averaged
MAX_SIDE = 8192  # points per side that a crop is sampled at
STRIP = 1 << 20  # points that are drawn at once
Degrees = NDArray[np.float64]
Pixels = NDArray[np.uint8]


@dataclass(frozen=True)
class Frame:
    """The ground that a crop shows: a square around lat, lon, `side` metres wide."""

    lat: float
    lon: float
    side: float

    def find_positions(self, across: Degrees, up: Degrees, radius: float) -> tuple[Degrees, Degrees]:
        """Latitudes, and longitudes relative to the centre's, of points `across` metres east and `up` metres north."""
        x, y = across / radius, up / radius
        z = np.sqrt(1 - x**2 - y**2)
        lat = np.radians(self.lat)
        lats = np.degrees(np.arcsin(np.clip(z * np.sin(lat) + y * np.cos(lat), -1, 1)))
        return lats, np.degrees(np.arctan2(x, z * np.cos(lat) - y * np.sin(lat)))

    def find_probes(self) -> tuple[Degrees, Degrees]:
        """Points all over the frame, in metres east and north of its centre."""
        across, up = np.meshgrid(PROBES * self.side, PROBES * self.side)
        return across, up


class MapGrid(Protocol):
    """Where the pixels of a map lie on its globe."""

    @property
    def width(self) -> int: ...

    @property
    def height(self) -> int: ...

    @property
    def radius(self) -> float:
        """Metres, of the globe."""

    @property
    def wraps(self) -> bool:
        """Whether column `width` is column 0 again."""

    @property
    def pixel(self) -> float:
        """Metres of ground per row."""

    def holds(self, frame: Frame, margin: int = 0) -> bool:
        """Whether all of a frame lies on the map, at least `margin` pixels away from its edges."""

    def find_pixels(self, frame: Frame, across: Degrees, up: Degrees) -> tuple[Degrees, Degrees]:
        """Rows and columns of the map for points `across` metres east and `up` metres north of a frame's centre."""


@dataclass(frozen=True)
class Grid:
    """The geometry of an equirectangular map: edges in degrees, size in pixels, on a globe of `radius` metres."""

    west: float
    east: float
    south: float
    north: float
    width: int
    height: int
    radius: float

    @property
    def wraps(self) -> bool:
        """Whether the map spans all longitudes."""
        return abs(self.east - self.west - 360) < 1e-6

    @property
    def pixel(self) -> float:
        """Metres of ground per row."""
        return float(np.radians((self.north - self.south) / self.height) * self.radius)

    def holds(self, frame: Frame, margin: int = 0) -> bool:
        """Whether all of a frame lies on the map, at least `margin` pixels away from its edges."""
        lon = self.turn(frame.lon)
        if not (self.south < frame.lat < self.north and self.west < lon < self.east):
            return self.wraps and lon == self.west and self.holds(Frame(frame.lat, lon + 1e-9, frame.side), margin)
        if frame.side > self.radius:  # a wider one is not all visible from above
            return False
        rows, columns = self.find_pixels(frame, *frame.find_probes())
        return bool(  # the ground continues beyond a pole
            (rows.min() >= margin or self.north == 90)
            and (rows.max() <= self.height - 1 - margin or self.south == -90)
            and (self.wraps or (columns.min() >= margin and columns.max() <= self.width - 1 - margin))
        )

    def find_pixels(self, frame: Frame, across: Degrees, up: Degrees) -> tuple[Degrees, Degrees]:
        """Rows and columns of the map for points `across` metres east and `up` metres north of a frame's centre."""
        lats, turned = frame.find_positions(across, up, self.radius)
        rows = (self.north - lats) * (self.height / (self.north - self.south)) - 0.5
        columns = (self.turn(frame.lon) + turned - self.west) * (self.width / (self.east - self.west)) - 0.5
        return rows, columns

    def turn(self, lon: float) -> float:
        """The longitude in the map's range: catalogues and maps count either from -180 to 180 or from 0 to 360."""
        turns = np.floor((lon - self.west) / 360)
        return lon - 360 * float(turns) if turns else lon


class Window(NamedTuple):
    pixels: NDArray[Any]  # [h, w] or [h, w, 3] RGB
    missing: NDArray[np.bool_] | None = None  # [h, w] where the map has no data; None: it has data everywhere


class MapImage(Protocol):
    @property
    def grid(self) -> MapGrid: ...

    def read(self, top: int, bottom: int, left: int, right: int, steps: tuple[int, int] = (1, 1)) -> Window:
        """A window inside the map; `steps` = (2, 3) reads every second row and every third column."""


class Crop(NamedTuple):
    pixels: NDArray[Any]  # [side, side] or [side, side, 3]
    missing: float  # share of the crop where the map has no data


@dataclass(frozen=True, eq=False)
class PlainMap:
    """A map in memory; pixels of the value `missing` have no data."""

    grid: Grid
    pixels: NDArray[Any] = field(repr=False)
    missing: int | None = None

    def read(self, top: int, bottom: int, left: int, right: int, steps: tuple[int, int] = (1, 1)) -> Window:
        pixels = self.pixels[top : bottom : steps[0], left : right : steps[1]]
        if self.missing is None:
            return Window(pixels)
        same = pixels == self.missing
        return Window(pixels, same if same.ndim == 2 else same.all(axis=-1))


def cut(image: MapImage, frame: Frame, pixels: int) -> NDArray[Any]:
    """The crop alone, [pixels, pixels] or [pixels, pixels, 3]."""
    return draw(image, frame, pixels).pixels


def draw(image: MapImage, frame: Frame, pixels: int) -> Crop:
    """Draw the ground of a frame; a finer map is averaged.

    The map may also hold 16-bit values; the crop then does too.
    """
    grid = image.grid
    finer = int(np.clip(np.ceil(frame.side / pixels / grid.pixel), 1, min(MAX_FINER, max(MAX_SIDE // pixels, 1))))
    side = pixels * finer
    step = max(int(frame.side / side / grid.pixel), 1)
    points = ((np.arange(side) + 0.5) / side - 0.5) * frame.side
    strip = max(STRIP // (side * finer), 1) * finer
    parts = [
        _draw_strip(image, frame, points, points[first : first + strip], step, finer) for first in range(0, side, strip)
    ]
    drawn = parts[0].pixels if len(parts) == 1 else np.concatenate([part.pixels for part in parts])
    return Crop(
        drawn, float(np.average([part.missing for part in parts], weights=[len(part.pixels) for part in parts]))
    )


def _draw_strip(image: MapImage, frame: Frame, across: Degrees, down: Degrees, step: int, finer: int) -> Crop:
    grid = image.grid
    rows, columns = grid.find_pixels(frame, *np.meshgrid(across, -down))
    top, left = (int(np.floor(values.min())) - MARGIN * step for values in (rows, columns))
    bottom, right = (int(np.ceil(values.max())) + MARGIN * step + 1 for values in (rows, columns))
    top, bottom = max(top, 0), min(bottom, grid.height)
    if not grid.wraps:
        left, right = max(left, 0), min(right, grid.width)
    # Near a pole a window may be as wide as the map, whose pixels are narrow there.
    steps = tuple(max(step, -(-length // MAX_WINDOW)) for length in (bottom - top, right - left))
    window = _read_around(image, top, bottom, left, right, (steps[0], steps[1]))
    places = (np.asarray((columns - left) / steps[1], np.float32), np.asarray((rows - top) / steps[0], np.float32))
    drawn = cv2.remap(window.pixels, *places, cv2.INTER_CUBIC, borderMode=cv2.BORDER_REPLICATE)
    missing = 0.0
    if window.missing is not None:
        mask = window.missing.astype(np.uint8)
        missing = float(cv2.remap(mask, *places, cv2.INTER_NEAREST, borderMode=cv2.BORDER_REPLICATE).mean())
    if finer > 1:
        size = (len(across) // finer, len(down) // finer)
        drawn = cv2.resize(drawn, size, interpolation=cv2.INTER_AREA)
    return Crop(np.asarray(drawn), missing)


def _read_around(image: MapImage, top: int, bottom: int, left: int, right: int, steps: tuple[int, int]) -> Window:
    """Read a window that may continue over the edge of a map of the whole globe."""
    width = image.grid.width
    parts = []
    while left < right:
        turns = left // width
        end = min(right, (turns + 1) * width)
        parts.append(image.read(top, bottom, left - turns * width, end - turns * width, steps))
        left += -(-(end - left) // steps[1]) * steps[1]
    pixels = np.ascontiguousarray(np.concatenate([part.pixels for part in parts], axis=1))
    masks = [part.missing for part in parts if part.missing is not None]
    return Window(pixels, np.concatenate(masks, axis=1) if masks else None)
