"""Tokens in 8 bits, with a bound on the error: centred in d + 8 bytes per token, or plain in d + 4.

    q · x  =  q · c  +  c · (x - c)  +  (q - c) · (x - c)

c is the mean token. The first part is the same for every image, the second is stored (`shifts`), and only the third
is quantised: x - c as steps × integers in -127..127, q - c in -64..64. Tokens have much in common, so x - c and q - c
are shorter than x and q, which makes the error smaller.
A random rotation spreads values that lie in a few dimensions over all of them, which helps if an image has one vector;
`dims` keeps only so many directions. Either is a matrix `basis` [d, dims].

`plain` is symmetric quantisation per vector, as in CraterBench-R: x as one step × integers in -127..127, the longest
value being 127. There c = 0, so that nothing is stored beside the step (388 bytes at d = 384).

The fast kernel adds in 16 bits. Each of its sums runs over one half of the dimensions (0, 1, 4, 5, 8, … or the others)
and is at most the product of the two vectors' lengths there. Tokens and queries are scaled to at most 181 in each half:
181 × 181 < 2^15. If that does not hold, as in a plain pack or one made with accumulate="int32", sums take 32 bits.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from resight.errors import InputError, RecipeError
from resight.kernels import dispatch
from resight.kernels.codec import Plan, Rows, read_chunks, rounding_error, update_largest
from resight.types import FloatArray

LARGEST_SUM = 32767.0
LONGEST_HALF = 181.0
ROUNDS, POWER = 8, 3  # of find_directions
Kernel = Literal["scan", "narrow", "wide"]


@dataclass(frozen=True)
class Config:
    dims: int = 0  # directions to keep, see find_directions; 0: all dimensions
    rotate: bool | None = None  # None: if every image has one token
    accumulate: Literal["auto", "int16", "int32"] = "auto"  # auto: int32 if plain, or if every image has one token
    sample: int = 65_536  # tokens that determine the mean and the directions
    seed: int = 0
    plain: bool = False  # one step per token, without the mean: d + 4 bytes

    def __post_init__(self) -> None:
        if self.plain and (self.dims or self.rotate):
            raise RecipeError(
                "a plain int8 code keeps tokens as they are",
                expected="plain without dims and rotate",
                actual=f"dims = {self.dims}, rotate = {self.rotate}",
                fix="leave out plain, or the others",
            )


def begin(plan: Plan, config: Config) -> "Int8Filler":
    """With one token per image, the scan kernel serves, which needs no limit on the halves."""
    single = bool((np.diff(plan.offsets) <= 1).all())
    centre, basis = (np.zeros(plan.d, np.float32), None) if config.plain else choose_basis(plan, config, single)
    narrow = config.accumulate == "int16" or (config.accumulate == "auto" and not single and not config.plain)
    return Int8Filler(plan, centre, basis, LONGEST_HALF if narrow else math.inf, config.plain)


class Int8Filler:
    def __init__(
        self, plan: Plan, centre: FloatArray, basis: FloatArray | None, longest: float, plain: bool = False
    ) -> None:
        self._offsets, self._centre, self._basis, self._longest = plan.offsets, centre, basis, longest
        self._dims = plan.d if basis is None else basis.shape[1]
        self._values = plan.allocate("int8.values", (plan.tokens, self._dims + -self._dims % 4), np.uint8)
        self._steps = plan.allocate("int8.steps", (plan.tokens,), np.float32)
        self._shifts = None if plain else plan.allocate("int8.shifts", (plan.tokens,), np.float32)
        self._errors, self._lengths = (np.zeros(len(plan.offsets) - 1, np.float32) for _ in range(2))
        self._reach = np.zeros(2, np.float32)

    def fill(self, rows: Rows, tokens: FloatArray) -> None:
        rest, basis = tokens - self._centre, self._basis
        projected = rest if basis is None else np.asarray(rest @ basis, np.float32)
        integers, steps = quantise(projected, 127, self._longest)
        self._values[rows], self._steps[rows] = integers + 128, steps
        if self._shifts is not None:
            self._shifts[rows] = rest.astype(np.float64) @ self._centre
        coded = integers[:, : self._dims].astype(np.float32) * steps[:, None]
        errors = np.linalg.norm(rest - (coded if basis is None else coded @ basis.T), axis=1)
        update_largest(self._errors, self._offsets, rows, errors)
        update_largest(self._lengths, self._offsets, rows, np.linalg.norm(coded, axis=1))
        reach = float(measure_halves(integers).max()), float(measure_parts(integers).max())
        self._reach = np.maximum(self._reach, np.array(reach, np.float32))

    def finish(self) -> "Int8":
        bounds = self._errors, self._lengths
        return Int8(
            self._values, self._steps, self._shifts, *bounds, self._centre, self._basis, self._reach, self._offsets
        )


def restore(arrays: dict[str, NDArray[Any]], offsets: NDArray[np.int64]) -> "Int8":
    fields: dict[str, Any] = {"basis": None, **arrays}
    if not fields["centre"].any():
        fields.setdefault("shifts", None)
    return Int8(**fields, offsets=offsets)


@dataclass(frozen=True)
class Int8:
    values: NDArray[np.uint8]  # [n, dims padded to a multiple of 4], with 128 added
    steps: FloatArray  # [n]
    shifts: FloatArray | None  # [n]; None: plain, all zero
    errors: FloatArray  # [N] the largest |x - its code| in the image
    lengths: FloatArray  # [N] the largest |code|
    centre: FloatArray  # [d]
    basis: FloatArray | None  # [d, dims]
    reach: FloatArray  # [2] the longest half and the longest part of a token, in integers
    offsets: NDArray[np.int64]
    kind: ClassVar[str] = "int8"

    @property
    def d(self) -> int:
        return len(self.centre)

    def scores(self, query: FloatArray, rows: NDArray[np.int64] | None, threads: int | None) -> FloatArray:
        integers, steps, kernel = self.quantise_query(self.project(query))
        constant = np.float32((query.astype(np.float64) @ self.centre).mean())
        found = dispatch.maxsim_int8(
            integers, steps, self.values, self.steps, self.kernel_shifts, self.offsets, rows, threads, kernel
        )
        return found + constant

    @cached_property
    def kernel_shifts(self) -> FloatArray:
        """The shifts that the kernels read; for a plain pack, zeros that take no memory, as nothing writes them."""
        return np.zeros(len(self.steps), np.float32) if self.shifts is None else self.shifts

    def radius(self, query: FloatArray) -> FloatArray:
        """|q - c| × the tokens' errors, plus the query's own error × the tokens' lengths."""
        projected = self.project(query)
        integers, steps, _ = self.quantise_query(projected)
        coded = integers[:, : projected.shape[1]].astype(np.float32) * steps[:, None]
        rest = float(np.linalg.norm(query - self.centre, axis=1).mean())
        missed = float(np.linalg.norm(projected - coded, axis=1).mean())
        centre = float(np.linalg.norm(self.centre))
        length = float(np.linalg.norm(query, axis=1).mean()) + centre
        growth, each = rounding_error(length, len(query), self.d, 1.0 if self.basis is None else math.sqrt(self.d))
        # A token is no longer than its code, its error and the centre together.
        radius = self.errors * np.float32(growth * rest + each) + self.lengths * np.float32(growth * missed + each)
        return radius + np.float32(2 * each * centre)

    def arrays(self) -> dict[str, NDArray[Any]]:
        names = ("values", "steps", "shifts", "errors", "lengths", "centre", "basis", "reach")
        return {name: getattr(self, name) for name in names if getattr(self, name) is not None}

    def project(self, query: FloatArray) -> FloatArray:
        rest = query - self.centre
        return rest if self.basis is None else np.asarray(rest @ self.basis, np.float32)

    def quantise_query(self, query: FloatArray) -> tuple[NDArray[np.int8], FloatArray, Kernel]:
        """Integers [Kq, padded dims], their steps [Kq], and the kernel in which their sums cannot overflow."""
        half, part = float(self.reach[0]), float(self.reach[1])
        if len(query) <= dispatch.FEW_TOKENS:
            integers, steps = quantise(query, 64, math.inf, LARGEST_SUM / max(part, 1.0))
            if (measure_parts(integers) * part).max() <= LARGEST_SUM:
                return integers.astype(np.int8), steps, "scan"
        longest = LARGEST_SUM / half if 0 < half <= 1.05 * LONGEST_HALF else math.inf
        integers, steps = quantise(query, 64, longest)
        narrow = (measure_halves(integers) * half).max() <= LARGEST_SUM
        return integers.astype(np.int8), steps, "narrow" if narrow else "wide"


