"""Distances on the Earth."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

RADIUS = 6_371_008.8  # metres, the mean radius


def metres_between(lat: float, lon: float, lats: ArrayLike, lons: ArrayLike) -> NDArray[np.float64]:
    """Great-circle distances (haversine) from one point to many: degrees in, metres [n] float64 out.

    d = 2 R asin √( sin²(Δφ/2) + cos φ₁ cos φ₂ sin²(Δλ/2) )
    """
    phi1, lambda1 = np.radians(lat), np.radians(lon)
    phi2, lambda2 = np.radians(np.asarray(lats, np.float64)), np.radians(np.asarray(lons, np.float64))
    half = np.sin((phi2 - phi1) / 2) ** 2 + np.cos(phi1) * np.cos(phi2) * np.sin((lambda2 - lambda1) / 2) ** 2
    distances: NDArray[np.float64] = 2 * RADIUS * np.arcsin(np.sqrt(np.clip(half, 0, 1)))
    return distances
