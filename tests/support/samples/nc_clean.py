"""NC-clean in small: five listed images of three landmarks, in folders of landmarks and, of one landmark, flat."""

from pathlib import Path

import cv2
import numpy as np

from support.builders import draw_texture

CASES = ({}, {"split": "train"}, {"split": "val"})
TRAIN = (("a.jpg", "0"), ("b%20b.jpg", "0"), ("c.jpg", "17"), ("c.jpg", "580"))
VAL = (("d.jpeg", "17"),)
FILES = ("0/a.jpg", "0/b b.jpg", "17/c.jpg", "580/c.jpg", "d.jpeg")


def write(folder: Path, rng: np.random.Generator) -> None:
    for name, rows in (("annotation_clean_train.txt", TRAIN), ("annotation_clean_val.txt", VAL)):
        lines = [
            f"http://farm1.example.org/{number}/{file} {label} 4 60 2 40" for number, (file, label) in enumerate(rows)
        ]
        (folder / name).write_text("".join(f"{line}\n" for line in lines))
    for file in FILES:
        path = folder / "images" / file
        path.parent.mkdir(parents=True, exist_ok=True)
        cv2.imwrite(str(path), draw_texture(rng, 64, 48))
