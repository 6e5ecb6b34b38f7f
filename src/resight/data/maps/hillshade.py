"""Heights in, the brightness of the ground under a light from one side out (`shade`).

Lambert's law on the slope of the ground: brightness = max(0, n · l), where

    n = (-e ∂z/∂east, -e ∂z/∂north, 1), brought to unit length; e is the vertical exaggeration
    l = (sin azimuth cos altitude, cos azimuth cos altitude, sin altitude)

Azimuth is where the light comes from, in degrees clockwise from north. Nothing casts a shadow on anything else.
"""

import numpy as np
from numpy.typing import ArrayLike

from resight.types import FloatArray


def shade(
    heights: FloatArray,
    metres_east: ArrayLike,
    metres_south: float,
    azimuth: float,
    altitude: float = 45.0,
    exaggeration: float = 1.0,
) -> FloatArray:
    """Heights [H, W] in metres, north up → brightness [H, W] in 0..1.

    The steps of the grid are `metres_east` from column to column (one number, or [H, 1] for each row) and
    `metres_south` from row to row.
    """
    down, right = np.gradient(heights)
    slope_east = exaggeration * right / np.asarray(metres_east)
    slope_north = -exaggeration * down / metres_south
    turn, rise = np.radians(azimuth), np.radians(altitude)
    towards = np.cos(rise) * (slope_east * np.sin(turn) + slope_north * np.cos(turn))
    lengths = np.sqrt(slope_east**2 + slope_north**2 + 1)
    return np.asarray(np.maximum(np.sin(rise) - towards, 0) / lengths, np.float32)
