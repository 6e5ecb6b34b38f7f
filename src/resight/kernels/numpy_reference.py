"""The kernels in numpy: they serve if the compiled ones are missing, and they are the reference of the tests.

Each function takes the arguments of its function in dispatch.py and returns the same scores as the compiled kernel:
integer sums are equal, floating-point sums differ by at most (d + Kq + 16) × 2^-24 × the lengths of the vectors.
"""

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from resight.types import FloatArray, IntArray
from resight.vectors import l2_normalise

TOKENS = 8192  # per comparison: the products stay in the cache until their maximum is taken
Gain = Literal["product", "overlap", "chi2"]  # a b; a + b - |a - b|; a + b - (a - b)² / (a + b)
GAINS: tuple[Gain, ...] = get_args(Gain)  # in the order of kernels.h
Compare = Callable[[Any], FloatArray]  # indices or a slice of tokens → [t, Kq] values


def maxsim_float(
    query: FloatArray, tokens: NDArray[Any], offsets: NDArray[np.int64], rows: NDArray[np.int64] | None
) -> FloatArray:
    """query [Kq, d], tokens [n, d] float32 or float16 → [images]."""

    def compare(index: Any) -> FloatArray:
        return np.asarray(tokens[index].astype(np.float32, copy=False) @ query.T, np.float32)

    return average_best(compare, offsets, rows)


def maxsim_int8(
    query: NDArray[np.int8],
    query_steps: FloatArray,
    tokens: NDArray[np.uint8],
    steps: FloatArray,
    shifts: FloatArray,
    offsets: NDArray[np.int64],
    rows: NDArray[np.int64] | None,
) -> FloatArray:
    """query [Kq, d] in -64..64, tokens [n, d] with 128 added → [images]."""
    kind = np.float32 if query.shape[1] <= 2064 else np.float64  # float32 is exact up to 2064 dimensions
    turned = query.T.astype(kind)

    def compare(index: Any) -> FloatArray:
        sums = ((tokens[index].astype(kind) - 128) @ turned).astype(np.float32)
        return np.asarray(sums * (steps[index][:, None] * query_steps) + shifts[index][:, None], np.float32)

    return average_best(compare, offsets, rows)


def maxsim_pq(
    tables: NDArray[Any],
    scales: FloatArray,
    biases: FloatArray,
    codes: NDArray[np.uint8],
    bits: int,
    offsets: NDArray[np.int64],
    rows: NDArray[np.int64] | None,
) -> FloatArray:
    """tables [Kq, m, 2^bits] of small integers; codes [n, m], or [blocks, m, 16] at 4 bits → [images]."""

    def look_up(codes: NDArray[np.uint8]) -> NDArray[np.int32]:
        sums = np.zeros((len(codes), len(tables)), np.int32)
        for part in range(tables.shape[1]):
            sums += tables[:, part, :].T.astype(np.int32)[codes[:, part]]
        return sums

    def compare(index: Any) -> FloatArray:
        if bits == 8:
            sums = look_up(codes[index])
        else:  # a block holds 32 tokens of one image, of which only the best counts
            pairs = codes[index].transpose(0, 2, 1)
            both = np.concatenate([pairs & 15, pairs >> 4], axis=1)
            sums = look_up(both.reshape(-1, both.shape[2])).reshape(len(both), 32, -1).max(axis=1)
        return np.asarray(sums.astype(np.float32) * scales + biases, np.float32)

    # Scales and biases include the division by Kq.
    return average_best(compare, offsets, rows) * np.float32(len(scales))


def maxsim_rq(
    tables: NDArray[np.uint8],
    scale: float,
    bias: float,
    numbers: NDArray[np.uint8],
    offsets: NDArray[np.int64],
    rows: NDArray[np.int64] | None,
) -> FloatArray:
    """tables [Kq, m, entries] of bytes, numbers [n, m] → [images]."""
    turned = tables.transpose(1, 2, 0).astype(np.float32)

    def compare(index: Any) -> FloatArray:
        looked_up = (table[numbers[index][:, part]] for part, table in enumerate(turned))
        return np.asarray(sum(looked_up), np.float32)

    return average_best(compare, offsets, rows) * np.float32(scale * len(tables)) + np.float32(bias)


