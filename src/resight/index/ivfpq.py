"""Inverted lists of product-quantised rows by faiss (IVFPQ): very many rows, such as regions, in little memory.

Two passes over the rows: the first draws the training sample, the second fills the lists; memory holds the sample and
the codes only. On disk: lists.faiss (mapped), layout.json (what was built: few rows make fewer lists than asked for),
turn_*.npy (the pretransform of a row), vectors.npy with `keep`, and the files of index/rows.

Score: ⟨q, x⟩ by the codes, of rows that are whitened first if `dimensions` is set. With `keep`, the search compares the
best `refine` · k images again by their stored rows. A search looks into `nprobe` lists, and into more if it finds fewer
than k images. The training rows are those of one grid level, or of another branch. A query with several rows needs
`match`: see index/rows/scoring.py.
"""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

import faiss
import numpy as np

from resight.errors import RecipeError
from resight.files.documents import load_json
from resight.index import Chunks
from resight.index.rows.approximate import search_images
from resight.index.rows.ivf import ROWS_PER_LIST, Layout, ListFinder, learn_rotation, plan, train_lists
from resight.index.rows.pretransform import identity, learn_whitening, load_pretransform, save_pretransform
from resight.index.rows.reservoir import RegionReservoir
from resight.index.rows.row_files import Rows, RowWriter, damaged_index, measure_folder, open_rows
from resight.index.rows.scoring import Match
from resight.plugins import check_range
from resight.types import Descriptors, FloatArray, Ranking


@dataclass(frozen=True)
class Config:
    m: int = 0  # parts that a row is split into for coding; 0: the most that divide its dimensions and fit 64 bytes
    nlist: int = 4096  # number of inverted lists; 0: 4 √rows; fewer if there are too few training rows
    rows_per_list: int = ROWS_PER_LIST  # fewest training rows per list; 1: as many lists as asked for
    nbits: int = 0  # bits per part; 0: 8, or 4 with fast
    nprobe: int = 64  # lists that a search looks into; more raise recall and search time
    dimensions: int = 0  # whiten rows and keep this many dimensions before coding; 0: code rows as they are
    power: float = 0.25  # strength of the whitening: divide by variance^power; 0: only rotate, 0.5: full whitening
    rotation: bool = False  # learn a rotation that makes rows easier to code (OPQ)
    fast: bool = False  # 4-bit codes compared 32 rows at a time (fast scan); loads the lists into memory
    train_on: Literal["all", "L0", "L1", "L2", "L3"] = "all"  # train on regions up to this grid level; all: every row
    train_branch: int | None = None  # number of the branch whose rows train the index, from 0; None: its own
    train_rows: int = 200_000  # most rows to train on
    keep: Literal["none", "fp16"] = "fp16"  # rows stored on disk for the second comparison (refine)
    refine: int = 4  # compare the best refine · k images again by their stored rows
    match: Literal["best", "mean"] | None = None  # several query rows: best pair, or mean of row maxima; None: refuse
    seed: int = 0  # random seed of the training sample and of the clustering

    def __post_init__(self) -> None:
        check_range("m", self.m, 0, 4096)
        check_range("nlist", self.nlist, 0, 10_000_000)
        check_range("rows_per_list", self.rows_per_list, 1, 10_000_000)
        check_range("nbits", self.nbits, 0, 12)
        check_range("nprobe", self.nprobe, 1, 10_000_000)
        check_range("dimensions", self.dimensions, 0, 1_000_000)
        check_range("power", self.power, 0, 1)
        check_range("train_branch", self.train_branch or 0, 0, 1000)
        check_range("train_rows", self.train_rows, 1, 100_000_000)
        check_range("refine", self.refine, 1, 1_000_000)
        check_range("seed", self.seed, 0, 2**31 - 1)
        if self.fast and self.nbits not in (0, 4):
            raise RecipeError(
                "fast scan needs 4 bits per part",
                expected="nbits = 4",
                actual=f"nbits = {self.nbits}",
                fix="leave nbits out, or leave out fast = true",
            )


def build(config: Config) -> "Ivfpq":
    return Ivfpq(config)


