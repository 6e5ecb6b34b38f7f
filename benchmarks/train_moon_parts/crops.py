"""Craters of the Moon, to train on (folders) and to measure on (manifests). In: the folder of the maps. Out: PNG files.

Three bands of longitude, of which no two have ground in common: every crop of a crater lies in its band, wherever it is
shifted to. Craters of 20 to 90 km come from the catalogue of Head et al., those of 14 to 20 km from the LROC catalogue.

    train/CRATER/…            two crops as in a gallery, and LIGHTS crops in light from any side from west over north to
                              north-east, off the centre and of another scale, as queries are
    validation.csv, test.csv  two gallery crops a crater (2 and 3 diameters, light from 270°) and three queries, in the
                              validation band one (light from 315°, 0° and 45°; 1.6 to 3.6 diameters; up to 0.65
                              diameters off the centre)

The altitude of the light is 45°. This is not CraterBench-R.
"""

import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from resight.data.image_cache import encode_png, is_intact
from resight.data.maps.crater_catalogue import Crater, read_catalogue
from resight.data.maps.map_image import Frame
from resight.data.maps.terrain import MOON_RADIUS, Light, Terrain, find_terrain

BANDS = {"test": (0, 70), "validation": (70, 90), "train": (90, 180)}  # degrees of longitude
WIDEST = 4.9  # diameters: the largest query, shifted as far as it goes, to both sides
LIGHTS = 6
QUERY_AZIMUTHS = (315, 0, 45)
GALLERY = Light(270.0, 45.0, 1.0)
PIXELS = 256

View = tuple[Frame, Light]


def make(root: Path, folder: Path, seed: int = 0) -> dict[str, int]:
    """All crops and both manifests; what is there stays. Craters in each band."""
    terrain, craters = find_terrain(root), list_craters(root)
    heights = terrain.read_heights()
    counts = {}
    for number, (band, (west, east)) in enumerate(BANDS.items()):
        chosen = choose(craters, replace(terrain, west=west, east=east))
        generator = np.random.default_rng([seed, number])
        rows = []
        for turn, crater in enumerate(chosen):
            lights = QUERY_AZIMUTHS if band == "test" else QUERY_AZIMUTHS[turn % 3 :][:1]
            views = dict(vary(crater, generator) if band == "train" else ask(crater, lights, generator))
            for name, (frame, light) in {**show(crater), **views}.items():
                path = folder / band / crater.id / f"{name}.png"
                if not is_intact(path):
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_bytes(encode_png(terrain.cut(heights, frame, light, PIXELS)))
                role = "query" if name in views else "database"
                rows.append((path.relative_to(folder).as_posix(), role, crater.id, name))
        if band != "train":
            write_manifest(rows, folder / f"{band}.csv")
        counts[band] = len(chosen)
    return counts


def list_craters(root: Path) -> list[Crater]:
    large = [crater for crater in read_catalogue(root / "HeadCraters.csv") if 20 <= crater.diameter <= 90]
    small = [crater for crater in read_catalogue(root / "LROCCraters.csv") if 14 <= crater.diameter < 20]
    return [*large, *(replace(crater, id=f"lroc{crater.id}") for crater in small)]


def choose(craters: Sequence[Crater], band: Terrain) -> list[Crater]:
    """Those whose crops lie in the band."""
    return [crater for crater in craters if band.holds(crater.frame(WIDEST, MOON_RADIUS))]


def show(crater: Crater) -> Mapping[str, View]:
    return {f"gallery{view}": (crater.frame(view, MOON_RADIUS), GALLERY) for view in (2, 3)}


def ask(crater: Crater, azimuths: Sequence[int], generator: np.random.Generator) -> Iterator[tuple[str, View]]:
    for azimuth in azimuths:
        yield f"azimuth{azimuth:03d}", (jitter(crater, generator), replace(GALLERY, azimuth=float(azimuth)))


def vary(crater: Crater, generator: np.random.Generator) -> Iterator[tuple[str, View]]:
    for number in range(LIGHTS):
        light = replace(GALLERY, azimuth=float(generator.uniform(270, 405)))
        yield f"light{number}", (jitter(crater, generator), light)


def jitter(crater: Crater, generator: np.random.Generator) -> Frame:
    east, north = generator.uniform(-0.65, 0.65, size=2)
    return crater.frame(float(generator.uniform(1.6, 3.6)), MOON_RADIUS, float(east), float(north))


def write_manifest(rows: Sequence[tuple[str, str, str, str]], path: Path) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(("path", "role", "label", "set"))
        table.writerows(rows)
