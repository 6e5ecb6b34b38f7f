"""Graph search by faiss (HNSW): approximate, for many images. One row per image, or several, of which the best counts.

On disk: graph.faiss and the files of index/rows. Score: ⟨q, x⟩. `links` (M) and `build_width` (efConstruction) set the
quality of the graph, `search_width` (efSearch) that of a search, which always looks at as many candidates as it returns
or more. Among equal scores at rank k, the graph decides which rows come in. A query with several rows needs `match`:
see index/rows/scoring.py.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import faiss
import numpy as np

from resight.index import Chunks
from resight.index.rows.approximate import search_images
from resight.index.rows.row_files import Rows, RowWriter, damaged_index, measure_folder, open_rows
from resight.index.rows.scoring import Match
from resight.plugins import check_range
from resight.types import Descriptors, FloatArray, IntArray, Ranking


@dataclass(frozen=True)
class Config:
    links: int = 32  # links per row (faiss: M); more raise recall and memory
    build_width: int = 200  # candidates while building (efConstruction); more raise recall and building time
    search_width: int = 128  # candidates per search (efSearch), at least one per result; more raise recall and time
    match: Literal["best", "mean"] | None = None  # several query rows: best pair, or mean of row maxima; None: refuse

    def __post_init__(self) -> None:
        check_range("links", self.links, 2, 1024)
        check_range("build_width", self.build_width, 1, 1_000_000)
        check_range("search_width", self.search_width, 1, 1_000_000)


def build(config: Config) -> "Hnsw":
    return Hnsw(config)


class Hnsw:
    divisible = True  # scores are exact, and one graph per part finds at least as much as one for all

    def __init__(self, config: Config) -> None:
        self._config = config

    def create(self, chunks: Chunks, folder: Path) -> "HnswSearcher":
        graph = None
        with RowWriter(folder, vectors=False) as writer:
            for chunk in chunks():
                writer.add(chunk)
                graph = graph or self._start_graph(chunk.vectors.shape[1])
                graph.add(np.ascontiguousarray(chunk.vectors, dtype=np.float32))
        faiss.write_index(graph or self._start_graph(1), str(folder / "graph.faiss"))
        writer.finish()
        return self.open(folder)

    def _start_graph(self, dimensions: int) -> Any:
        graph = faiss.IndexHNSWFlat(dimensions, self._config.links, faiss.METRIC_INNER_PRODUCT)
        graph.hnsw.efConstruction = self._config.build_width
        return graph

    def open(self, folder: Path) -> "HnswSearcher":
        rows, graph = open_rows(folder), faiss.read_index(str(folder / "graph.faiss"))
        if graph.ntotal != len(rows):
            raise damaged_index(folder, f"{len(rows)} rows", f"{graph.ntotal} rows")
        size = (folder / "graph.faiss").stat().st_size
        return HnswSearcher(
            rows, Graph(graph, self._config.search_width), self._config.match, size, measure_folder(folder)
        )


class HnswSearcher:
    def __init__(
        self, rows: Rows, graph: "Graph", match: Match | None, bytes_in_memory: int, bytes_on_disk: int
    ) -> None:
        self._rows = rows
        self._graph = graph
        self._match = match
        self.bytes_in_memory = bytes_in_memory  # the graph with its vectors
        self.bytes_on_disk = bytes_on_disk

    def search(self, query: Descriptors, k: int, allowed: frozenset[str] | None = None) -> Ranking:
        return search_images(self._graph, self._rows, query, k, allowed, self._match)


class Graph:
    """A Finder of index/rows/approximate.py."""

    def __init__(self, graph: Any, width: int) -> None:
        self._graph = graph
        self._storage = faiss.downcast_index(graph.storage)
        self._width = width

    def find(
        self,
        query: FloatArray,
        count: int,
        permitted: IntArray | None,
        effort: int,  # noqa: ARG002 - always 1, because `find` never reports that more effort would help
    ) -> tuple[IntArray, FloatArray, bool]:
        width, selector = max(self._width, count), None
        if permitted is not None:
            # The graph also walks through forbidden nodes: a narrow filter needs a wider search.
            width = min(self._graph.ntotal, width * self._graph.ntotal // max(len(permitted), 1))
            selector = faiss.IDSelectorBatch(permitted)
        parameters = faiss.SearchParametersHNSW(efSearch=width, sel=selector)
        scores, rows = self._graph.search(query[None], count, params=parameters)
        if rows[0].min() < 0:  # too few rows reached (many equal rows, or a narrow filter): compare all
            scores, rows = self._storage.search(query[None], count, params=faiss.SearchParameters(sel=selector))
        found = rows[0] >= 0
        return rows[0][found], scores[0][found], False

    def compare(self, rows: slice | IntArray, queries: FloatArray) -> FloatArray:
        numbers = np.arange(rows.start, rows.stop) if isinstance(rows, slice) else rows
        return np.asarray(self._storage.reconstruct_batch(numbers) @ queries.T)
