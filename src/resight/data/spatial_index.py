"""Radius queries: `LatLonIndex` over degrees on the Earth, `PlaneIndex` over metres on a plane.

Positions in, the images or rows within a radius out. Both sort by one coordinate, so that a query measures only the
distances to its own band.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from resight.geodesy import metres_between, turn_between
from resight.types import ImageRef, IntArray

METRES_PER_DEGREE = 110_000.0  # of latitude: a little low, so that the band loses no neighbour


@dataclass(frozen=True)
class LatLonIndex:
    """Images with lat and lon, sorted by lat."""

    ids: tuple[str, ...]
    lats: NDArray[np.float64]
    lons: NDArray[np.float64]
    headings: NDArray[np.float64]  # NaN: unknown

    @classmethod
    def of(cls, refs: Iterable[ImageRef]) -> "LatLonIndex":
        placed = sorted((ref for ref in refs if "lat" in ref.attributes), key=lambda ref: float(ref.attributes["lat"]))
        lats = np.array([ref.attributes["lat"] for ref in placed], np.float64)
        lons = np.array([ref.attributes["lon"] for ref in placed], np.float64)
        headings = np.array([read_heading(ref) for ref in placed], np.float64)
        return cls(tuple(ref.id for ref in placed), lats, lons, headings)

    def within(
        self, lat: float, lon: float, metres: float, heading: float = np.nan, turn: float | None = None
    ) -> list[str]:
        """Ids of the images within `metres` by great circle.

        With `turn`, only images whose heading differs from `heading` by at most so many degrees; an unknown heading
        never matches.
        """
        margin = metres / METRES_PER_DEGREE
        first, last = np.searchsorted(self.lats, (lat - margin, lat + margin + 1e-9))
        distances = metres_between(lat, lon, self.lats[first:last], self.lons[first:last])
        same = distances <= metres
        if turn is not None:
            same &= turn_between(heading, self.headings[first:last]) <= turn
        return [self.ids[first + row] for row in np.flatnonzero(same)]


def read_heading(ref: ImageRef) -> float:
    """Degrees clockwise from north; NaN if unknown."""
    heading = ref.attributes.get("heading")
    return float(heading) if isinstance(heading, (int, float)) and not isinstance(heading, bool) else np.nan


@dataclass(frozen=True)
class PlaneIndex:
    """Points on a plane, identified by their row in the arrays given."""

    order: IntArray  # [n] rows, sorted from south to north
    east: NDArray[np.float64]  # [n], in that order
    north: NDArray[np.float64]

    @classmethod
    def of(cls, east: Sequence[float], north: Sequence[float]) -> "PlaneIndex":
        x, y = np.asarray(east, np.float64), np.asarray(north, np.float64)
        order = np.argsort(y, kind="stable")
        return cls(order, x[order], y[order])

    def within(self, east: float, north: float, metres: float) -> IntArray:
        """Rows of the points within `metres`, in ascending order."""
        first, last = np.searchsorted(self.north, (north - metres, np.nextafter(north + metres, np.inf)))
        near = np.hypot(self.east[first:last] - east, self.north[first:last] - north) <= metres
        return np.sort(self.order[first:last][near])