def add_postings(
    query: FloatArray,
    starts: NDArray[np.int64],
    stops: NDArray[np.int64],
    images: NDArray[np.int32],
    values: FloatArray,
    gain: Gain,
    count: int,
) -> FloatArray:
    """Posting lists of the words of a query [w] → [count] totals."""
    totals = np.zeros(count, np.float32)
    for a, start, stop in zip(query, starts.tolist(), stops.tolist(), strict=True):
        b = values[start:stop]
        if gain == "product":
            gains = a * b
        elif gain == "overlap":
            gains = 2 * np.minimum(a, b)
        else:
            gains = 4 * a * b / np.maximum(a + b, np.finfo(np.float32).tiny)
        np.add.at(totals, images[start:stop], gains)
    return totals


def add_codes(
    query: NDArray[np.uint8],
    weights: NDArray[np.float64],
    starts: NDArray[np.int64],
    stops: NDArray[np.int64],
    images: NDArray[np.int32],
    codes: NDArray[np.uint8],
    gains: NDArray[np.float64],
    count: int,
) -> NDArray[np.float64]:
    """Posting lists with binary codes, of the words of a query [w, bytes] → [count] totals."""
    totals = np.zeros(count)
    for code, weight, start, stop in zip(query, weights, starts.tolist(), stops.tolist(), strict=True):
        different = np.bitwise_count(codes[start:stop] ^ code).sum(axis=1, dtype=np.int64)
        np.add.at(totals, images[start:stop], weight * gains[different])
    return totals


EDGE = 0.5  # of an image: its middle is the origin, its width and height are the units
SHORTEST = 1e-9  # a token that is the mean but for rounding stays short


@dataclass(frozen=True)
class Overlay:
    """How a query is laid over images: every scale with every pair of shifts along x and y."""

    scales: tuple[float, ...]
    shifts: tuple[float, ...]  # in image sides
    tolerance: float  # σ of the Gaussian of the distance between a token's landing and its partner, in image sides
    least: float  # share of the query's tokens that must land inside

    def land(self, centres: FloatArray) -> FloatArray:
        """Centres [Kq, 2] → [2, scales, shifts, Kq]: where each lands, along x and along y."""
        scales, shifts = np.array(self.scales, np.float32), np.array(self.shifts, np.float32)
        return np.asarray(scales[:, None, None] * centres.T[:, None, None] + shifts[:, None], np.float32)

    def weigh(self, inside: NDArray[Any], count: int) -> FloatArray:
        """Numbers of tokens inside, of `count` → what the sum over them is multiplied by."""
        return np.where(inside >= self.least * count, 1 / (inside + count / 16), 0).astype(np.float32)


def lay_over(
    query: FloatArray,
    query_centres: FloatArray,
    tokens: FloatArray,
    centres: FloatArray,
    offsets: IntArray,
    mean: FloatArray,
    overlay: Overlay,
) -> FloatArray:
    """query [Kq, d] without the mean, of unit length, and tokens [n, d] as they are → [images]; NaN if not finite."""
    landing = overlay.land(query_centres)
    inside = np.abs(landing) <= EDGE
    found = np.zeros(len(offsets) - 1, np.float32)
    for number, (start, stop) in enumerate(itertools.pairwise(offsets.tolist())):
        rows = tokens[start:stop] - mean
        with np.errstate(over="ignore", invalid="ignore"):
            finite = np.isfinite(np.square(rows).sum(axis=1)).all()
        if not finite:
            found[number] = np.nan
        elif len(rows):
            likeness = np.maximum(query @ l2_normalise(rows, SHORTEST).T, 0)
            found[number] = _lay_over_one(likeness, landing, inside, centres[start:stop], overlay)
    return found


