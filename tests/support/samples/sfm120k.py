"""retrieval-SfM-120k in small: five images in two clusters to train on, six in two clusters to validate with."""

import pickle
from pathlib import Path

import cv2
import numpy as np

from support.builders import draw_texture

CASES = ({"split": "train"}, {"split": "val"}, {"split": "all"})


def write(folder: Path, rng: np.random.Generator) -> None:
    truth = make_truth()
    (folder / "retrieval-SfM-120k.pkl").write_bytes(pickle.dumps(truth, protocol=2))
    for part in truth.values():
        for cid in part["cids"]:
            path = folder / "ims" / cid[-2:] / cid[-4:-2] / cid[-6:-4] / cid
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(cv2.imencode(".jpg", draw_texture(rng, 64, 48))[1].tobytes())


def make_truth() -> dict[str, dict[str, object]]:
    return {
        "train": {
            "cids": [f"{number:02d}aabbccddeeff" for number in range(5)],
            "cluster": [3, 3, 3, 8, 8],
            "qidxs": [0, 3],
            "pidxs": [1, 4],
        },
        "val": {
            "cids": [f"ffeeddccbbaa{number:02d}" for number in range(6)],
            "cluster": np.array([1, 1, 1, 1, 5, 5]),
            "qidxs": np.array([0, 4, 0]),
            "pidxs": np.array([1, 5, 2]),
        },
    }
