"""Late interaction (MaxSim): many tokens per image, packed for the kernels.

Score: (1/Kq) Σ_i max_j ⟨q_i, x_j⟩; an image without tokens scores 0. Three ways to search:

    exact      compressed codes select images, the stored tokens score these again, and a proof shows that no other
               image can score higher
    cascade    a first pass scores every image by few dimensions or residual codes, a second scores the best of these by
               their codes, and the stored tokens, if any, score the best of those; residual codes serve collections
               larger than memory
    neither    the codes alone

The last two are faster but not proven; `resight exactness` measures how often they give the exact answer. On disk:
pack/ and, for a cascade, small/ (both mapped), and images.json. Rows lie in the order of the ids, so that the ids
order equal scores.
"""

import json
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
from threadpoolctl import threadpool_limits

from resight import kernels, topk
from resight.errors import RecipeError, SpaceMismatch
from resight.files.documents import load_json
from resight.index import Chunks
from resight.index._tokens import Contents, choose_training, measure, number_tokens, read_tokens
from resight.index.rows.row_files import damaged_index
from resight.kernels import pack_files
from resight.plugins import check_range
from resight.types import Descriptors, FloatArray, IntArray, Ranking


@dataclass(frozen=True)
class Config:
    kind: Literal["fp32", "fp16", "int8", "pq"] = "int8"  # how tokens are coded; pq: product quantisation
    keep: Literal["fp32", "fp16", "none"] = "fp32"  # full tokens stored beside the codes, for exact scores
    exact: bool | None = None  # give only answers that are proven exact; None: if the settings allow a proof
    plain: bool = False  # int8: one scale per token and no more, d + 4 bytes; else centred on the mean token, d + 8
    m: int = 0  # pq: parts per token; 0: a quarter of the dimensions
    bits: Literal[4, 8] = 4  # pq: bits per part
    train_images: int = 1000  # pq: most images to learn the codes from
    train_on: str = "*"  # pq: learn only from images whose id matches this pattern, with * and ?
    seed: int = 0  # pq: random seed of the training
    cascade: bool = False  # search in several passes: faster, not proven exact
    cascade_dims: int = 64  # cascade: dimensions that the first pass compares
    cascade_books: int = 0  # cascade: first pass by residual codes of this many bytes per token; 0: by cascade_dims
    cascade_keep: tuple[int, ...] = (1000, 30)  # cascade: images that the first and the second pass keep

    def __post_init__(self) -> None:
        check_settings(self)

    @property
    def kept(self) -> bool:
        """Whether the index stores tokens that can give an exact answer."""
        return self.keep != "none" or self.kind in ("fp32", "fp16")

    @property
    def proves(self) -> bool:
        return not self.cascade and self.kept and self.exact is not False


def check_settings(config: Config) -> None:
    check_range("m", config.m, 0, 1024)
    check_range("train_images", config.train_images, 1, 10_000_000)
    check_range("seed", config.seed, 0, 2**32)
    check_range("cascade_dims", config.cascade_dims, 1, 1_000_000)
    check_range("cascade_books", config.cascade_books, 0, 32)
    for count in config.cascade_keep:
        check_range("cascade_keep", count, 1, 1_000_000_000)
    if len(config.cascade_keep) != 2 or config.cascade_keep[0] < config.cascade_keep[1]:
        raise RecipeError(
            "cascade_keep does not fit",
            expected="two numbers, the second not larger: what the first pass keeps, and what the second keeps of it",
            actual=str(list(config.cascade_keep)),
            fix="e.g. cascade_keep = [1000, 30]",
        )
    # A recipe that sets parts or training means pq; without this error a forgotten `kind` would go unnoticed.
    for kind, names in (("pq", ("m", "bits", "train_images", "train_on")), ("int8", ("plain",))):
        unused = [name for name in names if getattr(config, name) != getattr(Config, name)]
        if config.kind != kind and unused:
            raise RecipeError(
                f"{', '.join(unused)} would have no effect",
                expected=f'kind = "{kind}", which these settings belong to',
                actual=f'kind = "{config.kind}"',
                fix=f'set kind = "{kind}", or leave out {", ".join(unused)}',
            )
    if config.exact and config.cascade:
        raise RecipeError(
            "a cascade cannot be exact",
            expected="one of exact = true (proven) and cascade = true (faster, not proven)",
            actual="both",
            fix="leave out one of them, or set it to false",
        )
    if config.cascade_books and config.cascade_dims != Config.cascade_dims:
        raise RecipeError(
            "the first pass of the cascade is given twice",
            expected="cascade_dims (few dimensions) or cascade_books (residual codes)",
            actual="both",
            fix="leave out one of them",
        )
    if not config.kept and config.exact:
        raise RecipeError(
            "an exact answer needs stored tokens",
            expected='keep = "fp32" or keep = "fp16"',
            actual=f'kind = "{config.kind}", keep = "none"',
            fix='leave out keep = "none", or leave out exact = true',
        )


