"""Tokens of many images, packed for search: scores, the best k with a proof, cascades, and folders on disk.

whole = kernels.pack(tokens, offsets, kind="int8")
rows, scores, certificate = whole.top(query, 10)      # the full-precision top 10, proven

small = kernels.pack(tokens, offsets, kind="int8", dims=64)
found = kernels.cascade([(small, 1000), (whole, 30)])
rows, scores, _ = found.top(query, 10)                # faster, not proven
kernels.exactness_rate(found, queries, 10)            # 0.99: of 100 queries, 99 get the exact top 10
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from resight import plugins
from resight.errors import InputError
from resight.kernels.allocation import in_folder, in_memory
from resight.kernels.codec import Codes, fill_from, find_kind
from resight.kernels.exact_topk import Certificate, best_rows, certify_all, prove
from resight.kernels.fp32 import keep_as_given
from resight.kernels.pack_files import PER_IMAGE, load_codes, save
from resight.kernels.validation import validate_query, validate_rows, validate_tokens
from resight.types import FloatArray

Top = tuple[NDArray[np.int64], FloatArray, Certificate | None]
SHARED = ("centroids", "centre", "basis", "reach")  # stored once per pack, however many images


def pack(
    tokens: ArrayLike,
    offsets: ArrayLike,
    kind: str = "int8",
    keep: Literal["fp32", "fp16", "none"] = "fp32",
    scratch: str | Path | None = None,
    **settings: Any,
) -> "Packed":
    """Compress the tokens of many images for search.

    Args:
        tokens: [n, d] the tokens of all images.
        offsets: [N + 1] image i owns the rows offsets[i]:offsets[i + 1].
        kind: The compression: fp32, fp16, int8, pq or rq.
        keep: The tokens that exact answers use: those given (by reference, not copied), a half-precision copy, or none.
        scratch: A folder for large arrays that should not be held in memory.
        **settings: Settings of the kind.

    Returns:
        The pack.

    Raises:
        InputError: The tokens or offsets cannot be used, or the kind or `keep` is unknown.
        RecipeError: A setting is unknown or invalid.

    Examples:
        >>> import numpy as np
        >>> from resight import kernels
        >>> tokens = np.random.default_rng(0).normal(size=(600, 16)).astype(np.float32)
        >>> packed = kernels.pack(tokens, np.arange(0, 601, 6), kind="int8")
        >>> rows, scores, certificate = packed.top(tokens[42:48], k=3)
        >>> int(rows[0]), certificate.images
        (7, 100)
    """
    module = find_kind(kind)
    if keep not in ("fp32", "fp16", "none"):
        raise InputError(
            "keep has an unknown value", expected="fp32, fp16 or none", actual=repr(keep), fix="choose one"
        )
    config = plugins.configure(module.Config, settings, f"kernels {kind!r}")
    rows, bounds = validate_tokens(tokens, offsets)
    allocate = in_memory if scratch is None else in_folder(Path(scratch))
    if kind == "fp32":
        return Packed(keep_as_given(rows, bounds), None)
    reference: Codes | None = None
    if keep != "none" and kind != keep:
        kept = find_kind(keep)
        given = keep == "fp32"
        reference = keep_as_given(rows, bounds) if given else fill_from(kept, rows, bounds, kept.Config(), allocate)
        rows = reference.arrays()["tokens"]  # error bounds are relative to the tokens that exact answers use
    return Packed(fill_from(module, rows, bounds, config, allocate), reference)


def open_pack(folder: str | Path, check: bool = False) -> "Packed":
    """Map a pack that `Packed.save` wrote into memory.

    Args:
        folder: The folder of the pack.
        check: Read all of it and compare checksums.

    Returns:
        The pack.

    Examples:
        >>> import numpy as np
        >>> from resight import kernels
        >>> tokens = np.eye(8, dtype=np.float32)
        >>> kernels.pack(tokens, [0, 3, 8]).save("tokens.pack")
        >>> len(kernels.open("tokens.pack"))
        2
    """
    return Packed(*load_codes(Path(folder), check))


@dataclass(frozen=True)
class Packed:
    """Tokens of many images, compressed for search; `len()` counts the images.

    Attributes:
        codes: The compressed tokens.
        reference: fp32 or fp16 tokens, if the codes are of another kind.
    """

    codes: Codes
    reference: Codes | None

    @property
    def kind(self) -> str:
        """The compression: fp32, fp16, int8, pq or rq."""
        return self.codes.kind

    @property
    def bytes_per_image(self) -> float:
        """Bytes of codes and error bounds per image, without the kept tokens and the arrays that all images share."""
        own = sum(array.nbytes for name, array in self.codes.arrays().items() if name not in SHARED)
        return (own + self.codes.offsets.nbytes) / max(len(self), 1)

    @property
    def bytes_per_token(self) -> float:
        """Bytes of codes per token, as papers count them: without what is stored once per image or per pack."""
        whole = (*SHARED, *PER_IMAGE, "bounds")
        own = sum(array.nbytes for name, array in self.codes.arrays().items() if name not in whole)
        return own / max(int(self.codes.offsets[-1]), 1)

    def __len__(self) -> int:
        return len(self.codes.offsets) - 1

    def scores(self, query: ArrayLike, rows: ArrayLike | None = None, threads: int | None = None) -> FloatArray:
        """Score images by late interaction: the mean over query tokens of the best dot product.

        Args:
            query: [Kq, d] the tokens of the query.
            rows: Row numbers of the images to score; default: all.
            threads: The most threads to use; default: all cores.

        Returns:
            [N] or [len(rows)] float32; an image without tokens scores minus infinity.
        """
        return self.codes.scores(validate_query(query, self.codes.d), validate_rows(rows, len(self)), threads)

    def errors(self, query: ArrayLike) -> FloatArray:
        """Bound the error of `scores`.

        Args:
            query: [Kq, d] the tokens of the query.

        Returns:
            [N] float32: the most by which `scores` differ from `exact_scores`.
        """
        return self.codes.radius(validate_query(query, self.codes.d))

    def exact_scores(self, query: ArrayLike, rows: ArrayLike | None = None, threads: int | None = None) -> FloatArray:
        """Score images by the kept tokens. Takes the same arguments as `scores`.

        Returns:
            [N] or [len(rows)] float32; an image without tokens scores minus infinity.
        """
        wanted = validate_rows(rows, len(self))
        return self.exact_codes().scores(validate_query(query, self.codes.d), wanted, threads)

    def top(self, query: ArrayLike, k: int, exact: bool = True, threads: int | None = None) -> Top:
        """Find the best k images; fewer if fewer images have tokens.

        Args:
            query: [Kq, d] the tokens of the query.
            k: The number of images.
            exact: Answer by the kept tokens, with a certificate; otherwise by the codes, without one.
            threads: The most threads to use; default: all cores.

        Returns:
            Row numbers, best first, equal scores by row; their scores; the certificate or None.

        Raises:
            InputError: `k` is negative, or the pack keeps no tokens and `exact` is set.
        """
        tokens = validate_query(query, self.codes.d)
        if k < 0:
            raise InputError("k cannot be negative", expected="0 or more", actual=str(k), fix="ask for at least one")
        if exact and self.exact_codes() is not self.codes:
            return prove(self.codes, self.exact_codes(), tokens, k, threads)
        scores = self.codes.scores(tokens, None, threads)
        rows = best_rows(scores, k)
        return rows, scores[rows], certify_all(scores, k, self.kind) if exact else None

    def save(self, folder: str | Path, scratch: str | Path | None = None) -> None:
        """Write to a folder that `kernels.open` maps into memory.

        Args:
            folder: The folder to write.
            scratch: The `scratch` folder of `pack`: its array files are moved, not copied.
        """
        save(self.codes, self.reference, Path(folder), None if scratch is None else Path(scratch))

    @property
    def can_prove(self) -> bool:
        """Whether the pack holds tokens that exact answers can use."""
        return self.reference is not None or self.kind in ("fp32", "fp16")

    def exact_codes(self) -> Codes:
        if self.reference is not None:
            return self.reference
        if self.kind in ("fp32", "fp16"):
            return self.codes
        raise InputError(
            "this pack cannot prove an exact answer",
            expected="a pack that keeps its tokens",
            actual=f"a pack of kind {self.kind} made with keep='none'",
            fix="pack with keep='fp32' or keep='fp16', or search with exact=False",
        )


def cascade(passes: Sequence[tuple[Packed, int]]) -> "Cascade":
    """Chain passes from rough to fine; faster than one exact pass, not proven.

    Args:
        passes: Packs of the same images, each with the number of images that it passes on. The last pass ranks by its
            kept tokens, or by its codes if it keeps none.

    Returns:
        The cascade.

    Raises:
        InputError: There is no pass, the packs hold different images, or a pass keeps no image.

    Examples:
        >>> import numpy as np
        >>> from resight import kernels
        >>> tokens = np.random.default_rng(0).normal(size=(600, 16)).astype(np.float32)
        >>> offsets = np.arange(0, 601, 6)
        >>> small = kernels.pack(tokens, offsets, kind="int8", dims=8)
        >>> found = kernels.cascade([(small, 50), (kernels.pack(tokens, offsets), 10)])
        >>> int(found.top(tokens[42:48], k=3)[0][0])
        7
    """
    if not passes:
        raise InputError("a cascade needs a pass", expected="at least one pack", actual="none", fix="give one")
    first = passes[0][0].codes
    for packed, keep in passes:
        if packed.codes.d != first.d or not np.array_equal(packed.codes.offsets, first.offsets):
            raise InputError(
                "the passes are over different images",
                expected=f"{len(passes[0][0])} images of {first.d} dimensions, with the same offsets",
                actual=f"{len(packed)} images of {packed.codes.d} dimensions",
                fix="make all packs from the same tokens and offsets",
            )
        if keep < 1:
            raise InputError("a pass keeps no image", expected="1 or more", actual=str(keep), fix="keep more")
    return Cascade(tuple(passes))


def exactness_rate(searcher: "Packed | Cascade", queries: Iterable[ArrayLike], k: int) -> float:
    """Measure how often the unproven top k equals the exact one, rank by rank.

    Args:
        searcher: A pack or a cascade.
        queries: The tokens [Kq, d] of each query.
        k: The number of images to compare.

    Returns:
        The share of queries with the same top k, 0 to 1.

    Raises:
        InputError: There is no query.

    Examples:
        >>> import numpy as np
        >>> from resight import kernels
        >>> tokens = np.random.default_rng(0).normal(size=(600, 16)).astype(np.float32)
        >>> packed = kernels.pack(tokens, np.arange(0, 601, 6), kind="fp16")
        >>> kernels.exactness_rate(packed, [tokens[:6], tokens[6:12]], k=1)
        1.0
    """
    exact = searcher if isinstance(searcher, Packed) else searcher.passes[-1][0]
    rough: Searcher = Unproven(searcher) if isinstance(searcher, Packed) else searcher
    same = [np.array_equal(rough.top(query, k)[0], exact.top(query, k)[0]) for query in queries]
    if not same:
        raise InputError("there is no query to measure", expected="at least one", actual="none", fix="give some")
    return float(np.mean(same))


@dataclass(frozen=True)
class Cascade:
    """Several passes, each over the images that the previous one passed on: fast, not proven.

    Attributes:
        passes: Packs of the same images, each with the number of images that it passes on.
    """

    passes: tuple[tuple[Packed, int], ...]

    def top(self, query: ArrayLike, k: int, threads: int | None = None, among: ArrayLike | None = None) -> Top:
        """Find the best k images after all passes.

        Args:
            query: [Kq, d] the tokens of the query.
            k: The number of images.
            threads: The most threads to use; default: all cores.
            among: Row numbers of the images to search; default: all.

        Returns:
            Row numbers, best first; their scores; None, for there is no certificate.
        """
        rows = None if among is None else np.unique(among)
        for packed, keep in self.passes:
            chosen = best_rows(packed.scores(query, rows, threads), max(keep, k))
            rows = np.sort(chosen if rows is None else rows[chosen])
        assert rows is not None
        last = self.passes[-1][0]
        scores = last.exact_scores(query, rows, threads) if last.can_prove else last.scores(query, rows, threads)
        order = best_rows(scores, k)  # rows are sorted, so equal scores stay in their order
        return rows[order], scores[order], None


class Searcher(Protocol):
    def top(self, query: ArrayLike, k: int, threads: int | None = None) -> Top: ...


@dataclass(frozen=True)
class Unproven:
    packed: Packed

    def top(self, query: ArrayLike, k: int, threads: int | None = None) -> Top:
        return self.packed.top(query, k, exact=False, threads=threads)
