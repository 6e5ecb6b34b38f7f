"""A made-up piece of the Moon: a seed in, heights, two hillshaded maps and a crater catalogue out.

The ground is fractal noise. Each crater is a bowl with a rim and ejecta that thin out with the cube of the distance, as
fresh craters have them; rims are uneven, old craters are worn, and large ones have a central peak. Nothing here is
measured: craters only have to differ from each other, and from themselves under another sun.
Shading is that of resight.data.maps.terrain, which lights real maps of heights too.
"""

import csv
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image

from resight.data.maps.terrain import MOON_RADIUS, shade
from resight.types import FloatArray

WEST, SOUTH, EAST, NORTH = BOUNDS = (0, -8, 24, 8)  # degrees; near the equator, where a degree is as wide as high
DENSITY = 40  # pixels per degree
METRES = float(np.radians(1 / DENSITY) * MOON_RADIUS)  # per pixel
MARGIN = 1.8  # diameters between a crater's centre and the edge, so that crops of three diameters fit


@dataclass(frozen=True)
class MadeCrater:
    id: str
    lon: float
    lat: float
    diameter: float  # km
    row: float  # of the centre, in pixels
    column: float


@dataclass(frozen=True)
class MadeTerrain:
    heights: FloatArray  # [H, W] in metres, north up
    craters: tuple[MadeCrater, ...]

    def light(self, azimuth: float, altitude: float = 30.0) -> np.ndarray:
        """The map [H, W] uint8 under a sun at this azimuth, in degrees clockwise from north."""
        bright = shade(self.heights, METRES, METRES, azimuth, altitude, exaggeration=1.5)
        return np.asarray(np.clip(np.rint(bright * 255), 0, 255), np.uint8)

    def write(self, folder: Path, database_sun: float, query_sun: float) -> None:
        """map.png and query_map.png, the same ground under two suns, and craters.csv."""
        folder.mkdir(parents=True, exist_ok=True)
        Image.fromarray(self.light(database_sun)).save(folder / "map.png")
        Image.fromarray(self.light(query_sun)).save(folder / "query_map.png")
        with (folder / "craters.csv").open("w", encoding="utf-8", newline="") as file:
            table = csv.writer(file)
            table.writerow(("id", "lon", "lat", "diameter"))
            table.writerows((one.id, f"{one.lon:.4f}", f"{one.lat:.4f}", f"{one.diameter:.2f}") for one in self.craters)


def make_terrain(generator: np.random.Generator, craters: int = 40) -> MadeTerrain:
    """Fractal ground with many small craters, and `craters` large ones of 22 to 50 km that do not touch."""
    shape = ((NORTH - SOUTH) * DENSITY, (EAST - WEST) * DENSITY)
    large = _place(craters, shape, generator)
    small = [
        (generator.uniform(0, shape[0]), generator.uniform(0, shape[1]), 2500 * generator.uniform(0.08, 1) ** -0.7)
        for _ in range(25 * craters)
    ]
    heights = _make_noise(shape, 2.0, 900, generator) + _make_noise(shape, 1.3, 55, generator)
    for row, column, diameter in [*((one.row, one.column, one.diameter * 1000) for one in large), *small]:
        window, change = _dig(row, column, diameter, shape, generator)
        heights[window] += change
    return MadeTerrain(heights, tuple(large))


def _make_noise(shape: tuple[int, int], slope: float, metres: float, generator: np.random.Generator) -> FloatArray:
    """Noise [H, W] whose spectrum falls as 1 / frequency^slope, with this standard deviation."""
    frequency = np.hypot(np.fft.fftfreq(shape[0])[:, None], np.fft.rfftfreq(shape[1])[None])
    frequency[0, 0] = np.inf  # no mean
    noise = np.fft.irfft2(np.fft.rfft2(generator.normal(size=shape)) / frequency**slope, shape)
    return np.asarray(metres * noise / noise.std(), np.float32)


def _place(count: int, shape: tuple[int, int], generator: np.random.Generator) -> list[MadeCrater]:
    """Centres at random; one that would touch an earlier crater is drawn again."""
    placed: list[MadeCrater] = []
    for _ in range(2000 * count):
        if len(placed) == count:
            break
        diameter = 22 * generator.uniform(0.2, 1) ** -0.5
        pixels = diameter * 1000 / METRES
        row, column = (generator.uniform(MARGIN * pixels, side - MARGIN * pixels) for side in shape)
        if all(
            np.hypot(row - one.row, column - one.column) > 0.6 * (pixels + one.diameter * 1000 / METRES)
            for one in placed
        ):
            lon, lat = WEST + column / DENSITY, NORTH - row / DENSITY
            placed.append(MadeCrater(f"crater_{len(placed):02d}", lon, lat, diameter, row, column))
    return placed


def _dig(
    row: float, column: float, diameter: float, shape: tuple[int, int], generator: np.random.Generator
) -> tuple[tuple[slice, slice], FloatArray]:
    """Where a crater of this diameter in metres changes the heights, and by how many metres."""
    radius = diameter / 2 / METRES  # pixels
    reach = int(np.ceil(3 * radius)) + 1
    top, left = max(0, int(row) - reach), max(0, int(column) - reach)
    bottom, right = min(shape[0], int(row) + reach), min(shape[1], int(column) + reach)
    down, across = np.mgrid[top:bottom, left:right]
    angle = np.arctan2(down - row, across - column)
    uneven = sum(
        generator.normal(0, 0.07) / order * np.cos(order * angle + generator.uniform(0, 2 * np.pi))
        for order in range(2, 9)
    )
    distance = np.hypot(down - row, across - column) / radius * (1 + uneven)
    worn = generator.uniform(0.4, 1)
    depth = worn * min(0.16 * diameter, 900 + 0.05 * diameter)  # large craters are shallow for their size
    rim = 0.3 * depth
    floor = generator.uniform(0.2, 0.5) ** 2
    wall = np.clip((np.minimum(distance, 1) ** 2 - floor) / (1 - floor), 0, 1)
    bowl = np.where(distance < 1, (depth + rim) * wall - depth, rim * np.maximum(distance, 1) ** -3.0)
    peak = 0.4 * depth * np.exp(-((distance / 0.15) ** 2)) if diameter > 28_000 else 0
    return (slice(top, bottom), slice(left, right)), np.asarray(bowl + peak, np.float32)


def cut_crater(lit: np.ndarray, crater: MadeCrater, diameters: float, pixels: int = 160) -> np.ndarray:
    """The square around a crater of a lit map [H, W], `diameters` wide → [pixels, pixels]."""
    half = diameters * crater.diameter * 1000 / METRES / 2
    box = (crater.column - half, crater.row - half, crater.column + half, crater.row + half)
    return np.asarray(Image.fromarray(lit).resize((pixels, pixels), Image.Resampling.BICUBIC, box=box))