def check_dimensions(dims: int, most: int) -> int:
    if dims > most:
        raise RecipeError(
            "the first pass of the cascade has too many dimensions",
            expected=f"cascade_dims of at most {most}, the dimensions of a token",
            actual=str(dims),
            fix="set cascade_dims to fewer, e.g. a quarter",
        )
    return dims


def build(config: Config) -> "MaxSim":
    return MaxSim(config)


class MaxSim:
    def __init__(self, config: Config) -> None:
        self._config = config

    @property
    def divisible(self) -> bool:
        """Only if uncompressed tokens give the scores: codes are learnt, and a cascade compares all images."""
        return not self._config.cascade and (self._config.proves or self._config.kind in ("fp32", "fp16"))

    @property
    def splittable(self) -> bool:
        """Only if every token has its own codes: pq stores them in blocks, and a cascade compares all images."""
        return not self._config.cascade and self._config.kind in pack_files.DIVISIBLE_KINDS

    def write_subset(self, source: Path, folder: Path, keep: Callable[[str], bool]) -> int:
        table = load_json((source / "images.json").read_text(encoding="utf-8"))
        images = np.array([row for row, name in enumerate(table["ids"]) if keep(name)], np.int64)
        pack_files.save_subset(*pack_files.load_codes(source / "pack"), images, folder / "pack")
        kept = {"space": table["space"], "ids": [table["ids"][row] for row in images]}
        (folder / "images.json").write_text(json.dumps(kept), encoding="utf-8")
        return len(images)

    def create(self, chunks: Chunks, folder: Path) -> "MaxSimSearcher":
        contents = measure(chunks)
        with threadpool_limits(1, "blas"):  # a second thread would mostly spin
            self._write_packs(chunks, contents, folder)
        table = {"space": contents.space, "ids": contents.ids}
        (folder / "images.json").write_text(json.dumps(table), encoding="utf-8")
        return self.open(folder)

    def _write_packs(self, chunks: Chunks, contents: Contents, folder: Path) -> None:
        writers = self._start_packs(chunks, contents, folder)
        with ThreadPoolExecutor(len(writers)) as pool:
            for rows, tokens in number_tokens(chunks, contents):
                for written in [pool.submit(writer.write, rows, tokens) for writer in writers]:
                    written.result()
        for writer in writers:
            writer.finish()

    def _start_packs(self, chunks: Chunks, contents: Contents, folder: Path) -> list[kernels.PackWriter]:
        config, offsets, d = self._config, contents.offsets, contents.dimensions

        def draw(rows: IntArray) -> FloatArray:
            """Tokens to learn from: for pq those of the chosen images, for other kinds the random sample."""
            return read_tokens(chunks, contents, rows) if config.kind == "pq" else contents.sample[: len(rows)]

        if not offsets[-1]:  # no tokens, so no codes to learn
            return [kernels.PackWriter(folder / "pack", offsets, d, "fp32", "none", draw)]
        settings: dict[str, Any] = {}
        if config.kind == "pq":
            images = choose_training(contents, config.train_on, config.train_images, config.seed)
            settings = {"m": config.m, "bits": config.bits, "images": images, "seed": config.seed}
        elif config.kind == "int8":
            settings = {"plain": config.plain}
        packs = [kernels.PackWriter(folder / "pack", offsets, d, config.kind, config.keep, draw, **settings)]
        if config.cascade and config.cascade_books:
            small: dict[str, Any] = {"kind": "rq", "m": config.cascade_books}
        elif config.cascade:
            small = {"kind": "int8", "dims": check_dimensions(config.cascade_dims, d)}
        else:
            return packs
        return [*packs, kernels.PackWriter(folder / "small", offsets, d, keep="none", draw=draw, **small)]

    def open(self, folder: Path) -> "MaxSimSearcher":
        table = load_json((folder / "images.json").read_text(encoding="utf-8"))
        packed = kernels.open(folder / "pack")
        ids = table["ids"] if isinstance(table, dict) else []
        if not isinstance(table, dict) or len(ids) != len(packed):
            raise damaged_index(folder, f"{len(packed)} ids", f"{len(ids)} ids")
        first, second = self._config.cascade_keep
        cascade = None
        if self._config.cascade and packed.codes.offsets[-1]:
            cascade = kernels.cascade([(kernels.open(folder / "small"), first), (packed, second)])
        return MaxSimSearcher(table["ids"], table["space"], packed, self._config.proves, cascade)


