"""Maps of the Moon in one folder in, square crops out: hillshaded under any light, or from optical mosaics.

    terrain_32ppd_lon0-180_lat-60-60.png      16-bit heights of a part of the Moon, .95 km per pixel (terrain.py)
    WAC_GLD100_E000N1800_016P.jpg             8-bit heights of the whole Moon, longitude 0 to 360, 1.9 km per pixel
    celestia_hires_moon.jpg                   optical mosaic, longitude -180 to 180, 2.7 km per pixel
    moon_8k_color_brim16_4096x2048.jpg        another, of the same bounds

A frame is hillshaded from the 16-bit heights if they hold all of it, else from the 8-bit ones, whose steps are smoothed
first. A whole map is shaded once per light; frames are cut out of it. Optical crops are grey and stretched: the 1st
percentile of the crop becomes 0, the 99th 255.
"""

import threading
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image

from resight.data.maps.map_file import open_map
from resight.data.maps.map_image import Frame, Grid, MapImage, PlainMap, cut
from resight.data.maps.terrain import MOON_RADIUS, STEP, Light, Terrain, find_terrain, shade
from resight.errors import ManifestError
from resight.types import FloatArray

GLOBAL = "WAC_GLD100_E000N1800_016P.jpg"
GLOBAL_BOUNDS = (0.0, -90.0, 360.0, 90.0)  # west, south, east, north
MOSAICS = ("celestia_hires_moon.jpg", "moon_8k_color_brim16_4096x2048.jpg")
MOSAIC_BOUNDS = (-180.0, -90.0, 180.0, 90.0)
GREY = 48.64  # metres per grey value of the 8-bit heights: least squares against the 16-bit ones (correlation .999)
SMOOTHED = 1.0  # pixels: deviation of the Gaussian that smooths the steps of the 8-bit heights
BRIGHT = 65_535  # the value of full brightness in a shaded map
LEAST_COSINE = 0.05  # of the latitude, in slopes: columns of the map meet at the poles
Pixels = NDArray[np.uint8]


@dataclass(frozen=True)
class MoonMaps:
    root: Path
    terrain: Terrain
    _shaded: dict[tuple[bool, Light], PlainMap] = field(default_factory=dict, repr=False, compare=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)

    @property
    def paths(self) -> list[Path]:
        return [self.terrain.path, *(self.root / name for name in (GLOBAL, *MOSAICS))]

    @cached_property
    def global_grid(self) -> Grid:
        return _read_grid(self.root / GLOBAL, GLOBAL_BOUNDS)

    @cached_property
    def mosaic_grids(self) -> tuple[Grid, ...]:
        return tuple(_read_grid(self.root / name, MOSAIC_BOUNDS) for name in MOSAICS)

    def choose_relief(self, frame: Frame) -> Grid | None:
        """The grid of the heights that a frame is hillshaded from; None if no map holds it."""
        if self.terrain.holds(frame):
            return self.terrain.grid
        return self.global_grid if frame.side <= MOON_RADIUS else None  # a wider one is not all visible from above

    def shade(self, frame: Frame, coarse: bool, light: Light, pixels: int) -> Pixels:
        """The hillshaded ground [pixels, pixels] of a frame; `coarse` takes the 8-bit heights."""
        bright = cut(self._shade_map(coarse, light), frame, pixels)
        return np.asarray(np.rint(bright.astype(np.float32) * np.float32(255 / BRIGHT)), np.uint8)

    def photograph(self, frame: Frame, mosaic: int, pixels: int) -> Pixels:
        """The ground [pixels, pixels] of a frame in one of the optical mosaics, stretched."""
        crop = cut(self._mosaics[mosaic], frame, pixels)
        grey = (crop if crop.ndim == 2 else cv2.cvtColor(crop, cv2.COLOR_RGB2GRAY)).astype(np.float32)
        low, high = np.percentile(grey, (1, 99))
        return np.asarray(np.clip(np.rint((grey - low) * (255 / max(high - low, 1.0))), 0, 255), np.uint8)

    def _shade_map(self, coarse: bool, light: Light) -> MapImage:
        with self._lock:
            if (coarse, light) not in self._shaded:
                grid, heights = self._coarse if coarse else self._fine
                step = np.radians((grid.north - grid.south) / grid.height)
                lats = np.radians(grid.north) - (np.arange(grid.height) + 0.5) * step
                east = grid.pixel * np.maximum(np.cos(lats), LEAST_COSINE)[:, None]
                bright = shade(heights, east, grid.pixel, light.azimuth, light.altitude, light.exaggeration)
                self._shaded[coarse, light] = PlainMap(grid, np.rint(bright * BRIGHT).astype(np.uint16))
            return self._shaded[coarse, light]

    @cached_property
    def _fine(self) -> tuple[Grid, FloatArray]:
        return self.terrain.grid, self.terrain.read_heights().astype(np.float32) * np.float32(STEP)

    @cached_property
    def _coarse(self) -> tuple[Grid, FloatArray]:
        plain = open_map(self.root / GLOBAL, GLOBAL_BOUNDS, MOON_RADIUS)
        grid = self.global_grid
        grey = plain.read(0, grid.height, 0, grid.width).pixels
        grey = grey if grey.ndim == 2 else grey[..., 0]
        margin = int(np.ceil(4 * SMOOTHED))
        around = np.pad(grey.astype(np.float32) * np.float32(GREY), ((0, 0), (margin, margin)), mode="wrap")
        smooth = np.asarray(cv2.GaussianBlur(around, (0, 0), SMOOTHED), np.float32)
        return grid, np.ascontiguousarray(smooth[:, margin:-margin])

    @cached_property
    def _mosaics(self) -> list[MapImage]:
        return [open_map(self.root / name, MOSAIC_BOUNDS, MOON_RADIUS) for name in MOSAICS]


def find_maps(root: Path) -> MoonMaps:
    """The maps in a folder; refuses a folder that lacks one."""
    maps = MoonMaps(root, find_terrain(root))
    missing = [path.name for path in maps.paths if not path.is_file()]
    if missing:
        raise ManifestError(
            f"{root} lacks a map of the Moon",
            expected=", ".join((GLOBAL, *MOSAICS)),
            actual=f"no {', no '.join(missing)}",
            fix="give the folder that holds all maps and both catalogues",
        )
    return maps


def _read_grid(path: Path, bounds: tuple[float, float, float, float]) -> Grid:
    try:
        with Image.open(path) as image:
            width, height = image.size
    except (OSError, SyntaxError, ValueError) as error:
        raise ManifestError(
            f"the map {path} cannot be read",
            expected="a whole JPEG image",
            actual=str(error),
            fix="replace it by an intact copy of the map",
        ) from error
    west, south, east, north = bounds
    return Grid(west, east, south, north, width, height, MOON_RADIUS)
