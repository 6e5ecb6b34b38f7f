"""Passes from rough to fine: each scores what the one before has kept. Fast, not proven; the identity rate is measured.

small = kernels.pack(tokens, offsets, kind="int8", dims=64)
whole = kernels.pack(tokens, offsets, kind="int8")
found = kernels.cascade([(small, 1000), (whole, 30)])
rows, scores, _ = found.top(query, 10)
kernels.identity_rate(found, queries, 10)             # 0.99: of 100 queries, 99 get the exact top 10
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from resight.errors import InputError
from resight.kernels.packed import Packed, Top
from resight.kernels.select import best_rows


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
