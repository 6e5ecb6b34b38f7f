"""Two maps of a small globe, 4 pixels a degree, with discs for craters, and their catalogue.

One disc lies across the edge of the maps, one far north, where the map stretches it.
"""

from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

CASES = ({},)
DENSITY = 4
RADIUS = 1737.4
CRATERS = {"a": (10.0, 0.0, 300.0), "edge": (179.5, 20.0, 260.0), "north": (-100.0, 70.0, 240.0)}  # lon, lat, km


def write(folder: Path, rng: np.random.Generator) -> None:
    ground = rng.integers(60, 90, (180 * DENSITY, 360 * DENSITY))
    cv2.imwrite(str(folder / "map.png"), draw_map(ground, inside=200))
    cv2.imwrite(str(folder / "query_map.png"), draw_map(ground + 40, inside=10))
    lines = [f"{id},{lat},{lon},{diameter}" for id, (lon, lat, diameter) in CRATERS.items()]
    (folder / "craters.csv").write_text("\n".join(["CRATER_ID,LAT_CIRC_IMG,LON_CIRC_IMG,DIAM_CIRC_IMG", *lines]))


def draw_map(ground: NDArray[np.int64], inside: int) -> NDArray[np.uint8]:
    """All ground within a crater's radius, along great circles, has one value."""
    lats = np.radians(90 - (np.arange(180 * DENSITY) + 0.5) / DENSITY)[:, None]
    lons = np.radians(-180 + (np.arange(360 * DENSITY) + 0.5) / DENSITY)[None]
    image = ground.astype(np.uint8)
    for lon, lat, diameter in CRATERS.values():
        centre = np.radians(lat)
        cosines = np.sin(lats) * np.sin(centre) + np.cos(lats) * np.cos(centre) * np.cos(lons - np.radians(lon))
        image[np.arccos(np.clip(cosines, -1, 1)) * RADIUS < diameter / 2] = inside
    return image