class MaxSimSearcher:
    def __init__(
        self,
        ids: Sequence[str],
        space: str,
        packed: kernels.Packed,
        proves: bool,
        cascade: kernels.Cascade | None = None,
    ) -> None:
        self._ids = ids
        self._space = space
        self._packed = packed
        self._proves = proves
        self._cascade = cascade
        self._without_tokens = np.diff(packed.codes.offsets) == 0  # [N] images without tokens

    def search(self, query: Descriptors, k: int, allowed: frozenset[str] | None = None) -> Ranking:
        rows = None if allowed is None else self._find_rows(allowed)
        if self._proves or not self.is_compressed:  # uncompressed tokens need no proof
            return self.prove(query, k, rows)[0]
        return self.approximate(query, k, rows)

    def prove(
        self, query: Descriptors, k: int, rows: IntArray | None = None
    ) -> tuple[Ranking, kernels.Certificate | None]:
        """The exact answer and its proof. If `rows` are given, the stored tokens score all of them."""
        if self._lacks_tokens(query):
            return self._rank_zeros(query, k, rows), None
        if rows is None:
            found, scores, certificate = self._packed.top(query.vectors, k)
            return self._rank(query, found, scores, k, rows, certificate.reason if certificate else ""), certificate
        scores = self._packed.exact_scores(query.vectors, rows)
        proof = f"All {len(rows):,} images that were allowed were scored in {self._packed.exact_codes().kind}."
        return self._rank(query, rows, scores, k, rows, proof), None

    def approximate(self, query: Descriptors, k: int, rows: IntArray | None = None) -> Ranking:
        """The answer of the cascade if there is one, else of the codes alone."""
        if self._lacks_tokens(query):
            return self._rank_zeros(query, k, rows)
        if self._cascade is not None:
            found, scores, _ = self._cascade.top(query.vectors, k, among=rows)
            return self._rank(query, found, scores, k, rows, self._warn())
        found = np.arange(len(self._ids)) if rows is None else rows
        scores = self._packed.scores(query.vectors, rows)
        return self._rank(query, found, scores, k, rows, self._warn())

    @property
    def bytes_per_image(self) -> float:
        """Bytes of the codes that a search reads, without stored tokens and code books."""
        passes = [packed for packed, _ in self._cascade.passes] if self._cascade else [self._packed]
        return sum(packed.bytes_per_image for packed in passes)

    @property
    def bytes_per_token(self) -> float:
        """The same per token, without error bounds and offsets, which belong to images."""
        passes = [packed for packed, _ in self._cascade.passes] if self._cascade else [self._packed]
        return sum(packed.bytes_per_token for packed in passes)

    @property
    def approximation(self) -> str:
        """The method of `approximate`, for messages."""
        return "a cascade" if self._cascade else f"{self._packed.kind} codes alone"

    @property
    def is_compressed(self) -> bool:
        """Whether `approximate` can differ from `prove`."""
        return self._cascade is not None or self._packed.reference is not None or not self._packed.can_prove

    @property
    def can_prove(self) -> bool:
        return self._packed.can_prove

    @cached_property
    def _row_of_id(self) -> dict[str, int]:
        return {name: row for row, name in enumerate(self._ids)}

    def _find_rows(self, allowed: frozenset[str]) -> IntArray:
        rows = self._row_of_id
        return np.sort(np.array([rows[name] for name in allowed if name in rows], np.int64))

    def _warn(self) -> str:
        if not self.is_compressed:
            return ""
        return (
            f"Not proven: this is the answer of {self.approximation}; "
            "`resight exactness` measures how often it is the exact one."
        )

    def _lacks_tokens(self, query: Descriptors) -> bool:
        """Whether the query or all images lack tokens; a query from another space is refused."""
        if query.space and self._space and query.space != self._space:
            raise SpaceMismatch(
                "the query is encoded differently from the images",
                expected=self._space,
                actual=query.space,
                fix="encode the query with the recipe of the collection",
            )
        return len(query.vectors) == 0 or bool(self._without_tokens.all())

    def _rank_zeros(self, query: Descriptors, k: int, rows: IntArray | None) -> Ranking:
        """Every image scores 0, because there is nothing to compare."""
        count = len(self._ids) if rows is None else len(rows)
        return topk.best(query.ids[0], self._ids, np.zeros(count, np.float32), k, rows)

    def _rank(
        self, query: Descriptors, found: IntArray, scores: FloatArray, k: int, rows: IntArray | None, proof: str
    ) -> Ranking:
        """The best k of the found images and of those without tokens, whose 0 may beat negative scores."""
        bare = (np.flatnonzero(self._without_tokens) if rows is None else rows[self._without_tokens[rows]])[:k]
        scored = scores > -np.inf
        found = np.concatenate([found[scored], bare])
        scores = np.concatenate([scores[scored], np.zeros(len(bare), np.float32)])
        return replace(topk.best(query.ids[0], self._ids, scores, k, found), proof=proof)
