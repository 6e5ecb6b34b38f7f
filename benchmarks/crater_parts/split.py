"""Which craters settings are chosen on, and which they are tested on: a crater in, "tuning", "test" or "" out.

The globe is cut into twelve bands of 30 degrees of longitude. A seeded draw makes three of them tuning ground, and nine
test ground. A crater belongs to the part that its whole crop shows, at the widest view of any measurement; a crop that
shows ground of both belongs to neither. So no ground, and no neighbour's rim, is in both parts.
"""

from collections.abc import Iterable
from math import ceil, cos, degrees, floor, radians

import numpy as np

from resight.data.maps.crater_catalogue import Crater

BANDS, TUNING_BANDS, SEED = 12, 3, 23
WIDEST = 6.0  # sides of the widest crop, in crater diameters
MOON_KM = 1737.4


def choose_bands() -> frozenset[int]:
    """The numbers of the tuning bands; band 0 starts at longitude 0."""
    return frozenset(np.random.default_rng(SEED).permutation(BANDS)[:TUNING_BANDS].tolist())


def find_part(lat: float, lon: float, diameter_km: float, widest: float = WIDEST) -> str:
    """The part of a crater at that position, in degrees."""
    half = degrees(widest * diameter_km / 2 / MOON_KM)
    poleward = cos(radians(min(abs(lat) + half, 90)))
    if half >= 90 * poleward:  # the crop comes near a pole, where all bands meet
        return ""
    width = 360 / BANDS
    # Half the crop's width in degrees of longitude, at its edge nearest to the pole, where it spans most of them.
    reach = half / poleward
    touched = range(floor((lon - reach) / width), ceil((lon + reach) / width))
    tuning = {number % BANDS in choose_bands() for number in touched}
    return "" if len(tuning) > 1 else "tuning" if tuning == {True} else "test"


def list_part(craters: Iterable[Crater], part: str, widest: float = WIDEST) -> list[Crater]:
    """The craters of one part, in their order."""
    return [crater for crater in craters if find_part(crater.lat, crater.lon, crater.diameter, widest) == part]
