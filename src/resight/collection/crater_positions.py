"""The craters of a collection on their globe: images with their attributes in, one row per crater out.

Crops of the same crater (label, position and diameter agree) are one crater with several images.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from resight.data.maps.crater_view import MOON_KM, read_crater_view
from resight.types import Attribute


@dataclass(frozen=True)
class CraterPositions:
    """The craters that a collection's images show, the largest first.

    Attributes:
        labels: Ids in the catalogue.
        images: Per crater, the ids of its images.
        lats: Latitudes in degrees.
        lons: Longitudes in degrees, in the catalogue's convention.
        diameters_km: Diameters in kilometres.
        radius_km: Radius of the globe that most of them lie on.
    """

    labels: tuple[str, ...]
    images: tuple[tuple[str, ...], ...]
    lats: NDArray[np.float64]
    lons: NDArray[np.float64]
    diameters_km: NDArray[np.float64]
    radius_km: float = MOON_KM

    def __len__(self) -> int:
        return len(self.labels)


def gather_craters(images: Iterable[tuple[str, Mapping[str, Attribute]]]) -> CraterPositions:
    """Images whose position or diameter is unknown are left out."""
    grouped: dict[tuple[str, float, float, float], list[str]] = {}
    globes: Counter[float] = Counter()
    for name, attributes in images:
        if (view := read_crater_view(attributes)) is not None:
            grouped.setdefault((view.label, view.lat, view.lon, view.diameter_km), []).append(name)
            globes[view.radius_km] += 1
    order = sorted(grouped, key=lambda crater: (-crater[3], crater))
    lats, lons, diameters = np.array([crater[1:] for crater in order], np.float64).reshape(-1, 3).T
    radius = globes.most_common(1)[0][0] if globes else MOON_KM
    found = tuple(tuple(grouped[crater]) for crater in order)
    return CraterPositions(tuple(crater[0] for crater in order), found, lats, lons, diameters, radius)
