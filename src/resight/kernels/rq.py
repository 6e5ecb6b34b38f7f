"""Residual quantisation: a token is the sum of one centroid from each of m books, stored as their m numbers.

    x ≈ c_1[n_1] + … + c_m[n_m]        book j is learnt from the residuals of books 1 to j - 1
    ⟨q, x⟩ ≈ t_1[n_1] + … + t_m[n_m]    t_j[n] = ⟨q, c_j[n]⟩, a table of 256 entries for each query token and book

A token takes m bytes, an image of 32 tokens 96 at m = 3. Rough scores of a million images take tens of milliseconds;
they choose the images that finer codes then compare. Unlike in product codes, each number describes the whole token, so
a few suffice; and a table entry is one byte, so one instruction looks up 32 query tokens at once. All tables share one
rounding step, chosen so that no sum exceeds 255. Y. Chen, T. Guan, C. Wang, Approximate nearest
neighbor search by residual vector quantization, 2010; centroids as a first pass of late interaction are those of
K. Santhanam et al., PLAID, 2022.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from resight import kmeans
from resight.kernels import dispatch
from resight.kernels.codec import Plan, Rows, bound_by_tables, update_largest
from resight.plugins import check_range
from resight.types import FloatArray

ENTRIES = 256  # centroids per book
LARGEST_SUM = 255


@dataclass(frozen=True)
class Config:
    m: int = 3  # books; the tables of up to three stay in the first-level cache beside the codes
    sample: int = 65_536  # training tokens
    rounds: int = 10
    seed: int = 0

    def __post_init__(self) -> None:
        check_range("m", self.m, 1, 32)


def begin(plan: Plan, config: Config) -> "RqFiller":
    random = np.random.default_rng(config.seed)
    sample = plan.draw(np.sort(random.permutation(plan.tokens)[: config.sample]))
    return RqFiller(plan, train(sample, config.m, config.rounds, random))


class RqFiller:
    def __init__(self, plan: Plan, centroids: FloatArray) -> None:
        self._offsets, self._centroids = plan.offsets, centroids
        self._numbers = plan.allocate("rq.numbers", (plan.tokens, len(centroids)), np.uint8)
        self._errors, self._lengths = (np.zeros(len(plan.offsets) - 1, np.float32) for _ in range(2))

    def fill(self, rows: Rows, tokens: FloatArray) -> None:
        numbers, rest = encode(tokens, self._centroids)
        self._numbers[rows] = numbers
        update_largest(self._errors, self._offsets, rows, np.linalg.norm(rest, axis=1))
        lengths = np.maximum(np.linalg.norm(tokens, axis=1), np.linalg.norm(tokens - rest, axis=1))
        update_largest(self._lengths, self._offsets, rows, lengths)

    def finish(self) -> "Rq":
        return Rq(self._numbers, self._centroids, self._errors, self._lengths, self._offsets)


def restore(arrays: dict[str, NDArray[Any]], offsets: NDArray[np.int64]) -> "Rq":
    return Rq(**arrays, offsets=offsets)


@dataclass(frozen=True)
class Rq:
    numbers: NDArray[np.uint8]  # [n, m]
    centroids: FloatArray  # [m, entries, d]
    errors: FloatArray  # [N] the largest |x - its centroids| in the image
    lengths: FloatArray  # [N] length of the longest token or sum of centroids
    offsets: NDArray[np.int64]
    kind: ClassVar[str] = "rq"

    @property
    def d(self) -> int:
        return int(self.centroids.shape[2])

    def scores(self, query: FloatArray, rows: NDArray[np.int64] | None, threads: int | None) -> FloatArray:
        tables, step, lowest, _ = self.make_tables(query)
        return dispatch.maxsim_rq(
            tables, step / len(query), float(lowest.mean()), self.numbers, self.offsets, rows, threads
        )

    def radius(self, query: FloatArray) -> FloatArray:
        _, _, _, rounding = self.make_tables(query)
        return bound_by_tables(query, rounding, self.errors, self.lengths)

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {name: getattr(self, name) for name in ("numbers", "centroids", "errors", "lengths")}

    def make_tables(self, query: FloatArray) -> tuple[NDArray[np.uint8], float, FloatArray, FloatArray]:
        """Entries [Kq, m, entries], their step; per query token: the constant to add, the largest rounding error."""
        books, entries, d = self.centroids.shape
        exact = (query @ self.centroids.reshape(-1, d).T).reshape(len(query), books, entries)
        low, high = exact.min(axis=2, keepdims=True), exact.max(axis=2, keepdims=True)
        # Rounding adds at most half a step per book.
        step = max(float((high - low).sum(axis=1).max()) / (LARGEST_SUM - books), 1e-37)
        integers = np.rint((exact - low) / np.float32(step))
        rounding = np.abs(exact - low - integers * np.float32(step)).max(axis=2).sum(axis=1)
        return integers.astype(np.uint8), step, low.sum(axis=(1, 2)), rounding


def train(sample: FloatArray, m: int, rounds: int, random: np.random.Generator) -> FloatArray:
    """Books [m, entries, d], each learnt from the residuals of those before it."""
    books, rest = [], sample
    for _ in range(m):
        books.append(kmeans.lloyd(rest, min(ENTRIES, len(rest)), rounds, random))
        rest = rest - books[-1][kmeans.assign(rest, books[-1])]
    return np.stack(books)


def encode(tokens: FloatArray, centroids: FloatArray) -> tuple[NDArray[np.uint8], FloatArray]:
    """Numbers [n, m], and the final residuals [n, d]."""
    numbers, rest = np.empty((len(tokens), len(centroids)), np.uint8), tokens
    for part, book in enumerate(centroids):
        numbers[:, part] = kmeans.assign(rest, book)
        rest = rest - book[numbers[:, part]]
    return numbers, rest
