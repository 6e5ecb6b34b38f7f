"""Inverted lists of faiss over compressed rows: trained on a sample, filled chunk by chunk, searched from a mapped
file.

A row is rotated first if wanted (OPQ) and goes to the list of the nearest of `nlist` centroids. The residual is cut
into m parts, and each part is stored as one of 2^bits words (PQ). Fast scan has words of 4 bits and compares 32 rows at
once; its lists are loaded, the others are mapped.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import faiss
import numpy as np
from numpy.typing import NDArray

from resight.errors import RecipeError
from resight.index.rows.pretransform import Turn
from resight.types import FloatArray, IntArray

ROWS_A_LIST = 39  # the fewest of the sample that a centroid is learnt from: what faiss asks for
ROTATION_ROUNDS, ROTATION_ROWS = 20, 64  # rounds, and rows a word: a tenth of the work of faiss' own 50 and 256
BYTES_A_ROW = 64  # at most, where m is left open


@dataclass(frozen=True)
class Layout:
    """What was made; it differs from what was asked for where there were too few rows."""

    kind: Literal["pq", "fast", "flat"]
    m: int
    bits: int
    nlist: int
    trained_on: int  # rows


def plan(dimensions: int, rows: int, sample: int, m: int, bits: int, nlist: int, fast: bool) -> Layout:
    """`m` and `nlist` 0: chosen. Up to 2^bits rows take less room as they are than the words would, and stay so."""
    m = m or max(part for part in range(1, dimensions + 1) if dimensions % part == 0 and part * bits <= 8 * BYTES_A_ROW)
    if dimensions % m:
        parts = [part for part in range(1, dimensions + 1) if dimensions % part == 0]
        raise RecipeError(
            f"rows of {dimensions} dimensions cannot be cut into m = {m} equal parts",
            expected=f"one of {', '.join(map(str, parts))}",
            actual=str(m),
            fix="choose one of them, or leave m out",
        )
    nlist = max(min(nlist or 4 * int(np.sqrt(rows)), sample // ROWS_A_LIST), 1)
    if rows <= 2**bits or sample < 2:
        return Layout("flat", 0, 0, nlist, sample)
    learnt = min(bits, sample.bit_length() - 1)
    return Layout("fast" if fast and learnt == bits else "pq", m, learnt, nlist, sample)


def train_lists(layout: Layout, sample: FloatArray, seed: int) -> Any:
    """Empty lists that know their centroids and words."""
    dimensions = sample.shape[1]
    centroids = faiss.IndexFlatIP(dimensions)
    shape = dimensions, layout.nlist
    if layout.kind == "flat":
        lists = faiss.IndexIVFFlat(centroids, *shape, faiss.METRIC_INNER_PRODUCT)
    else:
        make = faiss.IndexIVFPQFastScan if layout.kind == "fast" else faiss.IndexIVFPQ
        lists = make(centroids, *shape, layout.m, layout.bits, faiss.METRIC_INNER_PRODUCT)
        lists.by_residual = True
        _settle(lists.pq.cp, seed)
    _settle(lists.cp, seed)
    if len(sample):
        lists.train(sample)
    return lists


def learn_rotation(layout: Layout, sample: FloatArray) -> FloatArray | None:
    """[D, D]: rows times it can be cut into parts that lose less (OPQ); None where nothing is cut.

    Also None where there are fewer rows than dimensions: they cannot tell how to turn all of them.
    """
    dimensions = sample.shape[1]
    if layout.kind == "flat" or len(sample) < dimensions:
        return None
    learner = faiss.OPQMatrix(dimensions, layout.m)
    words = faiss.ProductQuantizer(dimensions, layout.m, layout.bits)
    _settle(words.cp, 0)
    learner.pq = words
    learner.niter, learner.max_train_points = ROTATION_ROUNDS, ROTATION_ROWS * 2**layout.bits
    learner.train(sample)
    learner.pq = None
    rotation: FloatArray = faiss.vector_to_array(learner.A).reshape(dimensions, dimensions).T
    return np.ascontiguousarray(rotation)


class ListFinder:
    """A Finder of index/rows/approximate.py. `kept` [n, D]: rows that are compared instead of their codes, mapped."""

    def __init__(self, path: Path, turn: Turn, nprobe: int, kept: NDArray[Any] | None) -> None:
        self._lists = faiss.read_index(str(path), faiss.IO_FLAG_MMAP)
        self._turn = turn
        self._nprobe = nprobe
        self._kept = kept

    def __len__(self) -> int:
        return int(self._lists.ntotal)

    @property
    def dimensions(self) -> int:
        """Of the rows that come in."""
        return len(self._turn.mean)

    def find(
        self, query: FloatArray, count: int, permitted: IntArray | None, effort: int
    ) -> tuple[IntArray, FloatArray, bool]:
        # A filter leaves the lists emptier: as many rows are looked at as without it.
        share = 1 if permitted is None else -(-len(self) // len(permitted))
        nprobe = min(self._nprobe * effort * share, self._lists.nlist)
        rows, scores = self._ask(query[None], count, permitted, nprobe)
        found = rows[0] >= 0
        return rows[0][found], scores[0][found], nprobe < self._lists.nlist

    def compare(self, rows: slice | IntArray, queries: FloatArray) -> FloatArray:
        numbers = np.arange(rows.start, rows.stop) if isinstance(rows, slice) else rows
        if self._kept is not None:
            return np.asarray(np.asarray(self._kept[rows], np.float32) @ queries.T)
        found, scores = self._ask(queries, len(numbers), numbers, self._lists.nlist)
        products = np.full((len(numbers), len(queries)), -np.inf, np.float32)
        for column, (own, values) in enumerate(zip(found, scores, strict=True)):
            products[np.searchsorted(numbers, own[own >= 0]), column] = values[own >= 0]
        return products

    def _ask(
        self, queries: FloatArray, count: int, permitted: IntArray | None, nprobe: int
    ) -> tuple[IntArray, FloatArray]:
        bits, selector = None, None
        if permitted is not None:
            mask = np.zeros(len(self), bool)
            mask[permitted] = True
            bits = np.packbits(mask, bitorder="little")
            selector = faiss.IDSelectorBitmap(bits)
        parameters = faiss.IVFSearchParameters(nprobe=nprobe, sel=selector)
        scores, rows = self._lists.search(self._turn.apply(queries), count, params=parameters)
        return rows, scores


def _settle(clustering: Any, seed: int) -> None:
    clustering.seed = seed
    clustering.min_points_per_centroid = 1  # few are allowed for above; faiss would complain on the terminal
