"""Graph search by faiss: approximate, for one vector an image and many images.

On disk: graph.faiss, ids.json. Score: ⟨q, x⟩. `links` (M) and `build_width` (efConstruction) set the quality of
the graph, `search_width` (efSearch) that of a search; a search never looks at fewer than k candidates.
Which of several equal rows come in at the cut is up to the graph.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import faiss
import numpy as np

from resight import ranks
from resight.index import Chunks
from resight.index.exact import measure
from resight.plugins import check_range
from resight.types import Descriptors, Ranking


@dataclass(frozen=True)
class Config:
    links: int = 32
    build_width: int = 200
    search_width: int = 128

    def __post_init__(self) -> None:
        check_range("links", self.links, 2, 1024)
        check_range("build_width", self.build_width, 1, 1_000_000)
        check_range("search_width", self.search_width, 1, 1_000_000)


def build(config: Config) -> "Hnsw":
    return Hnsw(config)


class Hnsw:
    def __init__(self, config: Config) -> None:
        self._config = config

    def create(self, chunks: Chunks, folder: Path) -> "HnswSearcher":
        _, dimensions, _ = measure(chunks)
        graph = faiss.IndexHNSWFlat(dimensions, self._config.links, faiss.METRIC_INNER_PRODUCT)
        graph.hnsw.efConstruction = self._config.build_width
        ids: list[str] = []
        for chunk in chunks():
            graph.add(np.ascontiguousarray(chunk.vectors, dtype=np.float32))
            ids.extend(chunk.ids)
        faiss.write_index(graph, str(folder / "graph.faiss"))
        (folder / "ids.json").write_text(json.dumps(ids), encoding="utf-8")
        return self.open(folder)

    def open(self, folder: Path) -> "HnswSearcher":
        ids = json.loads((folder / "ids.json").read_text(encoding="utf-8"))
        return HnswSearcher(ids, faiss.read_index(str(folder / "graph.faiss")), self._config.search_width)


class HnswSearcher:
    def __init__(self, ids: list[str], graph: Any, search_width: int) -> None:
        self._ids = ids
        self._graph = graph
        self._width = search_width

    def search(self, query: Descriptors, k: int, allowed: frozenset[str] | None = None) -> Ranking:
        k, width, selector = min(k, len(self._ids)), max(self._width, k), None
        if allowed is not None:
            permitted = np.array([row for row, name in enumerate(self._ids) if name in allowed], dtype=np.int64)
            k = min(k, len(permitted))
            # The graph walks through forbidden nodes too: a narrow filter needs a wider search.
            width = min(len(self._ids), width * len(self._ids) // max(len(permitted), 1))
            selector = faiss.IDSelectorBatch(permitted)
        if k == 0:
            return Ranking(query.ids[0], (), np.zeros(0, np.float32))
        vectors = np.ascontiguousarray(query.vectors[:1], dtype=np.float32)
        scores, rows = self._graph.search(vectors, k, params=faiss.SearchParametersHNSW(efSearch=width, sel=selector))
        if rows[0].min() < 0:  # the graph did not reach k images (many equal rows, or a narrow filter): look at all
            storage = faiss.downcast_index(self._graph.storage)
            scores, rows = storage.search(vectors, k, params=faiss.SearchParameters(sel=selector))
        found = rows[0] >= 0
        return ranks.best(query.ids[0], self._ids, scores[0][found], k, rows[0][found])
