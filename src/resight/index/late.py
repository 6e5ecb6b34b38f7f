"""Late interaction over every image: many tokens an image, packed for the kernels.

Score: (1/Kq) Σ_i max_j ⟨q_i, x_j⟩ (MaxSim). On disk: pack/ (mapped) and ids.json. With `exact`, compressed codes only
choose what is scored again in full precision, and the answer is proven to be that of the tokens themselves.
An image without tokens scores 0.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from resight import kernels, ranks
from resight.errors import RecipeError
from resight.index import Chunks
from resight.types import Descriptors, Ranking


@dataclass(frozen=True)
class Config:
    kind: Literal["fp32", "fp16", "int8", "pq"] = "int8"
    keep: Literal["fp32", "fp16", "none"] = "fp32"  # what exact answers are taken from
    exact: bool = True


def build(config: Config) -> "Late":
    return Late(config)


class Late:
    def __init__(self, config: Config) -> None:
        self._config = config

    def create(self, chunks: Chunks, folder: Path) -> "LateSearcher":
        ids, offsets, dimensions = _measure(chunks)
        path = folder / "tokens.npy"
        tokens = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(max(offsets[-1], 1), dimensions))
        start = 0
        for chunk in chunks():
            tokens[start : start + len(chunk)] = chunk.vectors
            start += len(chunk)
        packed = kernels.pack(tokens[:start], offsets, kind=self._config.kind, keep=self._config.keep)
        packed.save(folder / "pack")
        del tokens, packed
        path.unlink()
        (folder / "ids.json").write_text(json.dumps(ids), encoding="utf-8")
        return self.open(folder)

    def open(self, folder: Path) -> "LateSearcher":
        ids = json.loads((folder / "ids.json").read_text(encoding="utf-8"))
        return LateSearcher(ids, kernels.open(folder / "pack"), self._config.exact)


class LateSearcher:
    def __init__(self, ids: list[str], packed: kernels.Packed, exact: bool) -> None:
        self._ids = ids
        self._packed = packed
        self._exact = exact

    def search(self, query: Descriptors, k: int, allowed: frozenset[str] | None = None) -> Ranking:
        rows = np.arange(len(self._ids), dtype=np.int64)
        if allowed is not None:
            rows = np.array([row for row, name in enumerate(self._ids) if name in allowed], dtype=np.int64)
        if len(query.vectors) == 0 or len(rows) == 0:
            return ranks.best(query.ids[0], self._ids, np.zeros(len(rows), np.float32), k, rows)
        if self._exact and allowed is None and k < len(self._ids):
            found, scores, _ = self._packed.top(query.vectors, k)
            if len(found) == k:
                return ranks.best(query.ids[0], self._ids, scores, k, found)
        score = self._packed.exact_scores if self._exact else self._packed.scores
        scores = score(query.vectors, rows)
        return ranks.best(query.ids[0], self._ids, np.where(np.isfinite(scores), scores, 0).astype(np.float32), k, rows)


def _measure(chunks: Chunks) -> tuple[list[str], np.ndarray, int]:
    """Ids, offsets [N + 1] and dimensions of the tokens."""
    ids: list[str] = []
    counts: list[int] = []
    dimensions = 1
    for chunk in chunks():
        if chunk.words is not None or chunk.vectors.dtype.kind != "f":
            raise RecipeError(
                "late interaction needs tokens",
                expected="a descriptor such as aggregated or tokens",
                actual="visual words" if chunk.words is not None else f"rows of {chunk.vectors.dtype}",
                fix='choose index "inverted" for asmk, or another descriptor',
            )
        ids.extend(chunk.ids)
        counts.extend(np.bincount(chunk.owners, minlength=len(chunk.ids)).tolist())
        dimensions = chunk.vectors.shape[1]
    return ids, np.concatenate([[0], np.cumsum(counts)]).astype(np.int64), dimensions
