"""ROxford5k and RParis6k in small: six images and two queries each, and four distractors in a folder and in a list."""

import pickle
from pathlib import Path

import cv2
import numpy as np

from support.builders import draw_texture

CASES = (
    {},
    {"which": "rparis6k"},
    {"distractors": "../revisitop1m"},
    {"distractors": "../revisitop1m/revisitop1m.txt"},
)
DISTRACTORS = ("0a1/0a1b.jpg", "0a1/0a1c.jpg", "fff/fff0.jpg", "fff/fff1.jpg")


def write(folder: Path, rng: np.random.Generator) -> None:
    for which, stem in (("roxford5k", "keble"), ("rparis6k", "paris_eiffel")):
        names = [f"{stem}_{number:06d}" for number in range(8)]
        for name in names:
            _write_image(folder / which / "jpg" / f"{name}.jpg", rng)
        (folder / which / f"gnd_{which}.pkl").write_bytes(pickle.dumps(make_truth(names), protocol=3))
    for name in DISTRACTORS:
        _write_image(folder / "revisitop1m" / "jpg" / name, rng)
    (folder / "revisitop1m" / "revisitop1m.txt").write_text("\n".join(DISTRACTORS) + "\n")


def make_truth(names: list[str]) -> dict[str, object]:
    """The last two names are the queries."""
    return {
        "gnd": [
            {"bbx": [4.5, 2.0, 60.25, 40.0], "easy": [0, 2], "hard": [3], "junk": [5]},
            {"bbx": [0, 0, 64, 48], "easy": [], "hard": [1, 4], "junk": []},
        ],
        "imlist": names[:-2],
        "qimlist": names[-2:],
    }


def _write_image(path: Path, rng: np.random.Generator) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    cv2.imwrite(str(path), draw_texture(rng, 64, 48))
