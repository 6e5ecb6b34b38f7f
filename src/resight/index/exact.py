"""Every row compared with the query: dot product, one row an image.

On disk: vectors.npy [n, D] (mapped, never loaded whole), ids.json. Score: ⟨q, x⟩, the cosine for rows of unit length.
"""

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from resight import ranks
from resight.errors import RecipeError
from resight.index import Chunks
from resight.types import Descriptors, Ranking

BLOCK_BYTES = 64 << 20  # of vectors turned into float32 at a time


@dataclass(frozen=True)
class Config:
    pass


def build(config: Config) -> "Exact":  # noqa: ARG001 - it has no settings
    return Exact()


class Exact:
    def create(self, chunks: Chunks, folder: Path) -> "ExactSearcher":
        count, dimensions, dtype = measure(chunks)
        vectors = np.lib.format.open_memmap(folder / "vectors.npy", mode="w+", dtype=dtype, shape=(count, dimensions))
        ids: list[str] = []
        for chunk in chunks():
            vectors[len(ids) : len(ids) + len(chunk)] = chunk.vectors
            ids.extend(chunk.ids)
        vectors.flush()
        (folder / "ids.json").write_text(json.dumps(ids), encoding="utf-8")
        return self.open(folder)

    def open(self, folder: Path) -> "ExactSearcher":
        ids = json.loads((folder / "ids.json").read_text(encoding="utf-8"))
        return ExactSearcher(ids, np.load(folder / "vectors.npy", mmap_mode="r"))


class ExactSearcher:
    def __init__(self, ids: list[str], vectors: np.ndarray) -> None:
        self._ids = ids
        self._vectors = vectors

    def search(self, query: Descriptors, k: int, allowed: frozenset[str] | None = None) -> Ranking:
        rows = None
        if allowed is not None:
            rows = np.array([row for row, name in enumerate(self._ids) if name in allowed], dtype=np.int64)
        count = len(self._ids) if rows is None else len(rows)
        scores = np.empty(count, np.float32)
        step = max(BLOCK_BYTES // (4 * max(self._vectors.shape[1], 1)), 1)
        for start in range(0, count, step):
            part = slice(start, start + step)
            block = self._vectors[part] if rows is None else self._vectors[rows[part]]
            scores[part] = block.astype(np.float32, copy=False) @ query.vectors[0].astype(np.float32)
        return ranks.best(query.ids[0], self._ids, scores, k, rows)


def measure(chunks: Chunks) -> tuple[int, int, np.dtype]:
    """Images, dimensions and dtype of rows that come one an image."""
    count, dimensions, dtype = 0, 0, np.dtype(np.float32)
    for chunk in chunks():
        if len(chunk.vectors) != len(chunk.ids) or chunk.words is not None:
            raise RecipeError(
                "this index takes one vector an image",
                expected="a descriptor such as vlad",
                actual=f"{len(chunk.vectors)} rows for {len(chunk.ids)} images",
                fix='choose another index ("inverted" for asmk) or another descriptor',
            )
        count += len(chunk.ids)
        dimensions, dtype = chunk.vectors.shape[1], chunk.vectors.dtype
    return count, dimensions, dtype
