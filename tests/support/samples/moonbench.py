"""A small Moon in the files of the real one: bowls of known place and size in heights, discs in two mosaics.

The 16-bit heights cover longitude 20 to 60, latitude -20 to 20, with 8 pixels per degree (3.8 km); the other maps cover
the globe with 4 pixels per degree (7.6 km).
"""

from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

CASES = ({"queries": 2}, {"queries": 2, "split": "tuning", "craters": 5})
RADIUS = 1737.4
TERRAIN = "terrain_8ppd_lon20-60_lat-20-20.png"
GLOBAL = "WAC_GLD100_E000N1800_016P.jpg"
MOSAICS = ("celestia_hires_moon.jpg", "moon_8k_color_brim16_4096x2048.jpg")
HEAD = (  # lon, lat, km: three on the 16-bit heights, three elsewhere, the last of these across the edge of a map
    *((30.0, 10.0, 90.0), (50.0, -10.0, 70.0), (30.0, -12.0, 60.0)),
    *((-100.0, 30.0, 150.0), (100.0, -40.0, 120.0), (179.8, 5.0, 100.0)),
)
LROC = (  # an entry beside HEAD's first with nearly its size, one on each map, one too small for the 8-bit heights
    *((30.1, 10.1, 88.0), (50.0, 10.0, 40.0), (-60.0, -20.0, 50.0), (-150.0, 50.0, 15.0)),
)
DISTINCT = [f"head-{n:04d}" for n in range(6)] + ["lroc-0001", "lroc-0002"]


def write(folder: Path, rng: np.random.Generator) -> None:
    cv2.imwrite(str(folder / TERRAIN), np.rint(20_000 - 25 * dig(20, 20, 320, 320, 8)).astype(np.uint16))
    greys = np.rint(200 - dig(0, 90, 1440, 720, 4) / 48.64 / 2 * 50).clip(0, 255)
    cv2.imwrite(str(folder / GLOBAL), greys.astype(np.uint8), [cv2.IMWRITE_JPEG_QUALITY, 100])
    for name in MOSAICS:
        ground = rng.integers(60, 90, (720, 1440)) + 80 * (dig(-180, 90, 1440, 720, 4) > 0)
        cv2.imwrite(str(folder / name), np.repeat(ground[..., None], 3, axis=2).astype(np.uint8))
    lines = [",".join(map(str, crater)) for crater in HEAD]
    (folder / "HeadCraters.csv").write_bytes("\r".join(["Lon,Lat,Diam_km", *lines]).encode())
    rows = [f"{n},{n},{km},{lon},{lat},standard" for n, (lon, lat, km) in enumerate(LROC)]
    (folder / "LROCCraters.csv").write_text("\n".join([",Unnamed: 0,Diameter (km),Long,Lat,tag", *rows]) + "\n")


def dig(west: float, north: float, width: int, height: int, density: int) -> NDArray[np.float64]:
    """How deep the bowls are, in units of 50 metres: a tenth of the diameter in the middle, nothing at the rim."""
    lats = np.radians(north - (np.arange(height) + 0.5) / density)[:, None]
    lons = np.radians(west + (np.arange(width) + 0.5) / density)[None]
    depth = np.zeros((height, width))
    for lon, lat, diameter in (*HEAD, *LROC[1:]):
        cosines = np.sin(lats) * np.sin(np.radians(lat)) + np.cos(lats) * np.cos(np.radians(lat)) * np.cos(
            lons - np.radians(lon)
        )
        share = np.arccos(np.clip(cosines, -1, 1)) * RADIUS / (diameter / 2)
        depth = np.maximum(depth, np.where(share < 1, (1 - share**2) * diameter * 2, 0))
    return depth
