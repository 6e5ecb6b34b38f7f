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

from resight.errors import CollectionError, RecipeError
from resight.index import Chunks
from resight.index.rows.approximate import search_images
from resight.index.rows.ivf import Layout, ListFinder, learn_rotation, plan, train_lists
from resight.index.rows.pretransform import learn_whitening, leave
from resight.index.rows.pretransform import load as load_turn
from resight.index.rows.pretransform import save as save_turn
from resight.index.rows.reservoir import RegionReservoir
from resight.index.rows.row_files import Rows, RowWriter, measure_folder, open_rows
from resight.index.rows.scoring import Match
from resight.plugins import check_range
from resight.types import Descriptors, FloatArray, Ranking


@dataclass(frozen=True)
class Config:
    m: int = 0  # parts of a row; 0: as many as divide it and take 64 bytes at most
    nlist: int = 4096  # 0: 4 √rows; never more than a 39th of the sample
    nbits: int = 0  # of each part; 0: 8, or 4 with fast
    nprobe: int = 64  # lists that a search looks into
    dimensions: int = 0  # to which rows are whitened and cut before they are coded; 0: as they are
    power: float = 0.25  # of the whitening
    rotation: bool = False  # OPQ
    fast: bool = False  # 4-bit fast scan
    train_on: Literal["all", "L0", "L1", "L2", "L3"] = "all"  # each with the coarser ones
    train_branch: int | None = None  # None: its own rows
    train_rows: int = 200_000  # at most
    keep: Literal["none", "fp16"] = "fp16"  # on disk
    refine: int = 4
    match: Literal["best", "mean"] | None = None  # how several rows of a query are put together; None: they are refused
    seed: int = 0

    def __post_init__(self) -> None:
        check_range("m", self.m, 0, 4096)
        check_range("nlist", self.nlist, 0, 10_000_000)
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
                "fast scan has 4 bits a part",
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
        sample = self._gather(chunks, folder, training)
        config = self._config
        bits = config.nbits or (4 if config.fast else 8)
        rows = len(open_rows(folder))
        turn = leave(sample.shape[1])
        if config.dimensions:
            turn = learn_whitening(sample, config.dimensions, config.power)
        turned = turn.apply(sample)
        layout = plan(turned.shape[1], rows, len(sample), config.m, bits, config.nlist, config.fast)
        if config.rotation and (rotation := learn_rotation(layout, turned)) is not None:
            turn = turn.then(rotation)
        lists = train_lists(layout, turn.apply(sample), config.seed)
        del sample, turned
        for chunk in chunks():
            lists.add(turn.apply(np.asarray(chunk.vectors, np.float32)))
        save_turn(turn, folder)
        faiss.write_index(lists, str(folder / "lists.faiss"))
        if layout.kind == "flat":  # the lists hold the rows themselves
            (folder / "vectors.npy").unlink(missing_ok=True)
        (folder / "layout.json").write_text(json.dumps(asdict(layout)), encoding="utf-8")
        return self.open(folder)

    def _gather(self, chunks: Chunks, folder: Path, training: Chunks | None) -> FloatArray:
        """The sample [n, D]; what lies beside the lists is written."""
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
        layout = Layout(**json.loads((folder / "layout.json").read_text(encoding="utf-8")))
        rows = open_rows(folder)
        kept = None
        if self._config.keep == "fp16" and layout.kind != "flat":
            kept = np.load(folder / "vectors.npy", mmap_mode="r")
        finder = ListFinder(folder / "lists.faiss", load_turn(folder), self._config.nprobe, kept)
        if len(finder) != len(rows) or (kept is not None and len(kept) != len(rows)):
            raise CollectionError(
                f"the index in {folder} is damaged", expected=f"{len(rows)} rows", fix="remove it: it is made again"
            )
        refine = 0 if kept is None else self._config.refine
        in_memory = (folder / "lists.faiss").stat().st_size + rows.offsets.nbytes
        return IvfpqSearcher(rows, finder, layout, self._config.match, refine, in_memory, measure_folder(folder))


class IvfpqSearcher:
    def __init__(
        self,
        rows: Rows,
        finder: ListFinder,
        layout: Layout,
        match: Match | None,
        refine: int,
        bytes_in_memory: int,
        bytes_on_disk: int,
    ) -> None:
        self._rows = rows
        self._finder = finder
        self._match = match
        self._refine = refine
        self.layout = layout
        self.bytes_in_memory = bytes_in_memory  # of the lists when all have been looked into, without the kept rows
        self.bytes_on_disk = bytes_on_disk

    def search(self, query: Descriptors, k: int, allowed: frozenset[str] | None = None) -> Ranking:
        return search_images(self._finder, self._rows, query, k, allowed, self._match, self._refine)

    @property
    def bytes_uncompressed(self) -> int:
        """What the rows take in float32."""
        return 4 * len(self._rows) * self._finder.dimensions
