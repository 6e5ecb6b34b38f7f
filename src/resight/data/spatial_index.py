"""Positions in, those near to a place out: `Places` in degrees on the Earth, `Points` in metres on a plane.

Both keep the images in order of one coordinate, so that a query looks at its own band of it only.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from resight.geodesy import metres_between, turn_between
from resight.types import ImageRef, IntArray

METRES_A_DEGREE = 110_000.0  # of latitude, a little less than the truth, so that no neighbour is lost


@dataclass(frozen=True)
class Places:
    """Images with lat and lon."""

    ids: tuple[str, ...]
    lats: NDArray[np.float64]
    lons: NDArray[np.float64]
    headings: NDArray[np.float64]  # NaN where nothing is known

    @classmethod
    def of(cls, refs: Iterable[ImageRef]) -> "Places":
        placed = sorted((ref for ref in refs if "lat" in ref.attributes), key=lambda ref: float(ref.attributes["lat"]))
        lats = np.array([ref.attributes["lat"] for ref in placed], np.float64)
        lons = np.array([ref.attributes["lon"] for ref in placed], np.float64)
        headings = np.array([read_heading(ref) for ref in placed], np.float64)
        return cls(tuple(ref.id for ref in placed), lats, lons, headings)

    def within(
        self, lat: float, lon: float, metres: float, heading: float = np.nan, turn: float | None = None
    ) -> list[str]:
        """Ids of the images at most so many great-circle metres away.

        With `turn`, only those whose camera looked at most so many degrees away from `heading`; not where one is not
        known.
        """
        margin = metres / METRES_A_DEGREE
        first, last = np.searchsorted(self.lats, (lat - margin, lat + margin + 1e-9))
        distances = metres_between(lat, lon, self.lats[first:last], self.lons[first:last])
        same = distances <= metres
        if turn is not None:
            same &= turn_between(heading, self.headings[first:last]) <= turn
        return [self.ids[first + row] for row in np.flatnonzero(same)]


def read_heading(ref: ImageRef) -> float:
    """Degrees from north, clockwise; NaN where they are not known."""
    heading = ref.attributes.get("heading")
    return float(heading) if isinstance(heading, (int, float)) and not isinstance(heading, bool) else np.nan


@dataclass(frozen=True)
class Points:
    """Points on a plane, by their row in the arrays that they came from."""

    order: IntArray  # [n] rows, from south to north
    east: NDArray[np.float64]  # [n], in that order
    north: NDArray[np.float64]

    @classmethod
    def of(cls, east: Sequence[float], north: Sequence[float]) -> "Points":
        x, y = np.asarray(east, np.float64), np.asarray(north, np.float64)
        order = np.argsort(y, kind="stable")
        return cls(order, x[order], y[order])

    def within(self, east: float, north: float, metres: float) -> IntArray:
        """Rows of the points at most so far away, in ascending order."""
        first, last = np.searchsorted(self.north, (north - metres, np.nextafter(north + metres, np.inf)))
        near = np.hypot(self.east[first:last] - east, self.north[first:last] - north) <= metres
        return np.sort(self.order[first:last][near])
