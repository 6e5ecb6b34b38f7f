"""What copies are looked for in: real images (RESIGHT_DATA) in, a folder of originals, copies and other pictures out.

    FOLDER/original/NAME.EXT    100 museum paintings, 20 frames of Gardens Point, 80 craters of the Moon
    FOLDER/WAY/NAME.jpg         each original, passed on in each of the twelve ways of copies.py
    FOLDER/other/NAME.EXT       the other paintings, other craters, street photos of Halensee

With `second`, the originals are the second hundred of the paintings, other frames and other craters: none of these was
copied while anything was chosen, though some took part as other pictures. Two images are copies when they have the same
NAME. Frames of the walk and street photos show some places more than once, which is no false alarm: `tell` gives None
for two of them.
"""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import cv2
import numpy as np

from dedup_parts.copies import WAYS, copy
from resight.data.sets import moon

PAINTINGS, CRATERS, OTHER_CRATERS, STEP = 100, 80, 200, 10
# Paintings that the set has twice, from two photographs.
TWICE = ({"painting_bbdd_00179", "painting_bbdd_00219"}, {"painting_bbdd_00043", "painting_bbdd_00249"})
FAR = 1.6  # diameters and a half: crops of three diameters that far apart share nothing


def make(folder: Path, second: bool = False, originals: int | None = None) -> Path:
    """All pictures below `folder`; what is there stays. `originals`: only so many, for a quick look."""
    generator = np.random.default_rng(8)
    found = list(list_originals(second))
    for name, path in found[:: max(1, len(found) // originals)] if originals else found:
        place(path, folder / "original" / f"{name}{path.suffix}")
        pixels = cv2.cvtColor(cv2.imread(str(path)), cv2.COLOR_BGR2RGB)
        for way in WAYS:
            target = folder / way / f"{name}.jpg"
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(copy(np.asarray(pixels, np.uint8), way, generator))
    for name, path in list_others(second):
        place(path, folder / "other" / f"{name}{path.suffix}")
    return folder


def tell(a: str, b: str) -> bool | None:
    """Are two ids (WAY/NAME.EXT) copies of each other? None: of the same place, perhaps."""
    one, two = Path(a).stem, Path(b).stem
    if one == two or {one, two} in TWICE:
        return True
    places = ("walk", "street")
    return None if one.startswith(places) and two.startswith(places) else False


def list_originals(second: bool) -> Iterator[tuple[str, Path]]:
    data = find_data()
    yield from list_paintings()[second * PAINTINGS :][:PAINTINGS]
    for path in sorted((data / "gardenspoint" / "day_left").iterdir())[second * STEP // 2 :: STEP]:
        yield f"walk_{path.stem}", path
    yield from list_craters()[second * CRATERS :][:CRATERS]


def list_others(second: bool) -> Iterator[tuple[str, Path]]:
    data = find_data()
    yield from list_paintings()[: second * PAINTINGS]
    yield from list_paintings()[(1 + second) * PAINTINGS :]
    for path in sorted(path for path in (data / "halensee").rglob("*.jpg") if "quer" not in str(path.parent)):
        yield f"street_{path.stem}", path
    yield from list_craters()[(1 + second) * CRATERS :][:OTHER_CRATERS]


def list_paintings() -> list[tuple[str, Path]]:
    return [(f"painting_{path.stem}", path) for path in sorted((find_data() / "museum" / "paintings").glob("*.jpg"))]


def list_craters() -> list[tuple[str, Path]]:
    """Crops of three diameters, none of which reaches into another."""
    refs = moon.build(moon.Config(views=(3.0,))).load(find_data() / "moon").database
    chosen: list[tuple[float, float, float]] = []
    found = []
    for ref in refs:
        lat, lon, size = (float(ref.attributes[key]) for key in ("crater_lat", "crater_lon", "diameter_km"))
        if all(measure(lat, lon, *other[:2]) > FAR * (size + other[2]) * 2**0.5 for other in chosen):
            chosen.append((lat, lon, size))
            found.append((f"crater_{Path(ref.id).stem}", ref.path))
    return found


def measure(lat: float, lon: float, other_lat: float, other_lon: float) -> float:
    """Kilometres on the Moon between two places that are not far apart."""
    north, east = np.radians(lat - other_lat), np.radians(lon - other_lon) * np.cos(np.radians(lat))
    return 1737.4 * float(np.hypot(north, east))


def place(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)


def find_data() -> Path:
    return Path(os.environ["RESIGHT_DATA"])
