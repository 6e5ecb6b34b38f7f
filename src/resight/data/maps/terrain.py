"""A map of heights on the Moon in, square hillshaded crops of it out.

    terrain_32ppd_lon0-180_lat-60-60.png    16-bit grey: 32 pixels per degree, longitude 0 to 180, latitude -60 to 60

The file name holds the bounds; resight.data.maps.map_image describes how the pixels lie and which ground a crop shows.
Shading follows Lambert's law: brightness = max(0, n · l), where

    n = (-e ∂z/∂east, -e ∂z/∂north, 1), normalised; e is the vertical exaggeration
    l = (sin azimuth cos altitude, cos azimuth cos altitude, sin altitude)

The azimuth is the direction that the light comes from, in degrees clockwise from north. There are no cast shadows.
"""

import re
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import ArrayLike, NDArray
from PIL import Image

from resight.data.maps.map_image import Frame, Grid
from resight.errors import ManifestError
from resight.types import FloatArray

NAME = re.compile(r"terrain_(\d+)ppd_lon(-?\d+)-(-?\d+)_lat(-?\d+)-(-?\d+)\.png")
MOON_RADIUS = 1_737_400.0  # metres
STEP = 2.0  # metres of height per grey value
MARGIN = 3  # pixels around a crop, for slopes and interpolation at its edge
Pixels = NDArray[np.uint8]


@dataclass(frozen=True)
class Light:
    azimuth: float  # degrees clockwise from north
    altitude: float  # degrees above the horizon
    exaggeration: float  # of heights


@dataclass(frozen=True)
class Terrain:
    """A map's file and bounds; `read_heights` reads the pixels."""

    path: Path
    density: int  # pixels per degree
    west: int
    east: int
    south: int
    north: int

    @property
    def grid(self) -> Grid:
        height, width = self.shape
        return Grid(self.west, self.east, self.south, self.north, width, height, MOON_RADIUS)

    def holds(self, frame: Frame) -> bool:
        """Whether all of a frame lies on the map."""
        return self.grid.holds(frame, MARGIN)

    @property
    def shape(self) -> tuple[int, int]:
        return (self.north - self.south) * self.density, (self.east - self.west) * self.density

    def read_heights(self) -> NDArray[np.uint16]:
        """The whole map [H, W], in units of STEP metres."""
        try:
            with Image.open(self.path) as image:
                heights = np.array(image)
        except (OSError, SyntaxError, ValueError) as error:
            raise self._refuse("cannot be read", "a whole 16-bit PNG", str(error)) from error
        if heights.dtype != np.uint16 or heights.shape != self.shape:
            expected = f"16-bit grey of {self.shape[1]} × {self.shape[0]} pixels, as in its name"
            actual = f"{heights.dtype} {' × '.join(map(str, heights.shape[::-1]))}"
            raise self._refuse("does not match its name", expected, actual)
        return heights

    def cut(self, heights: NDArray[np.uint16], frame: Frame, light: Light, pixels: int) -> Pixels:
        """The hillshaded crop of a frame [pixels, pixels]."""
        steps = ((np.arange(pixels) + 0.5) / pixels - 0.5) * frame.side
        across, up = np.meshgrid(steps, -steps)
        rows, columns = self.grid.find_pixels(frame, across, up)
        top, left = (max(0, int(values.min()) - MARGIN) for values in (rows, columns))
        bottom, right = (int(values.max()) + 2 + MARGIN for values in (rows, columns))
        window = heights[top:bottom, left:right].astype(np.float32) * np.float32(STEP)
        lats = np.radians(self.north - (np.arange(top, top + len(window)) + 0.5) / self.density)
        metres = np.radians(1 / self.density) * MOON_RADIUS
        bright = shade(
            window, metres * np.cos(lats)[:, None], metres, light.azimuth, light.altitude, light.exaggeration
        )
        crop = cv2.remap(bright, _to_float(columns - left), _to_float(rows - top), cv2.INTER_CUBIC)
        return np.asarray(np.clip(np.rint(crop * 255), 0, 255), np.uint8)

    def _refuse(self, problem: str, expected: str, actual: str) -> ManifestError:
        return ManifestError(
            f"{self.path} {problem}", expected=expected, actual=actual, fix="replace it by an intact copy of the map"
        )


def find_terrain(folder: Path) -> Terrain:
    """Find the map in a folder by its file name."""
    names = sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
    found = [match for match in map(NAME.fullmatch, names) if match]
    if len(found) != 1:
        raise ManifestError(
            f"there is no map of heights in {folder}" if not found else f"{folder} has more than one map of heights",
            expected="one file such as terrain_32ppd_lon0-180_lat-60-60.png",
            actual=", ".join(match.string for match in found) or f"{len(names)} files, none of such a name",
            fix="give the folder that holds the map and the catalogue",
        )
    density, west, east, south, north = map(int, found[0].groups())
    return Terrain(folder / found[0].string, density, west, east, south, north)


def shade(
    heights: FloatArray,
    metres_east: ArrayLike,
    metres_south: float,
    azimuth: float,
    altitude: float = 45.0,
    exaggeration: float = 1.0,
) -> FloatArray:
    """Heights [H, W] in metres, north up → brightness [H, W] in 0..1.

    Columns are `metres_east` apart (one number, or [H, 1] with one per row) and rows `metres_south`.
    """
    down, right = np.gradient(heights)
    slope_east = exaggeration * right / np.asarray(metres_east)
    slope_north = -exaggeration * down / metres_south
    turn, rise = np.radians(azimuth), np.radians(altitude)
    towards = np.cos(rise) * (slope_east * np.sin(turn) + slope_north * np.cos(turn))
    lengths = np.sqrt(slope_east**2 + slope_north**2 + 1)
    return np.asarray(np.maximum(np.sin(rise) - towards, 0) / lengths, np.float32)


def _to_float(values: NDArray[np.float64]) -> FloatArray:
    return np.asarray(values, np.float32)
