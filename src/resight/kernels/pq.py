"""Product quantisation: a token is split into m parts, and each part is stored as the number of its nearest centroid.

m parts of 4 bits take m / 2 bytes per token, of 8 bits m bytes. A query token's dot products with all centroids make a
table; the score of a token is the sum of m entries. Tables are rounded to small integers (6 bits at 4 bits per part,
because a table must fit a register; 16 at 8). H. Jégou, M. Douze, C. Schmid, Product quantization for nearest
neighbor search, 2011; F. André, A.-M. Kermarrec, N. Le Scouarnec, Quicker ADC, 2019.

At 4 bits tokens lie in blocks of 32, and an image fills its last block by repeating a token.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from resight import kmeans
from resight.errors import InputError
from resight.kernels import dispatch
from resight.kernels.allocation import Allocate, in_memory
from resight.kernels.codec import Plan, Rows, bound_by_tables, update_largest
from resight.types import FloatArray

BLOCK = 32
MOST_PARTS = 1024  # 63 × 1024 fits 16 bits
DIVISIONS = {4: 63.0, 8: 32000.0}


@dataclass(frozen=True)
class Config:
    m: int = 0  # parts; 0: a quarter of the dimensions
    bits: Literal[4, 8] = 4
    sample: int = 20_000  # training tokens
    images: tuple[int, ...] = ()  # rows of the images to draw them from; empty: all
    rounds: int = 15
    seed: int = 0


def begin(plan: Plan, config: Config) -> "PqFiller":
    m = config.m or max(plan.d // 4, 1)
    if not 0 < m <= MOST_PARTS or plan.d % m:
        raise InputError(
            "tokens cannot be split into that many parts",
            expected=f"one of {', '.join(str(n) for n in range(1, min(plan.d, MOST_PARTS) + 1) if plan.d % n == 0)}",
            actual=f"m = {m} for {plan.d} dimensions",
            fix="set m to one of these",
        )
    return PqFiller(plan, config.bits, train(draw_sample(plan, config), m, config))


class PqFiller:
    def __init__(self, plan: Plan, bits: int, centroids: FloatArray) -> None:
        self._plan, self._bits, self._centroids = plan, bits, centroids
        self._codes = plan.allocate("pq.codes", (plan.tokens, len(centroids)), np.uint8)
        self._errors, self._lengths = (np.zeros(len(plan.offsets) - 1, np.float32) for _ in range(2))

    def fill(self, rows: Rows, tokens: FloatArray) -> None:
        m, offsets = len(self._centroids), self._plan.offsets
        codes = [kmeans.assign(take_part(tokens, part, m), self._centroids[part]) for part in range(m)]
        self._codes[rows] = np.stack(codes, axis=1)
        coded = np.concatenate([self._centroids[part][codes[part]] for part in range(m)], axis=1)
        update_largest(self._errors, offsets, rows, np.linalg.norm(tokens - coded, axis=1))
        lengths = np.maximum(np.linalg.norm(tokens, axis=1), np.linalg.norm(coded, axis=1))
        update_largest(self._lengths, offsets, rows, lengths)

    def finish(self) -> "Pq":
        offsets = self._plan.offsets
        codes, bounds = (
            (self._codes, offsets) if self._bits == 8 else fill_blocks(self._codes, offsets, self._plan.allocate)
        )
        return Pq(codes, bounds, self._centroids, self._errors, self._lengths, offsets)


def restore(arrays: dict[str, NDArray[Any]], offsets: NDArray[np.int64]) -> "Pq":
    return Pq(**arrays, offsets=offsets)


@dataclass(frozen=True)
class Pq:
    codes: NDArray[np.uint8]  # 8 bits: [n, m]; 4 bits: [blocks, m padded to a multiple of 4, 16]
    bounds: NDArray[np.int64]  # [N + 1] offsets into codes
    centroids: FloatArray  # [m, 2^bits, d / m]
    errors: FloatArray  # [N] the largest |x - its centroids| in the image
    lengths: FloatArray  # [N] length of the longest token
    offsets: NDArray[np.int64]
    kind: ClassVar[str] = "pq"

    @property
    def d(self) -> int:
        return int(self.centroids.shape[0] * self.centroids.shape[2])

    @property
    def bits(self) -> int:
        return 4 if self.centroids.shape[1] == 16 else 8

    def scores(self, query: FloatArray, rows: NDArray[np.int64] | None, threads: int | None) -> FloatArray:
        tables, steps, lowest, _ = self.make_tables(query)
        scales, biases = (steps / len(query)).astype(np.float32), (lowest / len(query)).astype(np.float32)
        padding = self.codes.shape[1] - tables.shape[1]
        tables = np.pad(tables, ((0, 0), (0, padding), (0, 0)))
        return dispatch.maxsim_pq(tables, scales, biases, self.codes, self.bits, self.bounds, rows, threads)

    def radius(self, query: FloatArray) -> FloatArray:
        _, _, _, rounding = self.make_tables(query)
        return bound_by_tables(query, rounding, self.errors, self.lengths)

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {name: getattr(self, name) for name in ("codes", "bounds", "centroids", "errors", "lengths")}

    def make_tables(self, query: FloatArray) -> tuple[NDArray[Any], FloatArray, FloatArray, FloatArray]:
        """Integers [Kq, m, 2^bits]; per query token: their step, the constant to add, the largest rounding error."""
        m, _, width = self.centroids.shape
        exact = np.einsum("qmw,mcw->qmc", query.reshape(len(query), m, width), self.centroids, optimize=True)
        low, high = exact.min(axis=2), exact.max(axis=2)
        ranges = high - low
        # Four bits: the widest part takes all 64 levels. Eight: all parts together stay within 16 bits, signed.
        steps = (ranges.max(axis=1) if self.bits == 4 else ranges.sum(axis=1) / 2) / DIVISIONS[self.bits]
        steps = np.maximum(steps, np.float32(1e-37))
        zeros = low if self.bits == 4 else (low + high) / 2
        integers = np.rint((exact - zeros[:, :, None]) / steps[:, None, None])
        rounding = np.abs(exact - zeros[:, :, None] - integers * steps[:, None, None]).max(axis=2).sum(axis=1)
        kind = np.uint8 if self.bits == 4 else np.int16
        return integers.astype(kind), steps, zeros.sum(axis=1), rounding


def draw_sample(plan: Plan, config: Config) -> FloatArray:
    """At most `sample` tokens of the training images, in their stored order."""
    offsets, allowed = plan.offsets, np.arange(plan.tokens)
    if config.images:
        if min(config.images) < 0 or max(config.images) >= len(offsets) - 1:
            raise InputError(
                "a training image does not exist",
                expected=f"rows from 0 to {len(offsets) - 2}",
                actual=f"{min(config.images)} to {max(config.images)}",
                fix="correct the setting images",
            )
        allowed = np.concatenate([np.arange(offsets[row], offsets[row + 1]) for row in sorted(set(config.images))])
    chosen = np.random.default_rng(config.seed).permutation(len(allowed))[: config.sample]
    if len(chosen) < 2**config.bits:
        raise InputError(
            "there are too few training tokens",
            expected=f"at least {2**config.bits}, one per centroid",
            actual=str(len(chosen)),
            fix="train with more images, use bits=4, or use kind='int8'",
        )
    return plan.draw(np.sort(allowed[chosen]))


def train(sample: FloatArray, m: int, config: Config) -> FloatArray:
    """Centroids [m, 2^bits, d / m], learnt separately for each part."""
    random = np.random.default_rng(config.seed)
    return np.stack(
        [kmeans.lloyd(take_part(sample, part, m), 2**config.bits, config.rounds, random) for part in range(m)]
    )


def take_part(rows: FloatArray, part: int, m: int) -> FloatArray:
    width = rows.shape[1] // m
    return np.ascontiguousarray(rows[:, part * width : (part + 1) * width])


def fill_blocks(
    codes: NDArray[np.uint8], offsets: NDArray[np.int64], allocate: Allocate = in_memory
) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Codes [n, m] → [blocks, m padded to a multiple of 4, 16], and the images' offsets [N + 1] in blocks."""
    counts = -(-np.diff(offsets) // BLOCK)
    bounds = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    owners = np.repeat(np.arange(len(counts)), counts)
    first = offsets[owners] + (np.arange(bounds[-1]) - bounds[owners]) * BLOCK
    blocks = allocate("pq.blocks", (len(owners), codes.shape[1] + -codes.shape[1] % 4, 16), np.uint8)
    for start in range(0, len(owners), 1024):
        part = slice(start, start + 1024)
        tokens = first[part, None] + np.arange(BLOCK)
        tokens = np.minimum(tokens, offsets[owners[part] + 1][:, None] - 1)  # past the end, the last token again
        values = codes[tokens].transpose(0, 2, 1)
        blocks[part, : codes.shape[1]] = values[..., :16] | (values[..., 16:] << 4)
        blocks[part, codes.shape[1] :] = 0
    return blocks, bounds
