"""CraterBench-R in small: three craters with two gallery images each, and two queries; one shows two craters."""

import json
from pathlib import Path

import cv2
import numpy as np

from support.builders import draw_texture

CASES = ({}, {"split": "train"})
CRATERS = ("02-1-000001", "02-1-000002", "02-1-000003")
QUERIES = {"02-1-000001_q0": CRATERS[0], "02-1-000003_q1": CRATERS[2]}
RELEVANCE = {
    CRATERS[0]: {"raw_crater_ids": [CRATERS[0], "99-9-999999"], "relevant_crater_ids": [CRATERS[0]]},
    CRATERS[2]: {"raw_crater_ids": [CRATERS[2], CRATERS[1]], "relevant_crater_ids": [CRATERS[2], CRATERS[1]]},
}


def write(folder: Path, rng: np.random.Generator) -> None:
    gallery = [
        {"image_id": f"{crater}_{view}", "path": f"images/gallery/{crater}_{view}.jpg", "crater_id": crater}
        | {"view_type": view}
        for crater in CRATERS
        for view in ("2x", "3x")
    ]
    queries = [
        {"image_id": id, "path": f"images/query/{id}.jpg", "crater_id": crater} for id, crater in QUERIES.items()
    ]
    for item in (*gallery, *queries):
        path = folder / str(item["path"])
        path.parent.mkdir(parents=True, exist_ok=True)
        cv2.imwrite(str(path), draw_texture(rng, 64, 64)[..., 0])
    write_json(folder / "splits" / "test.json", {"gallery_images": gallery, "query_images": queries})
    write_json(folder / "splits" / "train.json", {"split_name": "train", "gallery_images": gallery[:2]})
    write_json(folder / "metadata" / "query_relevance.json", RELEVANCE)


def write_json(path: Path, content: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content))
