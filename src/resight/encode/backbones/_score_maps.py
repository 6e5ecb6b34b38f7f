"""Key points from the maps of a network: scores per pixel in, peaks out; maps in, their values between pixels out.

Maps are [D, h, w] float32; positions [n, 2] are x, y in pixels of the map, whose first pixel has its centre at 0.
Outside of a map all values are 0.
"""

from collections.abc import Callable

import cv2
import numpy as np
from numpy.typing import NDArray

from resight.types import FloatArray

Weigh = Callable[[FloatArray], FloatArray]
CUBIC = -0.75  # the parameter of torch's bicubic kernel


def choose_peaks(
    scores: FloatArray, radius: int, threshold: float, rounds: int = 0, border: int = 0
) -> tuple[FloatArray, FloatArray]:
    """Pixels [n, 2] of [h, w] that no pixel within `radius` exceeds, and their scores above the threshold, by row.

    Each further round finds what is highest where the peaks so far are left out with their surroundings.
    """
    highest = scores == dilate(scores, radius)
    for _ in range(rounds):
        covered = dilate(highest.astype(np.float32), radius) > 0
        rest = np.where(covered, np.float32(0), scores)
        highest |= (rest == dilate(rest, radius)) & ~covered
    highest &= scores > threshold
    if border:
        inside = np.zeros_like(highest)
        inside[border:-border, border:-border] = True
        highest &= inside
    rows, columns = np.nonzero(highest)
    return np.column_stack([columns, rows]).astype(np.float32), scores[rows, columns]


def dilate(image: FloatArray, radius: int) -> FloatArray:
    """The largest value within a square of 2 · radius + 1 pixels."""
    side = 2 * radius + 1
    return np.asarray(cv2.dilate(image, np.ones((side, side), np.uint8)))


def join_cells(logits: FloatArray, cell: int) -> FloatArray:
    """[cell² + 1, h, w] logits, the last for "none" → probabilities [h · cell, w · cell] of the pixels."""
    _, rows, columns = logits.shape
    powers = np.exp(logits - logits.max(axis=0, keepdims=True))
    shares = (powers / powers.sum(axis=0, keepdims=True))[:-1].reshape(cell, cell, rows, columns)
    return np.ascontiguousarray(shares.transpose(2, 0, 3, 1).reshape(rows * cell, columns * cell), np.float32)


def sample_linear(maps: FloatArray, positions: FloatArray) -> FloatArray:
    """[n, D], interpolated between the four nearest pixels."""
    return _sample(maps, positions, 0, lambda part: np.stack([1 - part, part], axis=1))


def sample_cubic(maps: FloatArray, positions: FloatArray) -> FloatArray:
    """[n, D], interpolated between the sixteen nearest pixels."""
    return _sample(maps, positions, 1, _weigh_cubic)


def take_squares(maps: FloatArray, pixels: NDArray[np.int64], radius: int) -> FloatArray:
    """The squares [n, D, side, side] of maps around whole pixels [n, 2]."""
    padded = np.pad(maps, ((0, 0), (radius, radius), (radius, radius)))
    steps = np.arange(2 * radius + 1)
    columns, rows = pixels[:, 0, None] + steps, pixels[:, 1, None] + steps
    return np.ascontiguousarray(padded[:, rows[:, :, None], columns[:, None, :]].transpose(1, 0, 2, 3))


def normalise_maps(maps: FloatArray) -> FloatArray:
    """[D, h, w] with unit length over D."""
    return np.asarray(maps / np.maximum(np.linalg.norm(maps, axis=0, keepdims=True), 1e-12), np.float32)


def unshaped(points: FloatArray) -> FloatArray:
    """x, y → x, y, size, angle with the last two NaN: unknown."""
    return np.column_stack([points, np.full((len(points), 2), np.nan)]).astype(np.float32)


def _sample(maps: FloatArray, positions: FloatArray, before: int, weigh: Weigh) -> FloatArray:
    """Over a square that starts `before` pixels before the one to the upper left of a position."""
    count = 2 * before + 2
    margin = count + 1
    padded = np.pad(maps, ((0, 0), (margin, margin), (margin, margin))).transpose(1, 2, 0)
    inside = np.clip(positions, -2, np.array(maps.shape[:0:-1], np.float32) + 1)
    first = np.floor(inside)
    across, down = (weigh(inside[:, axis] - first[:, axis]) for axis in (0, 1))
    columns, rows = ((first[:, axis, None].astype(np.int64) - before + margin) + np.arange(count) for axis in (0, 1))
    values = padded[rows[:, :, None], columns[:, None, :]]  # [n, count, count, D]
    return np.asarray(np.einsum("nr,nc,nrcd->nd", down, across, values, optimize=True), np.float32)


def _weigh_cubic(part: FloatArray) -> FloatArray:
    def near(x: FloatArray) -> FloatArray:
        return ((CUBIC + 2) * x - (CUBIC + 3)) * x * x + 1

    def far(x: FloatArray) -> FloatArray:
        return ((CUBIC * x - 5 * CUBIC) * x + 8 * CUBIC) * x - 4 * CUBIC

    return np.stack([far(part + 1), near(part), near(1 - part), far(2 - part)], axis=1)
