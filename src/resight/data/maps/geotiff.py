"""A GeoTIFF in, a map that is read window by window out (`open_geotiff`). Needs the extra `geo` (rasterio).

Bounds and globe are its own: in degrees, in metres of the equirectangular projection, or in metres of the polar
stereographic one that is true to scale at the pole. Given bounds replace them. Pixels that are not 8-bit are stretched:
the 0.1th percentile of the whole map becomes 0, the 99.9th 255; pixels without data become 0.
"""

import importlib
import os
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from resight.data.maps.map_image import MapGrid, Window
from resight.data.maps.map_label import choose_radius, make_grid, place_pole
from resight.errors import ManifestError, MissingExtra, install_extra

OVERVIEW = 1024  # longer side of the reduced map whose percentiles set the stretch
CACHE = "64"  # MB of decoded blocks that GDAL keeps
BLOCK = 1 << 22  # values that are stretched at once


@dataclass(frozen=True, eq=False)
class GeoTiff:
    grid: MapGrid
    source: Any  # an open rasterio dataset
    bands: tuple[int, ...]
    low: float
    high: float
    lock: Any = field(default_factory=threading.Lock, repr=False)  # a data set serves one thread at a time

    def read(self, top: int, bottom: int, left: int, right: int, steps: tuple[int, int] = (1, 1)) -> Window:
        size = -(-(bottom - top) // steps[0]), -(-(right - left) // steps[1])
        reduced = {} if steps == (1, 1) else {"out_shape": (len(self.bands), *size)}
        try:
            with self.lock:
                values = self.source.read(self.bands, window=((top, bottom), (left, right)), masked=True, **reduced)
        except OSError as error:
            raise _refuse_geotiff(Path(self.source.name), "cannot be read", str(error)) from error
        return _to_bytes(values, self.low, self.high)


def open_geotiff(path: Path, bounds: tuple[float, ...], radius: float | None) -> GeoTiff:
    os.environ.setdefault("GDAL_CACHEMAX", CACHE)  # else 5 % of the machine's memory; read when GDAL first reads
    try:
        rasterio = importlib.import_module("rasterio")
    except ModuleNotFoundError as error:
        raise MissingExtra(
            f"the bounds of {path} are read by the Python package 'rasterio', which is not installed",
            expected="'rasterio' to be importable, or the map's bounds",
            actual=str(error),
            fix=f"{install_extra('geo')}, or give the bounds: west, south, east, north in degrees",
        ) from error
    try:
        source = rasterio.open(path)
    except OSError as error:
        raise _refuse_geotiff(path, "cannot be read", str(error)) from error
    grid = (
        make_grid(path, bounds, source.width, source.height, choose_radius(path, None, radius))
        if bounds
        else _find_grid(source, path, radius)
    )
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


def _find_grid(source: Any, path: Path, given: float | None) -> MapGrid:
    edges = tuple(float(value) for value in source.bounds)
    turned = source.transform.b or source.transform.d or source.transform.e >= 0
    if source.crs is None or turned:
        raise _refuse_geotiff(path, "has no usable bounds", "turned, mirrored or without coordinates")
    about = source.crs.to_dict()
    own = about.get("R") or about.get("a")
    size = source.width, source.height
    if source.crs.is_geographic:
        return make_grid(path, edges, *size, choose_radius(path, float(own) if own else None, given))
    if about.get("proj") not in ("eqc", "stere") or not own:
        raise _refuse_geotiff(path, "has another projection", str(about))
    radius = choose_radius(path, float(own), given)
    x0, y0, lon, lat = (float(about.get(name, 0)) for name in ("x_0", "y_0", "lon_0", "lat_0"))
    west, south, east, north = edges
    if about["proj"] == "stere":
        scale = (east - west) / source.width
        true = float(about.get("lat_ts", lat)), float(about.get("k", about.get("k_0", 1)))
        if abs(lat) != 90 or true != (lat, 1.0) or abs((north - south) / source.height / scale - 1) > 1e-6:
            raise _refuse_geotiff(path, "has a stereographic projection that is not true at a pole", str(about))
        return place_pole(lat > 0, lon, scale, (north - y0) / scale - 0.5, (x0 - west) / scale - 0.5, *size, radius)
    degree = np.radians(float(own))  # metres of a meridian
    shrink = np.cos(np.radians(float(about.get("lat_ts", 0))))
    west, east = (lon + float((x - x0) / degree / shrink) for x in (west, east))
    south, north = (lat + float((y - y0) / degree) for y in (south, north))
    return make_grid(path, (west, south, east, north), *size, radius)


def _to_bytes(values: Any, low: float, high: float) -> Window:
    """Masked values [bands, h, w] → [h, w] or [h, w, 3]."""
    missing = np.asarray(np.ma.getmaskarray(values).any(axis=0), np.bool_)
    data = np.ma.getdata(values)
    image = np.empty(data.shape, np.uint8)
    rows = max(BLOCK // max(data[:, 0].size, 1), 1)
    for top in range(0, data.shape[1], rows):
        part = slice(top, top + rows)
        stretched = (data[:, part].astype(np.float32) - np.float32(low)) * np.float32(255 / (high - low))
        known = np.isfinite(stretched)
        missing[part] |= ~known.all(axis=0)
        np.copyto(stretched, 0, where=~known)
        image[:, part] = np.clip(np.rint(stretched, out=stretched), 0, 255)
    image[:, missing] = 0
    return Window(image[0] if len(image) == 1 else np.moveaxis(image, 0, -1), missing if missing.any() else None)


def _refuse_geotiff(path: Path, problem: str, actual: str) -> ManifestError:
    return ManifestError(
        f"the map {path} {problem}",
        expected="a GeoTIFF, north up, in degrees or metres, equirectangular or polar stereographic",
        actual=actual[:300],
        fix="project it so (gdalwarp -t_srs '+proj=longlat +R=…'), or give its bounds in degrees",
    )