def choose_basis(plan: Plan, config: Config, single: bool) -> tuple[FloatArray, FloatArray | None]:
    """The centre to subtract [d] and the directions to keep [d, dims] (None: all dimensions, unrotated)."""
    d = plan.d
    if not 0 <= config.dims <= d:
        raise InputError(
            "int8 cannot keep that many dimensions",
            expected=f"dims from 1 to {d}, or 0 for all",
            actual=str(config.dims),
            fix="choose a smaller number",
        )
    random = np.random.default_rng(config.seed)
    sample = plan.draw(np.sort(random.permutation(plan.tokens)[: config.sample]))
    sizes = np.linalg.norm(sample, axis=1)
    # The mean suits tokens of similar length; otherwise the longest tokens would dominate it.
    alike = len(sizes) > 0 and sizes.max() < 2 * sizes.min()
    centre = sample.mean(axis=0, dtype=np.float64).astype(np.float32) if alike else np.zeros(d, np.float32)
    rotate = single if config.rotate is None else config.rotate
    if not config.dims and not rotate:
        return centre, None
    dims = config.dims or d
    basis = np.eye(d)
    if config.dims and len(sample):
        basis = find_directions(sample, centre, config.dims)
    if rotate or config.dims:  # directions hold unequal shares, so they need a rotation too
        basis = basis[:, :dims] @ np.linalg.qr(random.standard_normal((dims, dims)))[0]
    return centre, np.ascontiguousarray(basis, np.float32)


