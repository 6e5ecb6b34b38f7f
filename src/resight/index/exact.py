"""Compare every row with the query by dot product: one row per image, or several (regions), of which the best counts.

On disk: vectors.npy [n, D] (mapped, never loaded whole) and the files of index/rows. Score: ⟨q, x⟩, the cosine for rows
of unit length. A query with several rows needs `match`: see index/rows/scoring.py.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from resight.index import Chunks
from resight.index.rows.row_files import Rows, RowWriter, damaged_index, measure_folder, open_rows
from resight.index.rows.scoring import (
    Match,
    add_boxes,
    compare_vectors,
    permit_images,
    rank_images,
    score_images,
    take_queries,
)
from resight.types import Descriptors, Ranking


@dataclass(frozen=True)
class Config:
    match: Literal["best", "mean"] | None = None  # several query rows: best pair, or mean of row maxima; None: refuse


def build(config: Config) -> "Exact":
    return Exact(config)


class Exact:
    divisible = True

    def __init__(self, config: Config) -> None:
        self._config = config

    def create(self, chunks: Chunks, folder: Path) -> "ExactSearcher":
        with RowWriter(folder) as writer:
            for chunk in chunks():
                writer.add(chunk)
        writer.finish()
        return self.open(folder)

    def open(self, folder: Path) -> "ExactSearcher":
        rows, vectors = open_rows(folder), np.load(folder / "vectors.npy", mmap_mode="r")
        if len(vectors) != len(rows):
            raise damaged_index(folder, f"{len(rows)} rows", f"{len(vectors)} rows")
        return ExactSearcher(rows, vectors, self._config.match, measure_folder(folder))


class ExactSearcher:
    def __init__(self, rows: Rows, vectors: NDArray[Any], match: Match | None, bytes_on_disk: int) -> None:
        self._rows = rows
        self._vectors = vectors
        self._match = match
        self.bytes_on_disk = bytes_on_disk

    def search(self, query: Descriptors, k: int, allowed: frozenset[str] | None = None) -> Ranking:
        queries = take_queries(query, self._match)
        images, bare = permit_images(self._rows, allowed, queries)
        scores, compared, best = score_images(compare_vectors(self._vectors), self._rows, images, queries, self._match)
        ranking = rank_images(query.ids[0], self._rows, images, scores, bare, k)
        return add_boxes(ranking, self._rows, compared, best)

    @property
    def bytes_in_memory(self) -> int:
        """Bytes of the mapped vectors, all of which a search reads."""
        return int(self._vectors.nbytes)
