"""Crops of craters from four maps of the Moon: craters in, PNG files and ImageRefs with a crater's attributes out.

    brim            optical mosaic, 2.7 km per pixel
    celestia        another, by other people from other photographs
    hillshade_270   terrain lit from the west (8-bit heights, 1.9 km per pixel)
    hillshade_315   the same, lit from the north-west

Files lie in FOLDER/crops/SOURCE/VIEWx/ID.png, and a turned crop in SOURCE_turned. A file that is there is not made
again. Turned crops show the ground turned about the crater by an angle that the crater's id draws.
"""

import os
import zlib
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from resight.data.maps.crater_catalogue import Crater, read_catalogue
from resight.data.maps.map_file import open_map
from resight.data.maps.map_image import MapImage, cut
from resight.data.maps.moon_maps import GLOBAL, MOSAIC_BOUNDS, MOSAICS, MoonMaps, find_maps
from resight.data.maps.terrain import MOON_RADIUS, Light
from resight.types import ImageRef

OPTICAL = {"celestia": MOSAICS[0], "brim": MOSAICS[1]}
LIGHTS = {f"hillshade_{azimuth}": Light(float(azimuth), 45.0, 1.0) for azimuth in (270, 315)}
SOURCES = (*OPTICAL, *LIGHTS)
PIXELS = 256
TURNED = "_turned"


def read_craters() -> list[Crater]:
    """The catalogue of craters of 20 km and more."""
    return read_catalogue(_root() / "HeadCraters.csv")


def render(craters: Sequence[Crater], source: str, view: float, folder: Path) -> list[ImageRef]:
    """One crop per crater; `source` may end in `_turned`."""
    return list(_render(craters, source, view, folder))


def find_angle(crater: Crater) -> float:
    """Degrees, drawn by the crater's id."""
    return 360 * zlib.crc32(crater.id.encode()) / 2**32


def _render(craters: Sequence[Crater], source: str, view: float, folder: Path) -> Iterator[ImageRef]:
    below = folder / "crops" / source / f"{view:g}x"
    below.mkdir(parents=True, exist_ok=True)
    for crater in craters:
        path = below / f"{crater.id}.png"
        if not path.is_file():
            cv2.imwrite(str(path), _draw(crater, source, view))
        about = {"label": crater.id, "view": f"{view:g}x", "radius_km": MOON_RADIUS / 1000, "source": source}
        position = {"crater_lat": crater.lat, "crater_lon": crater.lon, "diameter_km": crater.diameter}
        yield ImageRef(f"{source}/{crater.id}", path, attributes={**about, **position})


def _draw(crater: Crater, source: str, view: float) -> NDArray[np.uint8]:
    if not source.endswith(TURNED):
        return _cut(crater, source, view, PIXELS)
    wide = 3 * PIXELS // 2  # holds the turned square
    ground = _cut(crater, source.removesuffix(TURNED), view * wide / PIXELS, wide)
    middle = (wide - 1) / 2
    turn = cv2.getRotationMatrix2D((middle, middle), find_angle(crater), 1)
    start = (wide - PIXELS) // 2
    turned = cv2.warpAffine(ground, turn, (wide, wide), flags=cv2.INTER_CUBIC)
    return np.ascontiguousarray(turned[start : start + PIXELS, start : start + PIXELS])


def _cut(crater: Crater, source: str, view: float, pixels: int) -> NDArray[np.uint8]:
    frame = crater.frame(view, MOON_RADIUS)
    if source in LIGHTS:
        return _open_hills().shade(frame, True, LIGHTS[source], pixels)
    crop = cut(_open_mosaic(OPTICAL[source]), frame, pixels)
    return np.asarray(crop if crop.ndim == 2 else cv2.cvtColor(crop, cv2.COLOR_RGB2GRAY), np.uint8)


@cache
def _open_mosaic(name: str) -> MapImage:
    return open_map(_root() / name, MOSAIC_BOUNDS, MOON_RADIUS)


@cache
def _open_hills() -> MoonMaps:
    return find_maps(_root())


def _root() -> Path:
    root = Path(os.environ["RESIGHT_DATA"]) / "moon"
    assert (root / GLOBAL).is_file(), f"there are no maps of the Moon in {root}"
    return root
