"""Choose between the compiled kernels (AVX2) and numpy, and split the work over threads.

Each function arranges the query as its kernel expects, splits the images over threads and returns [images] scores.
Threads wait in the operating system, never in a busy loop. RESIGHT_KERNELS=numpy switches the compiled kernels off.
"""

import functools
import importlib
import itertools
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import ModuleType
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from resight.kernels import numpy_reference
from resight.kernels.numpy_reference import Gain
from resight.types import FloatArray
from resight.vectors import l2_normalise

# Multiply-adds that justify one more thread: they take some milliseconds, and starting a thread a tenth of one.
WORK_PER_THREAD = 200_000_000
# Multiply-adds per piece. A core that is busy with something else delays only its own piece: one or two milliseconds of
# work, against some microseconds to fetch the next piece.
WORK_PER_PIECE = 50_000_000
MAX_PIECES_PER_THREAD = 16


def run_split(call: Callable[[int, int], object], images: int, work: int, threads: int | None) -> None:
    """Run `call(begin, end)` over all `images` in at most `threads` (None: all cores); `work`: total multiply-adds."""
    workers = min(available_cores() if threads is None else threads, work // WORK_PER_THREAD, images)
    if workers <= 1:
        call(0, images)
        return
    pieces = min(max(work // WORK_PER_PIECE, workers), workers * MAX_PIECES_PER_THREAD, images)
    bounds = [images * piece // pieces for piece in range(pieces + 1)]
    with ThreadPoolExecutor(workers) as pool:
        for finished in [pool.submit(call, begin, end) for begin, end in itertools.pairwise(bounds)]:
            finished.result()


def available_cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


LANES = 16  # query tokens per panel
WIDE_LANES = 32  # of bytes
FEW_TOKENS = 4  # up to so many query tokens, lanes hold dimensions instead
Bounds = NDArray[np.int64]


def implementation() -> Literal["avx2", "numpy"]:
    """Name the code that runs the inner loops.

    Returns:
        "avx2" for the C extension, "numpy" without it or with RESIGHT_KERNELS=numpy.

    Examples:
        >>> from resight import kernels
        >>> kernels.implementation() in ("avx2", "numpy")
        True
    """
    return "numpy" if native() is None else "avx2"


def native() -> ModuleType | None:
    return None if os.environ.get("RESIGHT_KERNELS") == "numpy" else load_native()


@functools.cache
def load_native() -> ModuleType | None:
    try:
        return importlib.import_module("resight.kernels._native")
    except ImportError:
        return None


def maxsim_float(
    query: FloatArray, tokens: NDArray[Any], offsets: Bounds, rows: Bounds | None, threads: int | None
) -> FloatArray:
    """query [Kq, d] float32, tokens [n, d] float32 or float16."""
    module = native()
    if module is None:
        return numpy_reference.maxsim_float(query, tokens, offsets, rows)
    (count, d), out = query.shape, make_out(offsets, rows)
    if tokens.dtype == np.float32 and count <= FEW_TOKENS:
        kernel, values, weights = module.scan_fp32, query, np.full(count, 1 / count, np.float32)
    else:
        kernel = module.maxsim_fp32 if tokens.dtype == np.float32 else module.maxsim_fp16
        values, weights = fill_panels(query).transpose(0, 2, 1), weigh_lanes(count)
    values = align(values)
    prefetch_pages(module, tokens, offsets, rows)

    def call(begin: int, end: int) -> None:
        kernel(values, weights, d, tokens, offsets, rows, begin, end, out)

    run_split(call, len(out), count_work(offsets, rows, count * d), threads)
    return out


def maxsim_int8(
    query: NDArray[np.int8],
    query_steps: FloatArray,
    tokens: NDArray[np.uint8],
    steps: FloatArray,
    shifts: FloatArray,
    offsets: Bounds,
    rows: Bounds | None,
    threads: int | None,
    kernel: Literal["scan", "narrow", "wide"],
) -> FloatArray:
    """query [Kq, d] in -64..64. The caller chooses a kernel in which no sum overflows: see int8.py."""
    module = native()
    if module is None:
        return numpy_reference.maxsim_int8(query, query_steps, tokens, steps, shifts, offsets, rows)
    (count, d), out = query.shape, make_out(offsets, rows)
    for array in (tokens, steps, shifts):
        prefetch_pages(module, array, offsets, rows)
    if kernel == "scan":
        width = -(-d // 32) * 32
        padded = align(np.pad(query, ((0, 0), (0, width - d))))
        weights = np.full(count, 1 / count, np.float32)

        def call(begin: int, end: int) -> None:
            module.scan_int8(padded, query_steps, weights, d, tokens, steps, shifts, offsets, rows, begin, end, out)

    else:
        panels = fill_panels(query)
        values = align(panels.reshape(len(panels), LANES, d // 4, 4).transpose(0, 2, 1, 3))
        halves = (panels.astype(np.float32) @ assign_lanes(d, 2)).astype(np.int32)
        start32 = -128 * halves.sum(axis=2, dtype=np.int32)
        start16 = (-128 * halves).astype(np.int16)  # wraps around, as the kernel's sums do
        lane_steps = fill_panels(query_steps[:, None]).ravel()
        weights = weigh_lanes(count)

        def call(begin: int, end: int) -> None:
            module.maxsim_int8(
                values, start16, start32, lane_steps, weights, d, tokens, steps, shifts, offsets, rows, begin, end, out,
                2 if has_vnni() else kernel == "wide",
            )  # fmt: skip

    run_split(call, len(out), count_work(offsets, rows, count * d) // 4, threads)
    return out


def maxsim_pq(
    tables: NDArray[Any],
    scales: FloatArray,
    biases: FloatArray,
    codes: NDArray[np.uint8],
    bits: int,
    offsets: Bounds,
    rows: Bounds | None,
    threads: int | None,
) -> FloatArray:
    """tables [Kq, m, 2^bits], uint8 up to 63 at 4 bits, int16 at 8; codes [blocks, m, 16] at 4 bits, [n, m] at 8."""
    module = native()
    if module is None:
        return numpy_reference.maxsim_pq(tables, scales, biases, codes, bits, offsets, rows)
    (count, parts, _), out = tables.shape, make_out(offsets, rows)
    together = 2 if bits == 4 else LANES
    padding = -count % together
    tables = np.pad(tables, ((0, padding), (0, 0), (0, 0)))
    scales, biases = np.pad(scales, (0, padding)), np.pad(biases, (0, padding))
    if bits == 4:
        arranged = tables.reshape(-1, 2, parts // 4, 4, 16).transpose(0, 2, 1, 3, 4)
    else:
        arranged = tables.reshape(-1, LANES, parts, 256).transpose(0, 2, 3, 1)
    arranged = align(arranged)
    prefetch_pages(module, codes, offsets, rows)

    def call(begin: int, end: int) -> None:
        module.maxsim_pq(arranged, scales, biases, parts, bits, codes, offsets, rows, begin, end, out)

    run_split(call, len(out), count_work(offsets, rows, len(scales) * parts * (8 if bits == 4 else 1)), threads)
    return out


def maxsim_rq(
    tables: NDArray[np.uint8],
    scale: float,
    bias: float,
    numbers: NDArray[np.uint8],
    offsets: Bounds,
    rows: Bounds | None,
    threads: int | None,
) -> FloatArray:
    """tables [Kq, m, up to 256], numbers [n, m]; score = bias + scale × the sum of the best sums of entries."""
    module = native()
    if module is None:
        return numpy_reference.maxsim_rq(tables, scale, bias, numbers, offsets, rows)
    (count, parts, entries), out = tables.shape, make_out(offsets, rows)
    padded = np.pad(tables, ((0, -count % WIDE_LANES), (0, 0), (0, 256 - entries)))
    arranged = align(padded.reshape(-1, WIDE_LANES, parts, 256).transpose(0, 2, 3, 1))
    prefetch_pages(module, numbers, offsets, rows)

    def call(begin: int, end: int) -> None:
        module.maxsim_rq(arranged, parts, scale, bias, numbers, offsets, rows, begin, end, out)

    # One look-up for 32 query tokens takes as long as 16 multiply-adds in float32.
    run_split(call, len(out), count_work(offsets, rows, len(arranged) * parts * 16), threads)
    return out


def add_postings(
    query: FloatArray,
    starts: Bounds,
    stops: Bounds,
    images: NDArray[np.int32],
    values: FloatArray,
    gain: Gain,
    count: int,
) -> FloatArray:
    """Totals [count] of the posting lists. List w is starts[w]:stops[w] of images [m] and values [m]; query [w]."""
    module, totals = native(), np.zeros(count, np.float32)
    if module is None:
        return numpy_reference.add_postings(query, starts, stops, images, values, gain, count)
    module.add_postings(query, starts, stops, images, values, numpy_reference.GAINS.index(gain), totals)
    return totals


def add_codes(
    query: NDArray[np.uint8],
    weights: NDArray[np.float64],
    starts: Bounds,
    stops: Bounds,
    images: NDArray[np.int32],
    codes: NDArray[np.uint8],
    gains: NDArray[np.float64],
    count: int,
) -> NDArray[np.float64]:
    """Totals [count]: each posting adds its word's weight × gains [8 × bytes + 1] at the number of differing bits.

    query [w, bytes] with weights [w]; list w is starts[w]:stops[w] of images [m] and codes [m, bytes].
    """
    module, totals = native(), np.zeros(count)
    if module is None:
        return numpy_reference.add_codes(query, weights, starts, stops, images, codes, gains, count)
    module.add_codes(query, weights, starts, stops, images, codes, gains, totals)
    return totals


def pair_points(query: NDArray[np.int8], image: NDArray[np.int8], ratio: float, mutual: bool) -> Bounds:
    """Pairs [t, 2] of row numbers, best first. A query row and the image row nearest to it by angle are a pair if

        ‖q − x‖ < ratio · ‖q − x'‖   for every other row x', all rows scaled to unit length

    and, if mutual, no other query row is nearer to x. Of rows equally near, the first counts. The kernel adds up in
    integers; numpy compares in float32, and may choose otherwise where two cosines differ by less than 1e-6.
    """
    if len(query) < 2 or len(image) < 2:
        return np.zeros((0, 2), np.int64)
    kernel = getattr(native(), "pair_points", None)  # compiled kernels of an earlier build lack it
    if kernel is None:
        one, other = (l2_normalise(rows.astype(np.float32), floor=1e-6) for rows in (query, image))
        return numpy_reference.pair_points(one, other, ratio, mutual)
    lanes = -(-len(query) // LANES) * LANES
    nearest, best = np.empty(lanes, np.int32), np.empty(lanes, np.float32)
    d = query.shape[1] + -query.shape[1] % 4
    kernel(_widen(query, d), _widen(image, d), d, ratio**2, mutual, has_vnni(), nearest, best)
    kept = np.flatnonzero(nearest >= 0)
    kept = kept[np.argsort(-best[kept], kind="stable")]
    return np.stack([kept, nearest[kept]], axis=1)


def _widen(rows: NDArray[np.int8], d: int) -> NDArray[np.int8]:
    """Contiguous rows of d bytes."""
    return np.ascontiguousarray(rows) if rows.shape[1] == d else np.pad(rows, ((0, 0), (0, d - rows.shape[1])))


@functools.cache
def has_vnni() -> bool:
    """Whether the processor multiplies bytes four at a time (AVX-512 VNNI)."""
    module = load_native()
    return module is not None and hasattr(module, "has_vnni") and bool(module.has_vnni())


def fill_panels(query: NDArray[Any]) -> NDArray[Any]:
    """[Kq, d] → [panels, 16, d], padded with zeros."""
    filled = np.zeros((-(-len(query) // LANES) * LANES, query.shape[1]), query.dtype)
    filled[: len(query)] = query
    return filled.reshape(-1, LANES, query.shape[1])


def weigh_lanes(count: int) -> FloatArray:
    return fill_panels(np.full((count, 1), 1 / count, np.float32)).ravel()


@functools.cache
def assign_lanes(d: int, lanes: int) -> FloatArray:
    """[d, lanes]: 1 if a 16-bit lane of an int8 kernel adds a dimension. Lanes take pairs of dimensions in turn."""
    seen = np.arange(d)[:, None] // 2 % lanes == np.arange(lanes)
    return np.asarray(seen, np.float32)


def align(values: NDArray[Any]) -> NDArray[Any]:
    """A row-major copy that starts at a cache line: a load that straddles two lines costs twice."""
    memory = np.empty(values.nbytes + 64, np.uint8)
    start = -memory.ctypes.data % 64
    copy = memory[start : start + values.nbytes].view(values.dtype).reshape(values.shape)
    copy[...] = values
    return copy


def make_out(offsets: Bounds, rows: Bounds | None) -> FloatArray:
    return np.empty(len(offsets) - 1 if rows is None else len(rows), np.float32)


def count_work(offsets: Bounds, rows: Bounds | None, each: int) -> int:
    """Total multiply-adds, with `each` per token."""
    tokens = offsets[-1] - offsets[0] if rows is None else (offsets[rows + 1] - offsets[rows]).sum()
    return int(tokens) * each


def prefetch_pages(module: ModuleType, tokens: NDArray[Any], offsets: Bounds, rows: Bounds | None) -> None:
    """Request all pages of a shortlist from a memory map at once: one by one, each would wait for the disk."""
    if rows is not None and isinstance(tokens, np.memmap) and tokens.nbytes:
        module.will_need(tokens, tokens.nbytes // len(tokens), offsets, rows)