def find_directions(sample: FloatArray, centre: FloatArray, dims: int) -> NDArray[np.float64]:
    """Directions [d, d], of which the first `dims` represent rare tokens well, not only common ones.

    Principal directions serve the majority and may lose a twentieth of the images altogether. So each round computes
    them again, with each token weighted by the residual that the last directions left; POWER sets how much the worst
    tokens count. With a power of 4 the rounds do not converge.
    """
    weights = np.ones(len(sample))
    for _ in range(ROUNDS if dims < sample.shape[1] else 1):
        spread = np.zeros((sample.shape[1], sample.shape[1]))
        for chunk, part in read_chunks(sample):
            rest = (part - centre).astype(np.float64)
            spread += (rest * weights[chunk, None]).T @ rest
        basis = np.linalg.eigh(spread)[1][:, ::-1]
        for chunk, part in read_chunks(sample):
            rest = (part - centre).astype(np.float64)
            weights[chunk] = np.square(rest).sum(axis=1) - np.square(rest @ basis[:, :dims]).sum(axis=1)
        weights = np.maximum(weights, 0)
        if not weights.any():
            break
        weights = (weights / weights.max()) ** POWER
    return np.asarray(basis, np.float64)


def quantise(
    rows: FloatArray, largest: int, longest_half: float, longest_part: float = math.inf
) -> tuple[NDArray[np.int16], FloatArray]:
    """Integers [n, dims padded to a multiple of 4] in -largest..largest, and the step [n] that each stands for.

    Rounding can make a vector slightly longer than its limit; it is then scaled down until it fits.
    """
    missing = -rows.shape[1] % 4
    padded = np.pad(rows, ((0, 0), (0, missing))) if missing else rows
    limits = [(lanes, longest) for lanes, longest in ((2, longest_half), (16, longest_part)) if longest < math.inf]
    with np.errstate(divide="ignore"):
        scales = largest / np.maximum(padded.max(axis=1), -padded.min(axis=1))
        for lanes, longest in limits:
            scales = np.minimum(scales, 0.999 * longest / measure_lanes(padded, lanes).max(axis=1))
    scales = np.where(np.isfinite(scales), scales, 1.0).astype(np.float32)  # a row of zeros
    for _ in range(8):
        integers = np.rint(padded * scales[:, None])
        beyond = [measure_lanes(integers, lanes).max(axis=1) / longest for lanes, longest in limits]
        most = np.max(beyond, axis=0, initial=0) if beyond else np.zeros(1)
        if not (most > 1).any():
            break
        scales = np.where(most > 1, scales * np.float32(0.99) / most, scales).astype(np.float32)
    # A scaled value exceeds `largest` by float rounding at most, which rint removes.
    return integers.astype(np.int16), np.asarray(1 / scales, np.float32)


def measure_halves(rows: NDArray[Any]) -> FloatArray:
    """[n, 2]: the length of each row over the dimensions that one 16-bit lane of maxsim_int8 adds."""
    return measure_lanes(rows, 2)


def measure_parts(rows: NDArray[Any]) -> FloatArray:
    """[n, 16]: the same for scan_int8, whose lanes add every sixteenth pair."""
    return measure_lanes(rows, 16)


def measure_lanes(rows: NDArray[Any], lanes: int) -> FloatArray:
    """The length of each row per lane: exact for integers up to d = 2,080, beyond that to one part in a million."""
    squares = np.square(rows, dtype=np.float32)
    return np.asarray(np.sqrt(squares @ dispatch.assign_lanes(rows.shape[1], lanes)), np.float32)
