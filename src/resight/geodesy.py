"""Positions, distances and directions on the Earth as a sphere: degrees in, metres out.

To average points or compare many with many, use unit vectors in space (`to_vectors`): these have no special cases at
the poles and the antimeridian.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite

import numpy as np
from numpy.typing import ArrayLike, NDArray

from resight.types import Attribute

RADIUS = 6_371_008.8  # metres, the mean radius
Position = tuple[float, float]  # latitude and longitude in degrees


@dataclass(frozen=True)
class Positions:
    """Where images were taken; images without a position are left out."""

    ids: tuple[str, ...]
    lats: NDArray[np.float64]  # [n] degrees
    lons: NDArray[np.float64]  # [n] degrees
    headings: NDArray[np.float64]  # [n] view direction, degrees clockwise from north; NaN: unknown

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True)
class PositionEstimate:
    """Where a query was taken, estimated from the positions of the images that match it.

    Attributes:
        lat: Latitude in degrees.
        lon: Longitude in degrees.
        metres: Radius that contains the true position with a probability of `coverage`.
        coverage: That probability.
        probability: That the collection contains the place, and that it is this one.
        known: False: "don't know"; lat and lon are a best guess.
        support: Ids of the images used, best first.
    """

    lat: float
    lon: float
    metres: float
    coverage: float = 0.9
    probability: float = 0.0
    known: bool = False
    support: tuple[str, ...] = ()


def find_position(attributes: Mapping[str, Attribute]) -> Position | None:
    """Latitude and longitude of an image; None unless both are known and valid."""
    lat, lon = find_number(attributes, "lat"), find_number(attributes, "lon")
    return None if lat is None or lon is None or abs(lat) > 90 or abs(lon) > 180 else (lat, lon)


def find_number(attributes: Mapping[str, Attribute], name: str) -> float | None:
    """An attribute as a float; None unless it is a finite number."""
    value = attributes.get(name)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not isfinite(value):
        return None
    return float(value)


def metres_between(lat: float, lon: float, lats: ArrayLike, lons: ArrayLike) -> NDArray[np.float64]:
    """Great-circle distances (haversine) from one point to many: degrees in, metres [n] float64 out.

    d = 2 R asin √( sin²(Δφ/2) + cos φ₁ cos φ₂ sin²(Δλ/2) )
    """
    phi1, lambda1 = np.radians(lat), np.radians(lon)
    phi2, lambda2 = np.radians(np.asarray(lats, np.float64)), np.radians(np.asarray(lons, np.float64))
    half = np.sin((phi2 - phi1) / 2) ** 2 + np.cos(phi1) * np.cos(phi2) * np.sin((lambda2 - lambda1) / 2) ** 2
    distances: NDArray[np.float64] = 2 * RADIUS * np.arcsin(np.sqrt(np.clip(half, 0, 1)))
    return distances


def to_vectors(lats: ArrayLike, lons: ArrayLike) -> NDArray[np.float64]:
    """Degrees [n] each → unit vectors [n, 3] from the Earth's centre."""
    phi, lam = np.radians(np.asarray(lats, np.float64)), np.radians(np.asarray(lons, np.float64))
    return np.stack([np.cos(phi) * np.cos(lam), np.cos(phi) * np.sin(lam), np.sin(phi)], axis=-1)


def to_degrees(vectors: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Vectors [n, 3] of any length above 0 → latitudes and longitudes [n]."""
    x, y, z = np.moveaxis(np.asarray(vectors, np.float64), -1, 0)
    return np.degrees(np.arctan2(z, np.hypot(x, y))), np.degrees(np.arctan2(y, x))


def metres_apart(some: NDArray[np.float64], others: NDArray[np.float64]) -> NDArray[np.float64]:
    """Unit vectors [m, 3] and [n, 3] → great-circle distances [m, n], from the chord c: d = 2 R asin(c / 2)."""
    # Differences, not 2 - 2⟨a, b⟩, which cannot resolve distances below some centimetres.
    squares = sum((some[:, None, axis] - others[None, :, axis]) ** 2 for axis in range(3))
    return np.asarray(2 * RADIUS * np.arcsin(np.clip(np.sqrt(squares) / 2, 0, 1)))


def turn_between(heading: float, headings: ArrayLike) -> NDArray[np.float64]:
    """Angles between directions, 0 to 180 degrees; NaN where a direction is unknown."""
    return np.asarray(np.abs((np.asarray(headings, np.float64) - heading + 180) % 360 - 180))
