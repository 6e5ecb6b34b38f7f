"""Google Landmarks v2 in small: three landmarks, one of them (47378) not in RGLDv2-clean, and three test images."""

from pathlib import Path

import cv2
import numpy as np

from support.builders import draw_texture

CASES = (
    {"which": "train"},
    {"which": "clean"},
    {"which": "rgldv2_clean"},
    {"which": "retrieval"},
    {"which": "retrieval", "usage": "both"},
)
TRAIN = {"7": ["00000000000000a0", "00100000000000a1", "fff00000000000a2"], "47378": ["abc00000000000a3"]}
NOISE = {"9": ["abd00000000000a4"]}  # in train, and not in clean
INDEX = ["11100000000000b0", "11100000000000b1", "22200000000000b2"]
TEST = {
    "33300000000000c0": (f"{INDEX[0]} {INDEX[2]}", "Private"),
    "33300000000000c1": (INDEX[1], "Public"),
    "44400000000000c2": ("None", "Ignored"),
}


def write(folder: Path, rng: np.random.Generator) -> None:
    labelled = [(id, label) for label, ids in (TRAIN | NOISE).items() for id in ids]
    _write_table(
        folder / "train.csv", "id,url,landmark_id", [f'{id},"https://a/b,c.jpg",{gid}' for id, gid in labelled]
    )
    _write_table(
        folder / "train_clean.csv", "landmark_id,images", [f"{gid},{' '.join(ids)}" for gid, ids in TRAIN.items()]
    )
    _write_table(folder / "index.csv", "id", INDEX)
    solution = [f"{id},{images},{usage}" for id, (images, usage) in TEST.items()]
    _write_table(folder / "retrieval_solution_v2.1.csv", "id,images,Usage", solution)
    for part, ids in (("train", [id for id, _ in labelled]), ("index", INDEX), ("test", TEST)):
        for id in ids:
            path = folder / part / id[0] / id[1] / id[2] / f"{id}.jpg"
            path.parent.mkdir(parents=True, exist_ok=True)
            cv2.imwrite(str(path), draw_texture(rng, 64, 48))


def _write_table(path: Path, header: str, lines: list[str]) -> None:
    path.write_text("".join(f"{line}\n" for line in [header, *lines]))
