"""Crops of craters of the Moon of 20 km and more: to train on, to validate with and to test on.

In: the folder of the maps. Out: PNG files, train.csv, and a manifest per part and task. The parts have no ground in
common (crater_parts/split.py; a crop that shows ground of two parts is left out):

    train       longitude 90° to 120° and 210° to 240°: LIT hillshaded crops and PHOTOGRAPHED in each optical mosaic
    validation  longitude 240° to 270°: VALIDATED craters, the pairs of the test
    test        the nine bands that no setting of the preset was chosen on: TESTED craters

A task has a pair of crops per crater, gallery and query:

    other_light   hillshade from 270° at 45°; hillshade from 0° at 30°, jittered
    mosaics       one optical mosaic; the other, jittered
    modalities    an optical mosaic; hillshade from 315° at 45°, jittered

A gallery crop is SHOWN diameters wide with the crater in its middle. Jittered: JITTERED diameters wide, up to OFF
diameters off the middle, both ways. Not CraterBench-R.
"""

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil, floor
from pathlib import Path

import numpy as np
from crater_parts.split import BANDS, choose_bands, list_part

from resight.data.image_cache import encode_png, is_intact
from resight.data.maps.crater_catalogue import Crater, read_catalogue
from resight.data.maps.map_image import Frame
from resight.data.maps.moon_maps import MoonMaps, find_maps
from resight.data.maps.terrain import MOON_RADIUS, Light

TRAINING, VALIDATION = (3, 7), (8,)
PIXELS = 160
SHOWN, JITTERED, OFF = 6.0, (4.8, 7.2), 0.5
WIDEST = JITTERED[1] + 2 * OFF  # diameters that all crops of a crater show
LIT, PHOTOGRAPHED = 4, 1  # training crops of a crater: hillshaded, and in each mosaic
LIGHTS = tuple(Light(azimuth, altitude, 1.0) for azimuth, altitude in zip(range(0, 360, 45), (25, 50) * 4, strict=True))
TESTED, VALIDATED = 600, 100
TASKS = ("other_light", "mosaics", "modalities")

Source = Light | int  # the number of a mosaic


@dataclass(frozen=True)
class View:
    path: Path
    crater: Crater
    source: Source
    diameters: float = SHOWN
    east: float = 0.0  # of the middle of the crop from that of the crater, in diameters
    north: float = 0.0

    @property
    def frame(self) -> Frame:
        return self.crater.frame(self.diameters, MOON_RADIUS, self.east, self.north)


def make(root: Path, folder: Path, seed: int = 0) -> dict[str, int]:
    """All crops, the manifests of the tasks and train.csv with the ground of each crop; craters in each part."""
    assert set(TRAINING + VALIDATION) == choose_bands(), "the tuning bands have changed"
    large = [crater for crater in read_catalogue(root / "HeadCraters.csv") if 20 <= crater.diameter < 150]
    generator = np.random.default_rng(seed)
    training = find_band(large, TRAINING)
    tested = {
        "validation": draw(find_band(large, VALIDATION), VALIDATED, generator),
        "test": draw(list_part(large, "test", WIDEST), TESTED, generator),
    }
    views = [view for crater in training for view in vary(crater, folder / "train", generator)]
    tasks = {
        (part, task): [pair for crater in craters for pair in ask(task, crater, folder / part / task, generator)]
        for part, craters in tested.items()
        for task in TASKS
    }
    cut_all([*views, *(view for pairs in tasks.values() for view in pairs)], root)
    write_ground(views, folder)
    for (part, task), pairs in tasks.items():
        write_manifest([(view.path, view.crater.id) for view in pairs], folder / f"{part}_{task}.csv")
    return {"train": len(training), **{part: len(craters) for part, craters in tested.items()}}


def find_band(craters: Sequence[Crater], bands: Sequence[int]) -> list[Crater]:
    """Those whose widest crop lies in one of the bands."""
    tuning = list_part(craters, "tuning", WIDEST)
    width = 360 / BANDS

    def reach(crater: Crater) -> set[int]:
        half = np.degrees(WIDEST * crater.diameter * 500 / MOON_RADIUS)
        half /= np.cos(np.radians(abs(crater.lat) + half))
        first, last = floor((crater.lon - half) / width), ceil((crater.lon + half) / width)
        return {number % BANDS for number in range(first, last)}

    return [crater for crater in tuning if len(reach(crater)) == 1 and reach(crater) <= set(bands)]


def draw(craters: Sequence[Crater], most: int, generator: np.random.Generator) -> list[Crater]:
    return [craters[number] for number in np.sort(generator.permutation(len(craters))[:most])]


def vary(crater: Crater, folder: Path, generator: np.random.Generator) -> Iterator[View]:
    lights = [LIGHTS[number] for number in generator.permutation(len(LIGHTS))[:LIT]]
    sources: list[Source] = [*lights, *[0, 1] * PHOTOGRAPHED]
    for number, source in enumerate(sources):
        yield jitter(folder / crater.id / f"{number}.png", crater, source, generator)


def ask(task: str, crater: Crater, folder: Path, generator: np.random.Generator) -> Iterator[View]:
    first, second = {
        "other_light": (Light(270.0, 45.0, 1.0), Light(0.0, 30.0, 1.0)),
        "mosaics": (0, 1),
        "modalities": (0, Light(315.0, 45.0, 1.0)),
    }[task]
    yield View(folder / f"{crater.id}_gallery.png", crater, first)
    yield jitter(folder / f"{crater.id}_query.png", crater, second, generator)


def jitter(path: Path, crater: Crater, source: Source, generator: np.random.Generator) -> View:
    east, north = generator.uniform(-OFF, OFF, size=2)
    return View(path, crater, source, float(generator.uniform(*JITTERED)), float(east), float(north))


def cut_all(views: Sequence[View], root: Path) -> None:
    """Draw what is not there yet, light by light: a shaded map of the Moon takes much memory."""
    missing = [view for view in views if not is_intact(view.path)]
    for source in dict.fromkeys(view.source for view in missing):
        maps = find_maps(root)
        for view in missing:
            if view.source == source:
                view.path.parent.mkdir(parents=True, exist_ok=True)
                view.path.write_bytes(encode_png(draw_view(maps, view)))


def draw_view(maps: MoonMaps, view: View) -> np.ndarray:
    if isinstance(view.source, Light):
        return maps.shade(view.frame, not maps.terrain.holds(view.frame), view.source, PIXELS)
    return maps.photograph(view.frame, view.source, PIXELS)


def write_ground(views: Sequence[View], folder: Path) -> None:
    """Middle and side of each training crop in diameters of its crater: which parts of two crops show the same."""
    with (folder / "train.csv").open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(("path", "crater", "east", "north", "side"))
        for view in views:
            name = view.path.relative_to(folder).as_posix()
            table.writerow((name, view.crater.id, view.east, view.north, view.diameters))


def write_manifest(pairs: Sequence[tuple[Path, str]], path: Path) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(("path", "role", "label"))
        for crop, label in pairs:
            role = "query" if crop.stem.endswith("_query") else "database"
            table.writerow((crop.relative_to(path.parent).as_posix(), role, label))