class Ivfpq:
    def __init__(self, config: Config) -> None:
        self._config = config

    @property
    def learns_from(self) -> int | None:
        """The branch whose rows `create` wants as `training`."""
        return self._config.train_branch

    def create(self, chunks: Chunks, folder: Path, training: Chunks | None = None) -> "IvfpqSearcher":
        sample = self._write_rows(chunks, folder, training)
        config = self._config
        bits = config.nbits or (4 if config.fast else 8)
        rows = len(open_rows(folder))
        pretransform = identity(sample.shape[1])
        if config.dimensions:
            pretransform = learn_whitening(sample, config.dimensions, config.power)
        transformed = pretransform.apply(sample)
        layout = plan(
            transformed.shape[1], rows, len(sample), config.m, bits, config.nlist, config.fast, config.rows_per_list
        )
        if config.rotation and (rotation := learn_rotation(layout, transformed)) is not None:
            pretransform = pretransform.compose(rotation)
        lists = train_lists(layout, pretransform.apply(sample), config.seed)
        del sample, transformed
        for chunk in chunks():
            lists.add(pretransform.apply(np.asarray(chunk.vectors, np.float32)))
        save_pretransform(pretransform, folder)
        faiss.write_index(lists, str(folder / "lists.faiss"))
        if layout.kind == "flat":  # the lists hold the rows themselves
            (folder / "vectors.npy").unlink(missing_ok=True)
        (folder / "layout.json").write_text(json.dumps(asdict(layout)), encoding="utf-8")
        return self.open(folder)

    def _write_rows(self, chunks: Chunks, folder: Path, training: Chunks | None) -> FloatArray:
        """Write the files of index/rows; return the training sample [n, D]."""
        config = self._config
        reservoir = RegionReservoir(config.train_rows, config.train_on, np.random.default_rng(config.seed))
        dimensions = 0
        with RowWriter(folder, vectors=config.keep == "fp16", keep=np.dtype(np.float16)) as writer:
            for chunk in chunks():
                writer.add(chunk)
                dimensions = chunk.vectors.shape[1]
                if config.train_branch is None:
                    reservoir.add(chunk)
        rows = writer.finish()
        if len(rows) == 0:
            return np.zeros((0, max(dimensions, 1)), np.float32)
        if config.train_branch is not None:
            for chunk in training() if training is not None else ():
                reservoir.add(chunk)
        sample = reservoir.take()
        if len(sample) == 0 or sample.shape[1] != dimensions:
            raise RecipeError(
                f"branch {config.train_branch} cannot train the index",
                expected=f"rows of {dimensions} dimensions, as the branch itself has",
                actual=f"rows of {sample.shape[1]} dimensions" if len(sample) else "no rows",
                fix="let train_branch name a branch with the same encoder and descriptor, or leave it out",
            )
        return sample

    def open(self, folder: Path) -> "IvfpqSearcher":
        layout = Layout(**load_json((folder / "layout.json").read_text(encoding="utf-8")))
        rows = open_rows(folder)
        kept = None
        if self._config.keep == "fp16" and layout.kind != "flat":
            kept = np.load(folder / "vectors.npy", mmap_mode="r")
        pretransform = load_pretransform(folder)
        finder = ListFinder(folder / "lists.faiss", pretransform, self._config.nprobe, kept)
        if len(finder) != len(rows) or (kept is not None and len(kept) != len(rows)):
            stored = "" if kept is None else f", {len(kept)} stored"
            raise damaged_index(folder, f"{len(rows)} rows", f"{len(finder)} coded{stored}")
        refine = 0 if kept is None else self._config.refine
        in_memory = (folder / "lists.faiss").stat().st_size + rows.offsets.nbytes + pretransform.nbytes
        read = in_memory + (0 if kept is None else kept.nbytes)
        on_disk = measure_folder(folder)
        return IvfpqSearcher(rows, finder, layout, self._config.match, refine, in_memory, read, on_disk)


class IvfpqSearcher:
    def __init__(
        self,
        rows: Rows,
        finder: ListFinder,
        layout: Layout,
        match: Match | None,
        refine: int,
        bytes_in_memory: int,
        bytes_kept: int,
        bytes_on_disk: int,
    ) -> None:
        self._rows = rows
        self._finder = finder
        self._match = match
        self._refine = refine
        self.layout = layout
        self.bytes_in_memory = bytes_in_memory  # all lists, without the stored rows
        self.bytes_kept = bytes_kept  # all that a search reads: the lists, and the stored rows if there are any
        self.bytes_on_disk = bytes_on_disk  # with ids and boxes

    def search(self, query: Descriptors, k: int, allowed: frozenset[str] | None = None) -> Ranking:
        return search_images(self._finder, self._rows, query, k, allowed, self._match, self._refine)

    @property
    def bytes_uncompressed(self) -> int:
        """Bytes of the rows in float32."""
        return 4 * len(self._rows) * self._finder.dimensions
