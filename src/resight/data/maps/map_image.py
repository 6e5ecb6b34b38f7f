"""A map of a globe (PNG, JPEG, TIFF, GeoTIFF) in, square crops of the ground out (`open_map`, `cut`).

Maps are equirectangular: rows run from north to south and columns from west to east, both in equal degrees, so that
ground away from the equator is stretched. A crop shows the ground from straight above its centre (orthographic
projection), north up, so that craters are round in it. On a map that spans the whole globe, columns continue over its
edge: column `width` is column 0.

A plain image is decoded once, as a whole, and its bounds are given. A GeoTIFF has its own bounds, in degrees or in
metres of the equirectangular projection; it is read window by window, so that it may be larger than memory, and needs
the extra `geo`. Pixels that are not 8-bit are stretched: the 0.1th percentile of the whole map becomes 0, the 99.9th
255; pixels without data become 0.
"""

import importlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import cv2
import numpy as np
from numpy.typing import NDArray

from resight.data.decode import decode
from resight.data.image_files import read_file
from resight.errors import ImageError, ManifestError, MissingExtra

PROBES = np.linspace(-0.5, 0.5, 9)  # points per side of a frame that must lie on the map
GLOBE = (-180.0, -90.0, 180.0, 90.0)
TIFF = (".tif", ".tiff")
MARGIN = 2  # pixels around a window, for the interpolation at its edge
OVERVIEW = 1024  # longer side of the reduced map whose percentiles set the stretch
MAX_WINDOW = 32_000  # pixels per side, just below the limit of cv2.remap
MAX_FINER = 16  # a crop is sampled at most this many times finer, then averaged
Degrees = NDArray[np.float64]
Pixels = NDArray[np.uint8]


@dataclass(frozen=True)
class Frame:
    """The ground that a crop shows: a square around lat, lon, `side` metres wide."""

    lat: float
    lon: float
    side: float


@dataclass(frozen=True)
class Grid:
    """The geometry of a map: edges in degrees, size in pixels, on a globe of `radius` metres."""

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
        across, up = np.meshgrid(PROBES * frame.side, PROBES * frame.side)
        rows, columns = self.find_pixels(frame, across, up)
        return bool(  # the ground continues beyond a pole
            (rows.min() >= margin or self.north == 90)
            and (rows.max() <= self.height - 1 - margin or self.south == -90)
            and (self.wraps or (columns.min() >= margin and columns.max() <= self.width - 1 - margin))
        )

    def find_pixels(self, frame: Frame, across: Degrees, up: Degrees) -> tuple[Degrees, Degrees]:
        """Rows and columns of the map for points `across` metres east and `up` metres north of a frame's centre."""
        x, y = across / self.radius, up / self.radius
        z = np.sqrt(1 - x**2 - y**2)
        lat = np.radians(frame.lat)
        lats = np.degrees(np.arcsin(np.clip(z * np.sin(lat) + y * np.cos(lat), -1, 1)))
        lons = self.turn(frame.lon) + np.degrees(np.arctan2(x, z * np.cos(lat) - y * np.sin(lat)))
        rows = (self.north - lats) * (self.height / (self.north - self.south)) - 0.5
        columns = (lons - self.west) * (self.width / (self.east - self.west)) - 0.5
        return rows, columns

    def turn(self, lon: float) -> float:
        """The longitude in the map's range: catalogues and maps count either from -180 to 180 or from 0 to 360."""
        turns = np.floor((lon - self.west) / 360)
        return lon - 360 * float(turns) if turns else lon


class MapImage(Protocol):
    @property
    def grid(self) -> Grid: ...

    def read(self, top: int, bottom: int, left: int, right: int) -> NDArray[Any]:
        """Pixels [h, w] or [h, w, 3] RGB of a window inside the map."""


def open_map(path: Path, bounds: tuple[float, ...], radius: float) -> MapImage:
    """Open the map in a file; `bounds` are west, south, east, north in degrees.

    Without bounds, a TIFF must be a GeoTIFF, and any other image spans the whole globe from -180 to 180 degrees.
    """
    if path.suffix.lower() in TIFF and not bounds and path.is_file():
        return open_geotiff(path, radius)
    try:
        image = decode(read_file(path)[0], str(path))
    except ImageError as error:
        raise ManifestError(
            f"the map {path} cannot be read",
            expected="a whole PNG, JPEG or TIFF image",
            actual=error.problem,
            fix="put the map there, or name another file with the setting map",
        ) from error
    west, south, east, north = bounds or GLOBE
    height, width = image.pixels.shape[:2]
    pixels = image.pixels[..., 0] if image.mode in ("1", "L", "I", "F", "I;16", "I;16B") else image.pixels
    return PlainMap(Grid(west, east, south, north, width, height, radius), pixels)


def cut(image: MapImage, frame: Frame, pixels: int) -> NDArray[Any]:
    """Draw the ground of a frame [pixels, pixels] or [pixels, pixels, 3]; a finer map is averaged.

    The map may also hold 16-bit values; the crop then does too.
    """
    grid = image.grid
    finer = int(np.clip(np.ceil(frame.side / pixels / grid.pixel), 1, MAX_FINER))
    side = pixels * finer
    steps = ((np.arange(side) + 0.5) / side - 0.5) * frame.side
    rows, columns = grid.find_pixels(frame, *np.meshgrid(steps, -steps))
    top, left = (int(np.floor(values.min())) - MARGIN for values in (rows, columns))
    bottom, right = (int(np.ceil(values.max())) + MARGIN + 1 for values in (rows, columns))
    top, bottom = max(top, 0), min(bottom, grid.height)
    if not grid.wraps:
        left, right = max(left, 0), min(right, grid.width)
    window = _read_around(image, top, bottom, left, right)
    (down, along), window = _fit(window)
    drawn = cv2.remap(
        window,
        np.asarray((columns - left + 0.5) * along - 0.5, np.float32),
        np.asarray((rows - top + 0.5) * down - 0.5, np.float32),
        cv2.INTER_CUBIC,
        borderMode=cv2.BORDER_REPLICATE,
    )
    return np.asarray(cv2.resize(drawn, (pixels, pixels), interpolation=cv2.INTER_AREA) if finer > 1 else drawn)