def _lay_over_one(
    likeness: FloatArray, landing: FloatArray, inside: NDArray[np.bool_], image: FloatArray, overlay: Overlay
) -> float:
    """likeness [Kq, K], centres of the image's tokens [K, 2] → the best of all scales and shifts."""
    by_image = np.ascontiguousarray(likeness.T)[:, None]
    best = 0.0
    for (x, y), (inside_x, inside_y) in zip(landing.swapaxes(0, 1), inside.swapaxes(0, 1), strict=True):
        # A Gaussian of the distance is the product of one along x and one along y: [K, shifts, Kq] each. The image's
        # tokens come first, because numpy finds a maximum over the first axis much faster than over the last.
        near_x, near_y = (
            fade(lands, image[:, axis, None, None], overlay.tolerance) for axis, lands in enumerate((x, y))
        )
        near_x *= by_image
        partners = (near_x[:, :, None] * near_y[:, None]).max(axis=0)  # [x shifts, y shifts, Kq]
        counted = inside_x[:, None] & inside_y
        scores = (partners * counted).sum(axis=2) * overlay.weigh(counted.sum(axis=2), len(likeness))
        best = max(best, float(scores.max()))
    return best


def fade(landing: FloatArray, places: FloatArray, tolerance: float) -> FloatArray:
    """1 where they meet, less with distance; the shapes are broadcast."""
    return np.asarray(np.exp((landing - places) ** 2 * np.float32(-0.5 / tolerance**2)), np.float32)


def average_best(compare: Compare, offsets: NDArray[np.int64], rows: NDArray[np.int64] | None) -> FloatArray:
    """The mean over query tokens of the best value [images]; minus infinity for an image without tokens."""
    listed = np.arange(len(offsets) - 1) if rows is None else rows
    starts, ends = offsets[listed], offsets[listed + 1]
    out = np.full(len(listed), -np.inf, np.float32)
    filled = np.flatnonzero(starts < ends)
    sizes = (ends - starts)[filled]
    pieces = np.cumsum(sizes) // TOKENS
    for piece in np.split(filled, np.flatnonzero(np.diff(pieces)) + 1):
        if len(piece) == 0:
            continue
        counts = ends[piece] - starts[piece]
        in_order = rows is None  # images without tokens leave no gap
        index: Any = slice(starts[piece[0]], ends[piece[-1]]) if in_order else join_ranges(starts[piece], counts)
        out[piece] = np.maximum.reduceat(compare(index), np.cumsum(counts) - counts, axis=0).mean(
            axis=1, dtype=np.float32
        )
    return out


def join_ranges(begins: NDArray[np.int64], counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Concatenate the ranges begin, begin + 1, … (`counts` numbers each)."""
    ends = np.cumsum(counts)
    return np.arange(ends[-1] if len(ends) else 0) + np.repeat(begins - ends + counts, counts)


def pair_points(query: FloatArray, image: FloatArray, ratio: float, mutual: bool) -> IntArray:
    """Rows of unit length, at least two each → pairs [t, 2]. One product serves both tests."""
    similarity = query @ image.T
    rows = np.arange(len(similarity))
    nearest = similarity.argmax(axis=1)
    best = similarity[rows, nearest]
    similarity[rows, nearest] = -np.inf
    second = similarity.max(axis=1)
    similarity[rows, nearest] = best
    # ‖a - b‖² = 2 - 2⟨a, b⟩ for unit rows, so that the ratio of distances needs no distance.
    kept = np.flatnonzero((1 - best) < ratio**2 * (1 - second))
    if mutual:  # for the columns that are left: a pass down every column would cost as much
        kept = kept[similarity[:, nearest[kept]].argmax(axis=0) == kept]
    kept = kept[np.argsort(-best[kept], kind="stable")]
    return np.stack([kept, nearest[kept]], axis=1)
