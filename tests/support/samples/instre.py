"""INSTRE in small: two classes of S1, whose objects share a class of M, and one class of S2; four images each."""

import json
from pathlib import Path

import cv2
import numpy as np

from support.builders import draw_texture

CASES = ({},)
CLASSES = ("INSTRE-S1/01a", "INSTRE-S1/01b", "INSTRE-S2/01", "INSTRE-M/01")
IMAGES = tuple(f"{folder}/{number:03d}.jpg" for folder in CLASSES for number in range(4))
QUERIES = ("INSTRE-S1/01b/000.jpg", "INSTRE-S2/01/000.jpg", "INSTRE-M/01/000.jpg")


def write(folder: Path, rng: np.random.Generator) -> None:
    for name in IMAGES:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        cv2.imwrite(str(path), draw_texture(rng, 96, 64))
        path.with_suffix(".txt").write_text("5 6 20 10\n40 30 30 20\n" if "INSTRE-M" in name else "8 4 40 30\n")
    (folder / "gnd_instre.json").write_text(json.dumps(make_truth()))


def make_truth() -> dict[str, object]:
    """Positives count from 1, as in MATLAB. The last box is around both objects."""
    database = [name for name in IMAGES if name not in QUERIES]
    places = {name: number for number, name in enumerate(database, start=1)}
    positives = (
        ("INSTRE-S1/01b/001.jpg", "INSTRE-S1/01b/002.jpg", "INSTRE-M/01/001.jpg"),
        ("INSTRE-S2/01/001.jpg",),
        ("INSTRE-M/01/001.jpg", "INSTRE-M/01/003.jpg"),
    )
    boxes = ([8, 4, 48, 34], [8, 4, 40, 30], [5, 6, 70, 50])  # the second is x y w h, as beside the image
    gnd = [{"ok": [places[name] for name in names], "bbx": box} for names, box in zip(positives, boxes, strict=True)]
    return {"imlist": database, "qimlist": list(QUERIES), "gnd": gnd}