@dataclass(frozen=True, eq=False)
class PlainMap:
    grid: Grid
    pixels: NDArray[Any] = field(repr=False)

    def read(self, top: int, bottom: int, left: int, right: int) -> NDArray[Any]:
        return self.pixels[top:bottom, left:right]


@dataclass(frozen=True, eq=False)
class GeoTiff:
    grid: Grid
    source: Any  # an open rasterio dataset
    bands: tuple[int, ...]
    low: float
    high: float

    def read(self, top: int, bottom: int, left: int, right: int) -> Pixels:
        try:
            values = self.source.read(self.bands, window=((top, bottom), (left, right)), masked=True)
        except OSError as error:
            raise _refuse_geotiff(Path(self.source.name), "cannot be read", str(error)) from error
        return _to_bytes(values, self.low, self.high)


def open_geotiff(path: Path, radius: float) -> GeoTiff:
    try:
        rasterio = importlib.import_module("rasterio")
    except ModuleNotFoundError as error:
        raise MissingExtra(
            f"the bounds of {path} are read by the Python package 'rasterio', which is not installed",
            expected="'rasterio' to be importable, or the map's bounds",
            actual=str(error),
            fix="pip install 'resight[geo]', or give the bounds: west, south, east, north in degrees",
        ) from error
    try:
        source = rasterio.open(path)
    except OSError as error:
        raise _refuse_geotiff(path, "cannot be read", str(error)) from error
    west, south, east, north = _find_bounds(source, path)
    grid = Grid(west, east, south, north, source.width, source.height, radius)
    bands = (1, 2, 3) if source.count >= 3 else (1,)
    if set(source.dtypes) == {"uint8"}:
        return GeoTiff(grid, source, bands, 0.0, 255.0)
    shrink = max(1.0, max(source.width, source.height) / OVERVIEW)
    shape = (len(bands), max(1, int(source.height / shrink)), max(1, int(source.width / shrink)))
    values = source.read(bands, out_shape=shape, masked=True).compressed()
    finite = values[np.isfinite(values)]
    if not len(finite):
        raise _refuse_geotiff(path, "has no data", "no pixel with a finite value")
    low, high = (float(value) for value in np.percentile(finite, (0.1, 99.9)))
    return GeoTiff(grid, source, bands, low, high if high > low else low + 1)


def _read_around(image: MapImage, top: int, bottom: int, left: int, right: int) -> NDArray[Any]:
    """Read a window that may continue over the edge of a map of the whole globe."""
    width = image.grid.width
    parts = []
    while left < right:
        turns = left // width
        end = min(right, (turns + 1) * width)
        parts.append(image.read(top, bottom, left - turns * width, end - turns * width))
        left = end
    return np.ascontiguousarray(np.concatenate(parts, axis=1))


def _fit(window: NDArray[Any]) -> tuple[tuple[float, float], NDArray[Any]]:
    """Shrink a window to the size limit of cv2.remap, and return the scales of rows and columns; needed near a pole."""
    height, width = window.shape[:2]
    rows, columns = min(height, MAX_WINDOW), min(width, MAX_WINDOW)
    if (rows, columns) != (height, width):
        window = np.asarray(cv2.resize(window, (columns, rows), interpolation=cv2.INTER_AREA))
    return (rows / height, columns / width), window


def _find_bounds(source: Any, path: Path) -> tuple[float, float, float, float]:
    """West, south, east, north in degrees."""
    west, south, east, north = (float(value) for value in source.bounds)
    turned = source.transform.b or source.transform.d or source.transform.e >= 0
    if source.crs is None or turned:
        raise _refuse_geotiff(path, "has no usable bounds", "turned, mirrored or without coordinates")
    if source.crs.is_geographic:
        return west, south, east, north
    about = source.crs.to_dict()
    globe = about.get("R") or about.get("a")
    if about.get("proj") != "eqc" or not globe:
        raise _refuse_geotiff(path, "has another projection", str(about))
    degree = np.radians(float(globe))  # metres of a meridian
    shrink = np.cos(np.radians(float(about.get("lat_ts", 0))))
    x0, y0, lon, lat = (float(about.get(name, 0)) for name in ("x_0", "y_0", "lon_0", "lat_0"))
    west, east = (lon + float((x - x0) / degree / shrink) for x in (west, east))
    south, north = (lat + float((y - y0) / degree) for y in (south, north))
    return west, south, east, north


def _to_bytes(values: Any, low: float, high: float) -> Pixels:
    """Masked values [bands, h, w] → [h, w] or [h, w, 3]."""
    stretched = (np.ma.filled(values, 0).astype(np.float64) - low) * (255 / (high - low))
    known = np.isfinite(stretched) & ~np.ma.getmaskarray(values)
    image = np.clip(np.rint(np.where(known, stretched, 0)), 0, 255).astype(np.uint8)
    return np.asarray(image[0] if len(image) == 1 else np.moveaxis(image, 0, -1))


def _refuse_geotiff(path: Path, problem: str, actual: str) -> ManifestError:
    return ManifestError(
        f"the map {path} {problem}",
        expected="a GeoTIFF, north up, in degrees or in metres of the equirectangular projection",
        actual=actual[:300],
        fix="project it so (gdalwarp -t_srs '+proj=longlat +R=…'), or give its bounds in degrees",
    )
