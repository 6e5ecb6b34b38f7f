"""A pack with error bounds and the tokens behind it → the fp32 top k, and why no other image can be in it.

Every image has a score s and a radius r: its fp32 score lies in s - r … s + r. Some promising images are scored in
fp32; the k-th best of them is a threshold. An image with s + r below the threshold cannot enter; all others are
scored in fp32 as well.

Tokens of many images, packed for search: scores, the best k, proven if wanted, and files.

Passes from rough to fine: each scores what the one before has kept. Fast, not proven; the identity rate is measured.

small = kernels.pack(tokens, offsets, kind="int8", dims=64)
whole = kernels.pack(tokens, offsets, kind="int8")
found = kernels.cascade([(small, 1000), (whole, 30)])
rows, scores, _ = found.top(query, 10)
kernels.identity_rate(found, queries, 10)             # 0.99: of 100 queries, 99 get the exact top 10
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
from resight.kernels.fp32 import keep_as_given
from resight.kernels.select import best_rows, kth_best
from resight.kernels.validation import admit_query, admit_rows, admit_tokens
from resight.types import FloatArray

LOWEST = float(np.finfo(np.float32).min)  # above minus infinity, which images without tokens score


@dataclass(frozen=True)
class Certificate:
    images: int  # with at least one token
    rescored: int  # of them, scored in full precision
    threshold: float  # the k-th best score; minus infinity when there are fewer images
    margin: float  # how far below it every other image stays at least; infinity when none is left
    reason: str


def prove(
    codes: Codes, reference: Codes, query: FloatArray, k: int, threads: int | None
) -> tuple[NDArray[np.int64], FloatArray, Certificate]:
    """Rows [≤ k], their scores by `reference`, and the certificate."""
    rough = codes.scores(query, None, threads)
    highest = rough + codes.radius(query)
    images = int(np.count_nonzero(np.diff(codes.offsets)))
    first = best_rows(rough, 2 * k + 8)
    scores = reference.scores(query, first, threads)
    highest[first] = -np.inf  # done with
    doubtful = np.flatnonzero(highest >= max(kth_best(scores, k), LOWEST))
    highest[doubtful] = -np.inf
    rows = np.concatenate([first, doubtful])
    scores = np.concatenate([scores, reference.scores(query, doubtful, threads)])
    order = np.lexsort((rows, -scores))[:k]
    threshold = kth_best(scores, k)
    left = float(highest.max()) if len(highest) else -np.inf
    return rows[order], scores[order], certify(images, len(rows), threshold, left, reference.kind)


def certify_all(scores: FloatArray, k: int, kind: str) -> Certificate:
    """For tokens that are compared as they are: there is nothing to prove."""
    images = int(np.count_nonzero(scores > -np.inf))
    reason = f"All {images:,} images were scored in {kind}."
    return Certificate(images, images, kth_best(scores[scores > -np.inf], k), float("inf"), reason)


def certify(images: int, rescored: int, threshold: float, left: float, kind: str) -> Certificate:
    """left: the highest that an image can score which was not scored in `kind`."""
    if rescored == images:
        return Certificate(images, images, threshold, float("inf"), f"All {images:,} images were scored in {kind}.")
    margin = threshold - left
    reason = (
        f"{rescored:,} of {images:,} images were scored in {kind}. The {images - rescored:,} others cannot reach "
        f"{threshold:.6g}: their compressed scores and error bounds keep them at least {margin:.3g} below."
    )
    return Certificate(images, rescored, threshold, margin, reason)


Top = tuple[NDArray[np.int64], FloatArray, Certificate | None]
SHARED = ("centroids", "centre", "basis", "reach")  # once a pack, however many images


def pack(
    tokens: ArrayLike,
    offsets: ArrayLike,
    kind: str = "int8",
    keep: Literal["fp32", "fp16", "none"] = "fp32",
    scratch: str | Path | None = None,
    **settings: Any,
) -> "Packed":
    """tokens [n, d] of images offsets[i]:offsets[i + 1], as fp32, fp16, int8, pq or rq.

    `keep` says what exact answers are taken from: the tokens as given (a reference, not a copy), a copy in half
    precision, or nothing. `scratch` is a folder for the large arrays, where memory is not to hold them. `settings` are
    those of the kind's `Config`.
    """
    module = find_kind(kind)
    if keep not in ("fp32", "fp16", "none"):
        raise InputError("keep cannot be that", expected="fp32, fp16 or none", actual=repr(keep), fix="choose one")
    config = plugins.configure(module.Config, settings, f"kernels {kind!r}")
    rows, bounds = admit_tokens(tokens, offsets)
    allocate = in_memory if scratch is None else in_folder(Path(scratch))
    if kind == "fp32":
        return Packed(keep_as_given(rows, bounds), None)
    reference: Codes | None = None
    if keep != "none" and kind != keep:
        kept = find_kind(keep)
        given = keep == "fp32"
        reference = keep_as_given(rows, bounds) if given else fill_from(kept, rows, bounds, kept.Config(), allocate)
        rows = reference.arrays()["tokens"]  # error bounds are about what the exact answer is taken from
    return Packed(fill_from(module, rows, bounds, config, allocate), reference)


@dataclass(frozen=True)
class Packed:
    codes: Codes
    reference: Codes | None  # fp32 or fp16 tokens, where the codes are something else

    @property
    def kind(self) -> str:
        return self.codes.kind

    @property
    def bytes_an_image(self) -> float:
        """Of the codes and their bounds; without the kept tokens and what all images share."""
        own = sum(array.nbytes for name, array in self.codes.arrays().items() if name not in SHARED)
        return (own + self.codes.offsets.nbytes) / max(len(self), 1)

    def __len__(self) -> int:
        return len(self.codes.offsets) - 1

    def scores(self, query: ArrayLike, rows: ArrayLike | None = None, threads: int | None = None) -> FloatArray:
        """[N] float32, or one a row: the mean over query tokens [Kq, d] of the best dot product.

        An image without tokens scores minus infinity. threads: at most so many (None: all cores); small work takes one.
        """
        return self.codes.scores(admit_query(query, self.codes.d), admit_rows(rows, len(self)), threads)

    def errors(self, query: ArrayLike) -> FloatArray:
        """[N]: how far `scores` can be from those of the kept tokens."""
        return self.codes.radius(admit_query(query, self.codes.d))

    def exact_scores(self, query: ArrayLike, rows: ArrayLike | None = None, threads: int | None = None) -> FloatArray:
        """The same as `scores`, by the kept tokens."""
        wanted = admit_rows(rows, len(self))
        return self.exact_codes().scores(admit_query(query, self.codes.d), wanted, threads)

    def top(self, query: ArrayLike, k: int, exact: bool = True, threads: int | None = None) -> Top:
        """Rows and scores of the best k, equal scores by row, fewer when fewer images have tokens.

        exact: the answer that the kept tokens give, with its certificate. Otherwise that of the codes, without one.
        """
        tokens = admit_query(query, self.codes.d)
        if k < 0:
            raise InputError("k cannot be negative", expected="0 or more", actual=str(k), fix="ask for at least one")
        if exact and self.exact_codes() is not self.codes:
            return prove(self.codes, self.exact_codes(), tokens, k, threads)
        scores = self.codes.scores(tokens, None, threads)
        rows = best_rows(scores, k)
        return rows, scores[rows], certify_all(scores, k, self.kind) if exact else None

    def save(self, folder: str | Path, scratch: str | Path | None = None) -> None:
        """Write to a folder that `kernels.open` maps again. Arrays in files of `scratch` are moved out of it."""
        from resight.kernels.pack_files import save  # it restores packs, and so needs this module

        save(self, Path(folder), None if scratch is None else Path(scratch))

    @property
    def can_prove(self) -> bool:
        """Whether there are tokens that an exact answer can be taken from."""
        return self.reference is not None or self.kind in ("fp32", "fp16")

    def exact_codes(self) -> Codes:
        if self.reference is not None:
            return self.reference
        if self.kind in ("fp32", "fp16"):
            return self.codes
        raise InputError(
            "this pack has nothing to prove an exact answer with",
            expected="the tokens that it was made from",
            actual=f"a pack of kind {self.kind} made with keep='none'",
            fix="pack with keep='fp32' or keep='fp16', or ask with exact=False",
        )


def cascade(passes: Sequence[tuple[Packed, int]]) -> "Cascade":
    """Packs of the same images, each with how many images it keeps; the last one's kept tokens decide, or its codes
    where none are kept."""
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


def identity_rate(searcher: "Packed | Cascade", queries: Iterable[ArrayLike], k: int) -> float:
    """The share of queries whose unproven top k is the exact one, rank by rank."""
    exact = searcher if isinstance(searcher, Packed) else searcher.passes[-1][0]
    rough: Searcher = Unproven(searcher) if isinstance(searcher, Packed) else searcher
    same = [np.array_equal(rough.top(query, k)[0], exact.top(query, k)[0]) for query in queries]
    if not same:
        raise InputError("there is no query to measure with", expected="at least one", actual="none", fix="give some")
    return float(np.mean(same))


@dataclass(frozen=True)
class Cascade:
    passes: tuple[tuple[Packed, int], ...]

    def top(self, query: ArrayLike, k: int, threads: int | None = None, among: ArrayLike | None = None) -> Top:
        """Rows and scores of the best k that got through all passes; never a certificate. among: of these rows only."""
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
