"""Drawn craters with their attributes: bowls of two forms, with or without a peak, under any light, tint and turn."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from resight.types import ImageRef

SIDE = 192


def draw_crater(peak: bool, turn: float, tint: tuple[float, float, float], seed: int) -> NDArray[np.uint8]:
    """A crop of three diameters [SIDE, SIDE, 3]."""
    generator = np.random.default_rng(seed)
    steps = (np.arange(SIDE) - (SIDE - 1) / 2) / (SIDE / 6)
    x, y = np.meshgrid(steps, steps)
    away = np.hypot(x, y)
    height = np.where(away < 1, away**2 - 1, 0.2 * (np.exp(-4 * (away - 1)) - 1))
    height += 0.8 * np.exp(-((away / 0.25) ** 2)) if peak else 0
    down, right = np.gradient(height)
    grey = 128 + 700 * (right * np.cos(turn) + down * np.sin(turn)) + generator.normal(0, 3, (SIDE, SIDE))
    return np.clip(grey[..., None] * np.array(tint), 0, 255).astype(np.uint8)


def write_craters(folder: Path, count: int = 8) -> list[ImageRef]:
    """Crops every 40 degrees along the equator; those with an even number have a peak, and the first half is reddish.

    The crater `twin` shares ground with crater 0, and shows the same.
    """
    folder.mkdir(parents=True)
    refs = []
    for name in (*map(str, range(count)), "twin"):
        k = 0 if name == "twin" else int(name)
        tint = (1.0, 0.8, 0.6) if k < count / 2 else (0.5, 0.6, 0.8)
        Image.fromarray(draw_crater(k % 2 == 0, 1.3 * k, tint, k)).save(folder / f"{name}.png")
        lon = 1.0 if name == "twin" else 40.0 * k
        facts = {"label": name, "view": "3x", "crater_lat": 0.0, "crater_lon": lon, "diameter_km": 30.0 + 10 * k}
        refs.append(ImageRef(f"crater_{name}", folder / f"{name}.png", attributes=facts))
    return refs
