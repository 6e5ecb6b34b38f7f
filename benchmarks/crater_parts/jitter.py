"""Craters in, the same craters as another person may have measured them out."""

from collections.abc import Sequence

import numpy as np

from resight.data.maps.crater_catalogue import Crater
from resight.data.maps.crater_view import MOON_KM


def jitter(
    craters: Sequence[Crater], generator: np.random.Generator, centre: float, size: float, suffix: str = ""
) -> list[Crater]:
    """Each centre is moved by a normal error of `centre` diameters to the east and to the north, and each diameter
    multiplied by the exponential of a normal error of `size`; `suffix` is added to the ids.
    """
    return [_jitter(crater, generator, centre, size, suffix) for crater in craters]


def _jitter(crater: Crater, generator: np.random.Generator, centre: float, size: float, suffix: str) -> Crater:
    east, north = generator.normal(0, centre, 2)
    frame = crater.frame(1.0, MOON_KM * 1000, float(east), float(north))
    lon = (frame.lon + 180) % 360 - 180
    diameter = crater.diameter * float(np.exp(generator.normal(0, size)))
    return Crater(f"{crater.id}{suffix}", frame.lat, lon, diameter)
