"""Key points for the backbones that detect them: pictures reduced before detection, points mapped back.

In: points [n, 4] (x, y, size, angle) of a detector in a reduced picture. Out: points in a fixed order, in pixels of the
original. A detector that does not estimate size and angle gives NaN for both.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from resight.errors import RecipeError
from resight.types import Features, FloatArray, Picture

Detect = Callable[[Picture], tuple[FloatArray, NDArray[Any]]]  # points [n, 4] and descriptors [n, D]


def extract_each(pictures: Sequence[Picture], scale: float, method: str, detect: Detect) -> Iterator[Features]:
    """The Features of each picture; `method` is the name of the detector."""
    if scale != 1:
        raise RecipeError(
            f"{method} searches all scales itself",
            expected="scale 1",
            actual=f"scale {scale:g}",
            fix="drop the transform multiscale from this branch",
        )
    for picture in pictures:
        points, descriptors = detect(picture)
        sizes = np.array([picture.size], dtype=np.int32)
        yield Features((picture.ref.id,), descriptors[None], sizes, points=points[None])


def order_strongest(points: FloatArray, responses: Sequence[float] | NDArray[np.floating]) -> NDArray[np.intp]:
    """Strongest first, ties by position: detectors return them in no fixed order."""
    return np.lexsort((points[:, 3], points[:, 1], points[:, 0], -np.asarray(responses)))


def scale_back(points: FloatArray, shape: tuple[int, ...], size: tuple[int, int]) -> FloatArray:
    """From a picture of `shape` (rows, columns) to the original of `size` (width, height).

    Rounding makes the scale differ between the axes, so each has its own. Pixel 0 covers 0 to 1 in both pictures, so
    pixel centres are scaled. An enlarged picture has some outside of the original, which move to its edge.
    """
    scale_x, scale_y = size[0] / shape[1], size[1] / shape[0]
    scales = np.array([scale_x, scale_y, (scale_x * scale_y) ** 0.5, 1], np.float32)
    half = np.array([0.5, 0.5, 0, 0], np.float32)
    moved = np.asarray((points + half) * scales - half, np.float32)
    moved[:, :2] = np.maximum(moved[:, :2], 0)
    return moved


def reduce_to(pixels: np.ndarray, side: int) -> np.ndarray:
    """The picture with its longer side at most `side` pixels."""
    height, width = pixels.shape[:2]
    scale = side / max(height, width)
    if scale >= 1:
        return pixels
    size = (max(round(width * scale), 1), max(round(height * scale), 1))
    return np.asarray(cv2.resize(pixels, size, interpolation=cv2.INTER_AREA))


def read_grey(picture: Picture, max_side: int, stride: int) -> FloatArray:
    """The mean of the colours, 0 to 255, reduced; both sides are multiples of `stride`."""
    return fit_stride(reduce_to(picture.pixels, max_side).mean(axis=2, dtype=np.float32), stride)


def read_planes(picture: Picture, max_side: int, stride: int) -> FloatArray:
    """The colours [3, h, w], 0 to 1, reduced; both sides are multiples of `stride`."""
    pixels = fit_stride(reduce_to(picture.pixels, max_side).astype(np.float32), stride)
    return np.ascontiguousarray(pixels.transpose(2, 0, 1) / np.float32(255))


def fit_stride(image: FloatArray, stride: int, scale: float = 1.0) -> FloatArray:
    """The image [h, w] or [h, w, 3] at about `scale`, with sides that are multiples of `stride`."""
    width, height = (max(int(side * scale) // stride, 1) * stride for side in image.shape[1::-1])
    if (height, width) == image.shape[:2]:
        return image
    return np.asarray(cv2.resize(image, (width, height), interpolation=cv2.INTER_LINEAR), np.float32)
