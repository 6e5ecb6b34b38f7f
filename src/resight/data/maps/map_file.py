"""The map in a file, opened by what the file is (`open_map`).

    .tif .tiff                  GeoTIFF (geotiff.py); with given bounds and without rasterio, a plain image
    .lbl, .img .raw .dat …      PDS3 (pds3.py): the label, or a raster with a label inside or beside it
    .xml                        PDS4 (pds4.py)
    .png .jpg and other images  decoded once, as a whole; bounds are given, else it spans the globe from -180 to 180

All but plain images are read window by window, and may be larger than memory.
"""

import importlib.util
from pathlib import Path

import numpy as np

from resight.data.decode import MAX_PIXELS, decode
from resight.data.image_files import read_file
from resight.data.maps.geotiff import open_geotiff
from resight.data.maps.map_image import MapImage, PlainMap
from resight.data.maps.map_label import choose_radius, make_grid
from resight.data.maps.pds3 import open_pds3
from resight.data.maps.pds4 import open_pds4
from resight.errors import ImageError, ManifestError

GLOBE = (-180.0, -90.0, 180.0, 90.0)
TIFF = (".tif", ".tiff")
PDS3, RASTERS = (".lbl",), (".img", ".raw", ".dat")
PDS4 = (".xml",)
GREY = ("1", "L", "I", "F", "I;16", "I;16B")


def open_map(path: Path, bounds: tuple[float, ...], radius: float | None, missing: int | None = None) -> MapImage:
    """Open the map in a file; `bounds` are west, south, east, north in degrees, `radius` that of the globe in metres.

    Without a radius, the map must name its own. Pixels of a plain image with the value `missing` have no data.
    """
    suffix = path.suffix.lower()
    if suffix in TIFF and path.is_file() and (not bounds or importlib.util.find_spec("rasterio")):
        return open_geotiff(path, bounds, radius)
    if suffix in RASTERS:
        path = next((one for end in (*PDS3, *PDS4) for one in _find_beside(path, end)), path)
        suffix = path.suffix.lower()
    if suffix in PDS4:
        return open_pds4(path, bounds, radius)
    if suffix in (*PDS3, *RASTERS):
        return open_pds3(path, bounds, radius)
    return _open_image(path, bounds, radius, missing)


def _find_beside(path: Path, suffix: str) -> list[Path]:
    tried = (path.with_suffix(suffix), path.with_suffix(suffix.upper()))
    return [one for one in tried if one.is_file()]


def _open_image(path: Path, bounds: tuple[float, ...], radius: float | None, missing: int | None) -> PlainMap:
    globe = choose_radius(path, None, radius)
    try:
        image = decode(read_file(path)[0], str(path))
    except ImageError as error:
        raise ManifestError(
            f"the map {path} cannot be read",
            expected="a whole PNG, JPEG or TIFF image",
            actual=error.problem,
            fix="put the map there, or name another file; a map of more than "
            f"{MAX_PIXELS / 1e6:.0f} million pixels is read as GeoTIFF: gdal_translate -a_srs '+proj=longlat +R=…' "
            f"-a_ullr WEST NORTH EAST SOUTH {path.name} map.tif",
        ) from error
    height, width = image.pixels.shape[:2]
    # A copy of the one channel: a view would hold the memory of all three.
    pixels = np.ascontiguousarray(image.pixels[..., 0]) if image.mode in GREY else image.pixels
    return PlainMap(make_grid(path, bounds or GLOBE, width, height, globe), pixels, missing)


def identify(path: Path) -> tuple[str, int, int]:
    """Name, size and date of change of a map's file: crops of another one are drawn again."""
    try:
        status = path.stat()
    except OSError:
        return path.name, 0, 0
    return path.name, status.st_size, status.st_mtime_ns
