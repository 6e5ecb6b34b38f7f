"""Tokens of real images: a data base of up to 25,000 images × 32, and queries that are not in it.

Settings are those of the recipe gardens_point_tokens. Data base: paintings, both walks by day, street photos, and
random crops of the maps of Mars and the Moon for the rest. Queries: the walk by night, photos of the paintings, other
street photos, and crops of the maps that are jittered copies of crops in the data base.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from resight import recipe
from resight.data import image_files
from resight.data.folder_walk import walk
from resight.encode.encoder import Encoder
from resight.types import FloatArray, ImageRef, Picture, Skipped

RECIPE = "gardens_point_tokens"
DATABASE = ("museum/paintings", "gardenspoint/day_left", "gardenspoint/day_right", "halensee/database")
QUERIES = ("gardenspoint/night_right", "museum/photos", "halensee/query")
MAPS = ("mars_ctx", "moon")
CROP_QUERIES = 200
SMALLEST, LARGEST = 96, 320  # pixels of a map that a crop shows
Pixels = NDArray[np.uint8]


@dataclass(frozen=True)
class TokenSet:
    name: str
    database: FloatArray  # [N, K, d]
    queries: FloatArray  # [Q, Kq, d]


@dataclass(frozen=True)
class Crop:
    map: int
    x: int
    y: int
    side: int


def load(file: Path | None, cache: Path | None, size: int = 25_000) -> TokenSet | None:
    """From a file of one's own, from the cache, or made from RESIGHT_DATA; None without any of them."""
    if file is not None and not file.is_file():
        raise FileNotFoundError(f"there is no file {file}")
    kept = file or (cache / f"real_tokens_{size}.npz" if cache else None)
    if kept is not None and kept.is_file():
        with np.load(kept) as arrays:
            return TokenSet("real", arrays["database"][:size], arrays["queries"])
    if "RESIGHT_DATA" not in os.environ:
        print("(real tokens are left out: neither --tokens nor RESIGHT_DATA is given)")
        return None
    made = make(Path(os.environ["RESIGHT_DATA"]), size)
    if kept is not None:
        kept.parent.mkdir(parents=True, exist_ok=True)
        partial = kept.with_name(f"partial_{kept.name}")
        np.savez(partial, database=made.database, queries=made.queries)
        partial.replace(kept)
    return made


def make(root: Path, size: int) -> TokenSet:
    random = np.random.default_rng(0)
    encoder = Encoder(recipe.load(RECIPE).branches)
    maps = [picture.pixels for picture in read_all(root, MAPS)]
    photos = list(read_all(root, DATABASE, encoder.max_side))[:size]
    crops = [draw_crop(maps, random) for _ in range(size - len(photos))]
    asked = crops[:: max(len(crops) // CROP_QUERIES, 1)][:CROP_QUERIES]
    database = encode(encoder, [*photos, *(cut(maps, crop) for crop in crops)])
    jittered = [cut(maps, jitter(crop, maps, random)) for crop in asked]
    queries = encode(encoder, [*read_all(root, QUERIES, encoder.max_side), *jittered])
    order = random.permutation(len(database))  # neighbours in the file are not of one kind
    return TokenSet("real", database[order], queries[random.permutation(len(queries))])


def read_all(root: Path, folders: tuple[str, ...], max_side: int | None = None) -> Iterator[Picture]:
    for folder in folders:
        for ref in walk(root / folder):
            if not isinstance(ref, Skipped):
                yield image_files.read(ref, max_side)


def encode(encoder: Encoder, pictures: list[Picture]) -> FloatArray:
    """[images, K, d]; every image has the same number of tokens, since all are brought to one size."""
    rows = []
    for picture in pictures:
        ((descriptors,),) = encoder.encode([picture])
        rows.append(descriptors.vectors)
    return np.stack(rows).astype(np.float32)


def draw_crop(maps: list[Pixels], random: np.random.Generator) -> Crop:
    number = int(random.integers(len(maps)))
    height, width = maps[number].shape[:2]
    side = int(random.integers(SMALLEST, LARGEST))
    return Crop(number, int(random.integers(width - side)), int(random.integers(height - side)), side)


def jitter(crop: Crop, maps: list[Pixels], random: np.random.Generator) -> Crop:
    """Another side by up to 15 %, another centre by up to 10 % of it."""
    height, width = maps[crop.map].shape[:2]
    side = round(crop.side * random.uniform(0.85, 1.15))
    x, y = (round(at + crop.side * random.uniform(-0.1, 0.1)) for at in (crop.x, crop.y))
    return Crop(crop.map, min(max(x, 0), width - side), min(max(y, 0), height - side), side)


def cut(maps: list[Pixels], crop: Crop) -> Picture:
    pixels = maps[crop.map][crop.y : crop.y + crop.side, crop.x : crop.x + crop.side]
    name = f"{crop.map}/{crop.x}/{crop.y}/{crop.side}"
    return Picture(ImageRef(name, Path(name)), pixels, (crop.side, crop.side))
