"""Tokens in 8 bits: d + 8 bytes a token, with a bound on what that costs.

    q · x  =  q · c  +  c · (x - c)  +  (q - c) · (x - c)

c is the mean token. The first part is the same for every image, the second is stored (`shifts`), and only the third
is quantised: x - c as steps × integers in -127..127, q - c in -64..64. Tokens of images have much in common, so both
are shorter than x and q, and the error is smaller by the product of what is left.
A random rotation spreads what lies in a few dimensions over all of them (wanted where an image has one vector);
`dims` keeps so many directions only. Either is a matrix `basis` [d, dims].

The fast kernel adds in 16 bits. Its sums see one half of the dimensions (0, 1, 4, 5, 8, … or the others), and are at
most the product of the two vectors' lengths there. Tokens are scaled to at most 181 in each half, and so are queries:
181 × 181 < 2^15. Where that does not hold, as in a pack made with accumulate="int32", sums take 32 bits.
"""

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from resight.errors import InputError
from resight.kernels import dispatch
from resight.kernels.codec import Plan, Rows, raise_longest, read_chunks, round_off
from resight.types import FloatArray

LARGEST_SUM = 32767.0
LONGEST_HALF = 181.0
ROUNDS, POWER = 8, 3  # of the search for directions
Way = Literal["scan", "narrow", "wide"]


@dataclass(frozen=True)
class Config:
    dims: int = 0  # directions to keep, see find_directions; 0: all dimensions
    rotate: bool | None = None  # None: where every image has one token
    accumulate: Literal["auto", "int16", "int32"] = "auto"  # auto: int32 where every image has one token
    sample: int = 65_536  # tokens that the mean and the directions are taken from
    seed: int = 0


def begin(plan: Plan, config: Config) -> "Int8Filler":
    """One token an image is scanned in another way, which needs no limit on the halves."""
    single = bool((np.diff(plan.offsets) <= 1).all())
    centre, basis = choose_basis(plan, config, single)
    longest = LONGEST_HALF if config.accumulate == "int16" or (config.accumulate == "auto" and not single) else math.inf
    return Int8Filler(plan, centre, basis, longest)


class Int8Filler:
    def __init__(self, plan: Plan, centre: FloatArray, basis: FloatArray | None, longest: float) -> None:
        self._offsets, self._centre, self._basis, self._longest = plan.offsets, centre, basis, longest
        self._dims = plan.d if basis is None else basis.shape[1]
        self._values = plan.allocate("int8.values", (plan.tokens, self._dims + -self._dims % 4), np.uint8)
        self._steps = plan.allocate("int8.steps", (plan.tokens,), np.float32)
        self._shifts = plan.allocate("int8.shifts", (plan.tokens,), np.float32)
        self._errors, self._lengths = (np.zeros(len(plan.offsets) - 1, np.float32) for _ in range(2))
        self._reach = np.zeros(2, np.float32)

    def fill(self, rows: Rows, tokens: FloatArray) -> None:
        rest, basis = tokens - self._centre, self._basis
        projected = rest if basis is None else np.asarray(rest @ basis, np.float32)
        integers, steps = quantise(projected, 127, self._longest)
        self._values[rows], self._steps[rows] = integers + 128, steps
        self._shifts[rows] = rest.astype(np.float64) @ self._centre
        coded = integers[:, : self._dims].astype(np.float32) * steps[:, None]
        errors = np.linalg.norm(rest - (coded if basis is None else coded @ basis.T), axis=1)
        raise_longest(self._errors, self._offsets, rows, errors)
        raise_longest(self._lengths, self._offsets, rows, np.linalg.norm(coded, axis=1))
        reach = float(measure_halves(integers).max()), float(measure_parts(integers).max())
        self._reach = np.maximum(self._reach, np.array(reach, np.float32))

    def finish(self) -> "Int8":
        bounds = self._errors, self._lengths
        return Int8(
            self._values, self._steps, self._shifts, *bounds, self._centre, self._basis, self._reach, self._offsets
        )


def restore(arrays: dict[str, NDArray[Any]], offsets: NDArray[np.int64]) -> "Int8":
    fields: dict[str, Any] = {"basis": None, **arrays}
    return Int8(**fields, offsets=offsets)


