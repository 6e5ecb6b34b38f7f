"""A map in equal degrees (Grid) and a square of ground (Frame) in, the pixels of the map that it lies on out.

Rows run from north to south and columns from west to east, both in equal degrees, so that away from the equator the
ground is stretched. A frame is the ground as seen from straight above its centre (orthographic projection), north up:
craters are round in it. On a map that goes once around the globe, columns go on over its edge: column `width` is 0.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

PROBES = np.linspace(-0.5, 0.5, 9)

Degrees = NDArray[np.float64]


@dataclass(frozen=True)
class Frame:
    """What a crop shows: a square with its centre at a place, `side` metres of ground wide."""

    lat: float
    lon: float
    side: float


@dataclass(frozen=True)
class Grid:
    """Where the pixels of a map lie on a globe of `radius` metres; edges in degrees."""

    west: float
    east: float
    south: float
    north: float
    width: int
    height: int
    radius: float

    @property
    def wraps(self) -> bool:
        """Whether the map goes once around the globe."""
        return abs(self.east - self.west - 360) < 1e-6

    @property
    def pixel(self) -> float:
        """Metres of ground from row to row."""
        return float(np.radians((self.north - self.south) / self.height) * self.radius)

    def holds(self, frame: Frame, margin: int = 0) -> bool:
        """Whether all of a frame lies on the map, `margin` pixels away from its edges."""
        lon = self.turn(frame.lon)
        if not (self.south < frame.lat < self.north and self.west < lon < self.east):
            return self.wraps and lon == self.west and self.holds(Frame(frame.lat, lon + 1e-9, frame.side), margin)
        if frame.side > self.radius:  # from above, a wider one would not be all in sight
            return False
        across, up = np.meshgrid(PROBES * frame.side, PROBES * frame.side)
        rows, columns = self.find_pixels(frame, across, up)
        return bool(  # beyond a pole the ground goes on
            (rows.min() >= margin or self.north == 90)
            and (rows.max() <= self.height - 1 - margin or self.south == -90)
            and (self.wraps or (columns.min() >= margin and columns.max() <= self.width - 1 - margin))
        )

    def find_pixels(self, frame: Frame, across: Degrees, up: Degrees) -> tuple[Degrees, Degrees]:
        """Rows and columns of the map at points that lie metres east and north of a frame's centre."""
        x, y = across / self.radius, up / self.radius
        z = np.sqrt(1 - x**2 - y**2)
        lat = np.radians(frame.lat)
        lats = np.degrees(np.arcsin(np.clip(z * np.sin(lat) + y * np.cos(lat), -1, 1)))
        lons = self.turn(frame.lon) + np.degrees(np.arctan2(x, z * np.cos(lat) - y * np.sin(lat)))
        rows = (self.north - lats) * (self.height / (self.north - self.south)) - 0.5
        columns = (lons - self.west) * (self.width / (self.east - self.west)) - 0.5
        return rows, columns

    def turn(self, lon: float) -> float:
        """The longitude in the map's own count: catalogues count to 180 both ways or to 360, and so do maps."""
        turns = np.floor((lon - self.west) / 360)
        return lon - 360 * float(turns) if turns else lon
