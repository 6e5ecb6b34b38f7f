"""Inverted lists of faiss over compressed rows: trained on a sample, filled chunk by chunk, searched from a mapped
file.

A row is rotated if the recipe asks for it (OPQ) and joins the list of the nearest of `nlist` centroids. Its residual is
split into m parts, and the code of each part is the nearest of 2^bits words (PQ). Fast scan has words of 4 bits and
compares 32 rows at once; faiss loads its lists into memory and maps the others.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import faiss
import numpy as np
from numpy.typing import NDArray

from resight.errors import RecipeError
from resight.index.rows.pretransform import Pretransform
from resight.types import FloatArray, IntArray

ROWS_PER_LIST = 39  # sample rows per centroid: the fewest that faiss recommends
ROTATION_ROUNDS, ROTATION_ROWS = 20, 64  # rounds, rows per word: a tenth of the work of faiss' defaults 50 and 256
MAX_BYTES_PER_ROW = 64  # if m is left open


@dataclass(frozen=True)
class Layout:
    """The lists as built; with too few rows they differ from the settings."""

    kind: Literal["pq", "fast", "flat"]
    m: int
    bits: int
    nlist: int
    trained_on: int  # rows


def plan(
    dimensions: int,
    rows: int,
    sample: int,
    m: int,
    bits: int,
    nlist: int,
    fast: bool,
    rows_per_list: int = ROWS_PER_LIST,
) -> Layout:
    """Choose the layout; `m` or `nlist` 0: automatic. Up to 2^bits rows stay uncompressed: words would take more.

    There are never more lists than sample rows / `rows_per_list`.
    """
    parts = [part for part in range(1, dimensions + 1) if dimensions % part == 0]
    m = m or max(part for part in parts if part * bits <= 8 * MAX_BYTES_PER_ROW)
    if dimensions % m:
        raise RecipeError(
            f"rows of {dimensions} dimensions cannot be split into m = {m} equal parts",
            expected=f"one of {', '.join(map(str, parts))}",
            actual=str(m),
            fix="choose one of them, or leave m out",
        )
    nlist = max(min(nlist or 4 * int(np.sqrt(rows)), sample // rows_per_list), 1)
    if rows <= 2**bits or sample < 2:
        return Layout("flat", 0, 0, nlist, sample)
    learnt = min(bits, sample.bit_length() - 1)
    return Layout("fast" if fast and learnt == bits else "pq", m, learnt, nlist, sample)


def train_lists(layout: Layout, sample: FloatArray, seed: int) -> Any:
    """Empty lists with learnt centroids and words."""
    dimensions = sample.shape[1]
    centroids = faiss.IndexFlatIP(dimensions)
    shape = dimensions, layout.nlist
    if layout.kind == "flat":
        lists = faiss.IndexIVFFlat(centroids, *shape, faiss.METRIC_INNER_PRODUCT)
    else:
        make = faiss.IndexIVFPQFastScan if layout.kind == "fast" else faiss.IndexIVFPQ
        lists = make(centroids, *shape, layout.m, layout.bits, faiss.METRIC_INNER_PRODUCT)
        lists.by_residual = True
        _set_clustering(lists.pq.cp, seed)
    _set_clustering(lists.cp, seed)
    if len(sample):
        lists.train(sample)
    return lists


def learn_rotation(layout: Layout, sample: FloatArray) -> FloatArray | None:
    """A rotation [D, D] after which the parts of rows lose less in coding (OPQ).

    None if the layout has no parts, or if there are fewer rows than dimensions, which do not determine a rotation.
    """
    dimensions = sample.shape[1]
    if layout.kind == "flat" or len(sample) < dimensions:
        return None
    learner = faiss.OPQMatrix(dimensions, layout.m)
    words = faiss.ProductQuantizer(dimensions, layout.m, layout.bits)
    _set_clustering(words.cp, 0)
    learner.pq = words
    learner.niter, learner.max_train_points = ROTATION_ROUNDS, ROTATION_ROWS * 2**layout.bits
    learner.train(sample)
    learner.pq = None
    rotation: FloatArray = faiss.vector_to_array(learner.A).reshape(dimensions, dimensions).T
    return np.ascontiguousarray(rotation)


class ListFinder:
    """A Finder (index/rows/approximate.py). `kept` [n, D]: mapped rows that `compare` uses instead of the codes."""

    def __init__(self, path: Path, pretransform: Pretransform, nprobe: int, kept: NDArray[Any] | None) -> None:
        self._lists = faiss.read_index(str(path), faiss.IO_FLAG_MMAP)
        self._pretransform = pretransform
        self._nprobe = nprobe
        self._kept = kept

    def __len__(self) -> int:
        return int(self._lists.ntotal)

    @property
    def dimensions(self) -> int:
        """Dimensions of a row before the pretransform."""
        return len(self._pretransform.mean)

    def find(
        self, query: FloatArray, count: int, permitted: IntArray | None, effort: int
    ) -> tuple[IntArray, FloatArray, bool]:
        # A filter leaves fewer rows per list: look into more lists, so that as many rows are compared as without it.
        share = 1 if permitted is None else -(-len(self) // len(permitted))
        nprobe = min(self._nprobe * effort * share, self._lists.nlist)
        rows, scores = self._search(query[None], count, permitted, nprobe)
        found = rows[0] >= 0
        return rows[0][found], scores[0][found], nprobe < self._lists.nlist

    def compare(self, rows: slice | IntArray, queries: FloatArray) -> FloatArray:
        numbers = np.arange(rows.start, rows.stop) if isinstance(rows, slice) else rows
        if self._kept is not None:
            return np.asarray(np.asarray(self._kept[rows], np.float32) @ queries.T)
        found, scores = self._search(queries, len(numbers), numbers, self._lists.nlist)
        products = np.full((len(numbers), len(queries)), -np.inf, np.float32)
        for column, (own, values) in enumerate(zip(found, scores, strict=True)):
            products[np.searchsorted(numbers, own[own >= 0]), column] = values[own >= 0]
        return products

    def _search(
        self, queries: FloatArray, count: int, permitted: IntArray | None, nprobe: int
    ) -> tuple[IntArray, FloatArray]:
        bits, selector = None, None
        if permitted is not None:
            mask = np.zeros(len(self), bool)
            mask[permitted] = True
            bits = np.packbits(mask, bitorder="little")
            selector = faiss.IDSelectorBitmap(bits)
        parameters = faiss.IVFSearchParameters(nprobe=nprobe, sel=selector)
        scores, rows = self._lists.search(self._pretransform.apply(queries), count, params=parameters)
        return rows, scores


def _set_clustering(clustering: Any, seed: int) -> None:
    clustering.seed = seed
    clustering.min_points_per_centroid = 1  # `plan` allows for few rows; faiss would warn on the terminal
