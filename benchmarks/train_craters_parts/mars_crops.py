"""Crops of craters of Mars, seen once by CTX: the second view is made. In: the tiles. Out: PNG files and a manifest.

Gallery: every crater of LEAST pixels and more, as wide as on the Moon (moon_crops.py). Query: the same ground, jittered
as on the Moon, turned by up to TURN degrees, and relit: gamma 0.5 to 2, contrast 0.3 to 1, a ramp of brightness of up
to 50 % from the middle to either side, a blur of 1 to 3 pixels of the crop, noise. Shadows fall as before: this is no
second observation. No crop of Mars is trained on.
"""

import csv
from pathlib import Path

import cv2
import numpy as np

from resight.data.image_cache import encode_png, is_intact
from train_craters_parts.moon_crops import JITTERED, OFF, PIXELS, SHOWN, write_manifest

LEAST = 20  # pixels of a crater
TURN = 12.0


def make(root: Path, folder: Path, seed: int = 0) -> int:
    with (root / "craters.csv").open(newline="", encoding="utf-8") as file:
        rows = [(row["tile"], *(float(row[name]) for name in ("x0", "y0", "x1", "y1"))) for row in csv.DictReader(file)]
    chosen = [row for row in rows if max(row[3] - row[1], row[4] - row[2]) >= LEAST]
    tiles = {
        name: cv2.imread(str(root / "tiles" / f"{name}.jpg"), cv2.IMREAD_GRAYSCALE)
        for name in {row[0] for row in chosen}
    }
    generator = np.random.default_rng(seed)
    pairs = []
    for number, (tile, x0, y0, x1, y1) in enumerate(chosen):
        middle, diameter = np.array([x0 + x1, y0 + y1]) / 2, max(x1 - x0, y1 - y0)
        shown = cut(tiles[tile], middle, SHOWN * diameter, 0.0)
        moved = middle + generator.uniform(-OFF, OFF, 2) * diameter
        side, turn = float(generator.uniform(*JITTERED)) * diameter, float(generator.uniform(-TURN, TURN))
        asked = relight(cut(tiles[tile], moved, side, turn), generator)
        for kind, crop in (("gallery", shown), ("query", asked)):
            path = folder / "test" / "mars" / f"{number:04d}_{kind}.png"
            if not is_intact(path):
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(encode_png(crop))
            pairs.append((path, f"{number:04d}"))
    write_manifest(pairs, folder / "test_mars.csv")
    return len(chosen)


def cut(tile: np.ndarray, middle: np.ndarray, side: float, turn: float) -> np.ndarray:
    """A square around `middle`; beyond the tile its pixels are mirrored."""
    turned = cv2.getRotationMatrix2D((0, 0), turn, PIXELS / side)
    turned[:, 2] = PIXELS / 2 - turned[:, :2] @ middle
    finer = max(side / PIXELS, 1.0)  # smooth first what is reduced
    smooth = cv2.GaussianBlur(tile, (0, 0), 0.5 * finer) if finer > 1 else tile
    return np.asarray(
        cv2.warpAffine(smooth, turned, (PIXELS, PIXELS), flags=cv2.INTER_CUBIC, borderMode=cv2.BORDER_REFLECT)
    )


def relight(crop: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    values = (crop / 255.0) ** generator.uniform(0.5, 2.0)
    angle, strength = generator.uniform(0, 2 * np.pi), generator.uniform(0, 0.5)
    across, down = np.meshgrid(*[np.linspace(-1, 1, PIXELS)] * 2)
    values *= 1 + strength * (np.cos(angle) * across + np.sin(angle) * down)
    values = 0.5 + (values - values.mean()) * generator.uniform(0.3, 1.0)
    values = cv2.GaussianBlur(values, (0, 0), generator.uniform(1.0, 3.0)) + generator.normal(0, 0.02, values.shape)
    return np.asarray(np.clip(np.rint(values * 255), 0, 255), np.uint8)