@dataclass(frozen=True)
class Int8:
    values: NDArray[np.uint8]  # [n, dims up to a multiple of 4], 128 added
    steps: FloatArray  # [n]
    shifts: FloatArray  # [n]
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
        integers, steps, way = self.quantise_query(self.project(query))
        constant = np.float32((query.astype(np.float64) @ self.centre).mean())
        found = dispatch.maxsim_int8(
            integers, steps, self.values, self.steps, self.shifts, self.offsets, rows, threads, way
        )
        return found + constant

    def radius(self, query: FloatArray) -> FloatArray:
        """|q - c| × error for what the tokens lost, and the query's own loss × their length."""
        projected = self.project(query)
        integers, steps, _ = self.quantise_query(projected)
        coded = integers[:, : projected.shape[1]].astype(np.float32) * steps[:, None]
        rest = float(np.linalg.norm(query - self.centre, axis=1).mean())
        missed = float(np.linalg.norm(projected - coded, axis=1).mean())
        centre = float(np.linalg.norm(self.centre))
        length = float(np.linalg.norm(query, axis=1).mean()) + centre
        growth, each = round_off(length, len(query), self.d, 1.0 if self.basis is None else math.sqrt(self.d))
        # A token is at most as long as its code, its error and the centre together.
        radius = self.errors * np.float32(growth * rest + each) + self.lengths * np.float32(growth * missed + each)
        return radius + np.float32(2 * each * centre)

    def arrays(self) -> dict[str, NDArray[Any]]:
        names = ("values", "steps", "shifts", "errors", "lengths", "centre", "basis", "reach")
        return {name: getattr(self, name) for name in names if getattr(self, name) is not None}

    def project(self, query: FloatArray) -> FloatArray:
        rest = query - self.centre
        return rest if self.basis is None else np.asarray(rest @ self.basis, np.float32)

    def quantise_query(self, query: FloatArray) -> tuple[NDArray[np.int8], FloatArray, Way]:
        """Integers [Kq, padded dims], their steps [Kq], and the kernel in which their sums cannot overflow."""
        half, part = float(self.reach[0]), float(self.reach[1])
        if len(query) <= dispatch.FEW:
            integers, steps = quantise(query, 64, math.inf, LARGEST_SUM / max(part, 1.0))
            if (measure_parts(integers) * part).max() <= LARGEST_SUM:
                return integers.astype(np.int8), steps, "scan"
        longest = LARGEST_SUM / half if 0 < half <= 1.05 * LONGEST_HALF else math.inf
        integers, steps = quantise(query, 64, longest)
        narrow = (measure_halves(integers) * half).max() <= LARGEST_SUM
        return integers.astype(np.int8), steps, "narrow" if narrow else "wide"


def choose_basis(plan: Plan, config: Config, single: bool) -> tuple[FloatArray, FloatArray | None]:
    """The point that is taken off [d] and the directions that are kept [d, dims] (None: those of the tokens)."""
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
    # The mean stands for tokens of one length. Among others the longest would drown the rest.
    alike = len(sizes) > 0 and sizes.max() < 2 * sizes.min()
    centre = sample.mean(axis=0, dtype=np.float64).astype(np.float32) if alike else np.zeros(d, np.float32)
    rotate = single if config.rotate is None else config.rotate
    if not config.dims and not rotate:
        return centre, None
    dims = config.dims or d
    basis = np.eye(d)
    if config.dims and len(sample):
        basis = find_directions(sample, centre, config.dims)
    if rotate or config.dims:  # the directions hold unequal shares, too
        basis = basis[:, :dims] @ np.linalg.qr(random.standard_normal((dims, dims)))[0]
    return centre, np.ascontiguousarray(basis, np.float32)


def find_directions(sample: FloatArray, centre: FloatArray, dims: int) -> NDArray[np.float64]:
    """Directions [d, d], of which the first `dims` hold every token well, and not only the common ones.

    Principal directions serve the majority: what makes up a twentieth of the images may be lost altogether. So they
    are taken again, with each token weighted by what the last ones left of it; the power decides how much the worst
    count. A power of 4 no longer settles.
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
    """Integers [n, dims up to a multiple of 4] in -largest..largest, and the step [n] that turns them back.

    Rounding can carry a vector a little past the length that it was scaled to: it is scaled down until it fits.
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
    # A scale brings no value beyond `largest` by more than rounding, which rint takes off again.
    return integers.astype(np.int16), np.asarray(1 / scales, np.float32)


def measure_halves(rows: NDArray[Any]) -> FloatArray:
    """[n, 2]: the length of each row in the dimensions that one 16-bit lane of maxsim_int8 sees."""
    return measure_lanes(rows, 2)


def measure_parts(rows: NDArray[Any]) -> FloatArray:
    """[n, 16]: the same for scan_int8, whose lanes see every sixteenth pair."""
    return measure_lanes(rows, 16)


def measure_lanes(rows: NDArray[Any], lanes: int) -> FloatArray:
    """Squares of integers add up exactly in float32 as long as d is at most 2,080; beyond, to one part in a million."""
    squares = np.square(rows, dtype=np.float32)
    return np.asarray(np.sqrt(squares @ dispatch.assign_lanes(rows.shape[1], lanes)), np.float32)
