"""Where the pixels of a map around a pole lie: the stereographic projection from the opposite pole, on a sphere.

The pole is at a row and a column of the map, and the central meridian runs straight down from a north pole, straight up
from a south pole; east is to the right of it. A point at the distance c (in degrees of arc) from the pole is drawn

    2 R tan(c / 2) / scale

pixels away from it; `scale` is metres per pixel at the pole.
"""

from dataclasses import dataclass

import numpy as np

from resight.data.maps.map_image import Degrees, Frame


@dataclass(frozen=True)
class PolarGrid:
    is_north: bool
    meridian: float  # the central one, in degrees east
    scale: float  # metres per pixel at the pole
    row: float  # of the pole; 0 is the middle of the first row
    column: float
    width: int
    height: int
    radius: float  # metres

    @property
    def wraps(self) -> bool:
        return False

    @property
    def pixel(self) -> float:
        return self.scale

    def holds(self, frame: Frame, margin: int = 0) -> bool:
        """Whether all of a frame lies on the map, at least `margin` pixels away from its edges."""
        if frame.side > self.radius or (frame.lat > 0) != self.is_north:
            return False
        rows, columns = self.find_pixels(frame, *frame.find_probes())
        return bool(
            min(rows.min(), columns.min()) >= margin
            and rows.max() <= self.height - 1 - margin
            and columns.max() <= self.width - 1 - margin
        )

    def find_pixels(self, frame: Frame, across: Degrees, up: Degrees) -> tuple[Degrees, Degrees]:
        """Rows and columns of the map for points `across` metres east and `up` metres north of a frame's centre."""
        lats, turned = frame.find_positions(across, up, self.radius)
        sign = 1 if self.is_north else -1
        distances = 2 * self.radius / self.scale * np.tan(np.radians((90 - sign * lats) / 2))
        turns = np.radians(frame.lon + turned - self.meridian)
        return self.row + sign * distances * np.cos(turns), self.column + distances * np.sin(turns)
