"""Key points [n, 4] (x, y, size, angle) as a detector gives them → in a settled order, in pixels of the original."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from resight.types import FloatArray


def order_strongest(points: FloatArray, responses: Sequence[float] | NDArray[np.floating]) -> NDArray[np.intp]:
    """Strongest first. Detectors give them in no useful order, and several of the same strength."""
    return np.lexsort((points[:, 3], points[:, 1], points[:, 0], -np.asarray(responses)))


def scale_back(points: FloatArray, shape: tuple[int, ...], size: tuple[int, int]) -> FloatArray:
    """From a picture of `shape` (rows, columns) to the original of `size` (width, height).

    The scale differs by a rounding between the axes: each gets its own. Pixel 0 covers 0 to 1 in both pictures, so that
    its centre is what is scaled.
    """
    scale_x, scale_y = size[0] / shape[1], size[1] / shape[0]
    scales = np.array([scale_x, scale_y, (scale_x * scale_y) ** 0.5, 1], np.float32)
    half = np.array([0.5, 0.5, 0, 0], np.float32)
    return np.asarray((points + half) * scales - half, np.float32)
