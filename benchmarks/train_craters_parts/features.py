"""Crops in, their tokens out, encoded once by the branch of a recipe and kept in a file; and how tokens rank a gallery.

A query's first images are those of the highest MaxSim, as many as the reranker `layout` of the recipe looks at; it puts
them in order, and the rest stays below. One image of the gallery is right, so that AP is 1 / its rank.
"""

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from resight import kernels
from resight.data.image_files import read
from resight.encode.encoder import Encoder, encode_stored
from resight.encode.heads import Head
from resight.search.rerankers import layout
from resight.train.head_evaluation import apply
from resight.types import Branch, Descriptors, FloatArray, ImageRef, Recipe

TOGETHER = 16


@dataclass(frozen=True)
class Encoded:
    """Images of t tokens each, on one grid."""

    ids: tuple[str, ...]
    tokens: FloatArray  # [n, t, D]
    boxes: FloatArray  # [t, 4]
    space: str

    def describe(self, image: int, tokens: FloatArray) -> Descriptors:
        return Descriptors((self.ids[image],), tokens[image], np.zeros(len(self.boxes), np.int32), boxes=self.boxes)


def encode(paths: Sequence[Path], branch: Branch, kept: Path) -> Encoded:
    """From `kept` if it holds these images in the space of this branch."""
    encoder = Encoder([branch])
    ids = tuple(path.as_posix() for path in paths)
    if kept.is_file():
        with np.load(kept) as found:
            if str(found["space"]) == encoder.spaces[0] and tuple(found["ids"]) == ids:
                return Encoded(ids, found["tokens"], found["boxes"], encoder.spaces[0])
    rows: list[Descriptors] = []
    for start in range(0, len(paths), TOGETHER):
        pictures = [read(ImageRef(path.as_posix(), path)) for path in paths[start : start + TOGETHER]]
        rows += [described[0] for described in encode_stored(pictures, encoder)]
    tokens = np.stack([one.vectors for one in rows]).astype(np.float16)
    boxes = rows[0].boxes
    assert boxes is not None, "tokens have boxes"
    np.savez(kept, ids=np.array(ids), tokens=tokens, boxes=boxes, space=encoder.spaces[0])
    return Encoded(ids, tokens, boxes, encoder.spaces[0])


@dataclass(frozen=True)
class Task:
    """Gallery image i and query i show the same crater."""

    name: str
    gallery: Encoded
    queries: Encoded


def load_task(folder: Path, name: str, branch: Branch) -> Task:
    with (folder / f"{name}.csv").open(newline="", encoding="utf-8") as file:
        rows = sorted(csv.DictReader(file), key=lambda row: row["label"])
    sides = {role: [folder / row["path"] for row in rows if row["role"] == role] for role in ("database", "query")}
    gallery, queries = (encode(paths, branch, folder / f"{name}_{role}.npz") for role, paths in sides.items())
    return Task(name, gallery, queries)


def rank(task: Task, head: Head | None, overlay: layout.Overlay, candidates: int) -> FloatArray:
    """The rank of the right image [queries], from 1."""
    gallery, queries = (transform(one.tokens, head) for one in (task.gallery, task.queries))
    count, width = gallery.shape[1:]
    packed = kernels.pack(gallery.reshape(-1, width), np.arange(len(gallery) + 1) * count, kind="fp32")
    described = [task.gallery.describe(image, gallery) for image in range(len(gallery))]
    ranks = np.empty(len(queries), np.float32)
    for query in range(len(queries)):
        order = np.argsort(-packed.scores(queries[query], threads=1), kind="stable")
        first = order[:candidates]
        placed = layout.place_candidates([described[image] for image in first])
        scores = layout.score_layout(task.queries.describe(query, queries), placed, overlay)
        found = np.concatenate([first[np.argsort(-scores, kind="stable")], order[candidates:]])
        ranks[query] = 1 + int(np.flatnonzero(found == query)[0])
    return ranks


def transform(tokens: FloatArray, head: Head | None) -> FloatArray:
    flat = apply(head, tokens.reshape(-1, tokens.shape[2]))
    return flat.reshape(*tokens.shape[:2], flat.shape[1])


def find_layout(recipe: Recipe) -> tuple[layout.Overlay, int]:
    """How the recipe lays tokens over each other, and over how many candidates."""
    for choice in recipe.rerankers:
        if choice.name == "layout":
            reranker = layout.build(layout.Config(**choice.settings))
            return reranker.overlay, reranker.candidates
    raise SystemExit(f"the recipe {recipe.name} has no reranker layout")
