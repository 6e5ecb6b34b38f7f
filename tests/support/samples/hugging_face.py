"""A Hugging Face data set in small: three labels, six images to search and three to search for, as parquet files."""

import json
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from support.builders import draw_texture

CASES = ({}, {"id": "name"}, {"query_split": ""}, {"query_split": "train"})
NAMES = ("cup", "hat", "key")
FEATURES = {"info": {"features": {"label": {"names": list(NAMES), "_type": "ClassLabel"}}}}


def write(folder: Path, rng: np.random.Generator) -> None:
    (folder / "data").mkdir()
    for split, count in (("train", 6), ("test", 3)):
        table = make_table(split, count, rng)
        pq.write_table(table.slice(0, 2), folder / "data" / f"{split}-00000-of-00002.parquet")
        pq.write_table(table.slice(2), folder / "data" / f"{split}-00001-of-00002.parquet")


def make_table(split: str, count: int, rng: np.random.Generator) -> Any:
    rows = [
        {"image": {"bytes": encode(rng), "path": None}, "label": number % 3, "name": f"{split}-{number}"}
        for number in range(count)
    ]
    return pa.Table.from_pylist(rows).replace_schema_metadata({"huggingface": json.dumps(FEATURES)})


def encode(rng: np.random.Generator) -> bytes:
    return cv2.imencode(".png", draw_texture(rng, 64, 48))[1].tobytes()
