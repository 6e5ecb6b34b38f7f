"""A map of a globe in, a reduced picture of it with its bounds out, for a page (`read_overview`).

The map may be larger than memory: it is read and averaged strip by strip. The result is cached by the file's path, size
and time, so that a large map is reduced once.
"""

import io
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image

from resight.data.maps.crater_view import MOON_KM
from resight.data.maps.map_file import open_map
from resight.data.maps.map_image import Grid, MapImage
from resight.errors import InputError
from resight.files import cache_folder
from resight.files.atomic import write_atomic
from resight.files.fingerprint import fingerprint

SIDE = 4096  # most pixels of the longer side: what every browser and phone can draw
FINER = 4.0  # pixels of the map per side of a reduced one; those between are passed over
QUALITY = 82  # of the WebP
REDUCING = 1  # increase when the same map is reduced in another way
Pixels = NDArray[np.uint8]


@dataclass(frozen=True)
class Overview:
    """`file` is a WebP of at most SIDE pixels; the bounds are in degrees."""

    file: Path
    west: float
    south: float
    east: float
    north: float


def read_overview(path: Path, bounds: Sequence[float] = ()) -> Overview:
    """`bounds` are west, south, east, north; without them those of a GeoTIFF, or the whole globe from -180 to 180."""
    _check_bounds(bounds)
    status = path.stat() if path.is_file() else None
    if status is None:
        raise InputError(f"there is no map {path}", expected="an image file or a GeoTIFF", fix="check the path")
    key = json.dumps([REDUCING, str(path.resolve()), status.st_size, status.st_mtime_ns, list(bounds), SIDE])
    file = cache_folder() / "maps" / f"{fingerprint(key, 32)}.webp"
    edges = file.with_suffix(".json")
    if not (file.is_file() and edges.is_file()):
        image = open_map(path, tuple(bounds), 1000 * MOON_KM)
        grid = image.grid
        if not isinstance(grid, Grid):
            raise InputError(
                f"the map {path} cannot lie below a map in longitude and latitude",
                expected="an equirectangular map",
                actual="another projection",
                fix="leave out --map, or project it (gdalwarp -t_srs '+proj=longlat +R=…')",
            )
        picture = io.BytesIO()
        Image.fromarray(reduce(image, SIDE)).save(picture, "WEBP", quality=QUALITY)
        with write_atomic(edges) as temporary:
            temporary.write_text(json.dumps([grid.west, grid.south, grid.east, grid.north]), encoding="utf-8")
        with write_atomic(file) as temporary:
            temporary.write_bytes(picture.getvalue())
    return Overview(file, *json.loads(edges.read_text(encoding="utf-8")))


def reduce(image: MapImage, side: int) -> Pixels:
    """The whole map, its longer side at most `side`; every pixel is the mean of those that it stands for."""
    grid = image.grid
    scale = max(1.0, max(grid.width, grid.height) / side)
    width, height = max(1, round(grid.width / scale)), max(1, round(grid.height / scale))
    strips = _read_strips(image, height, max(1, int(scale / FINER)))
    return np.concatenate([cv2.resize(strip, (width, 1), interpolation=cv2.INTER_AREA) for strip in strips])


def _read_strips(image: MapImage, height: int, step: int) -> Iterator[Pixels]:
    """One strip of the map per row of the reduced picture."""
    grid = image.grid
    for row in range(height):
        top, bottom = row * grid.height // height, ceil((row + 1) * grid.height / height)
        yield np.ascontiguousarray(image.read(top, bottom, 0, grid.width, (step, step)).pixels)


def _check_bounds(bounds: Sequence[float]) -> None:
    good = len(bounds) == 4 and bool(np.all(np.isfinite(bounds)))
    if bounds and not (good and bounds[0] < bounds[2] <= bounds[0] + 360 and -90 <= bounds[1] < bounds[3] <= 90):
        raise InputError(
            "the bounds cannot be those of a map",
            expected="west, south, east, north in degrees: west < east, at most 360 apart; -90 ≤ south < north ≤ 90",
            actual=",".join(f"{value:g}" for value in bounds),
            fix="e.g. -180,-90,180,90",
        )
