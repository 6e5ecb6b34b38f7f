"""A picture as the input of a network.

In: a Picture, the size of the network's input, and the statistics of its training images. Out: [1, 3, H, W] float32,
and the box of the original that the input shows.

    squash      a square input shows the whole picture, its proportions distorted
    crop        a square input shows the largest centred square (or a share of it), undistorted
    keep        the input has the picture's proportions, to the next whole cell, on about as many pixels as the square:
                it shows everything, hardly distorted, at the same cost; the grid differs from picture to picture
    letterbox   the picture, its proportions kept, in the upper left corner of a square whose rest is 0 (the mean
                colour), as detectors and SAM expect it; its box reaches beyond the picture

Interpolation `area` is OpenCV's; `bilinear` and `bicubic` are Pillow's, which the networks of timm and transformers
were trained with (the kernel grows with the reduction, so that nothing aliases).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image

from resight.errors import RecipeError
from resight.types import Box, FloatArray, Picture

Fit = Literal["squash", "crop", "keep"]
Interpolation = Literal["area", "bilinear", "bicubic"]
REACH = 3  # decode to this many times the input's side: the short side of a 3:1 picture still fills a square
FILTERS = {"bilinear": Image.Resampling.BILINEAR, "bicubic": Image.Resampling.BICUBIC}


@dataclass(frozen=True)
class Statistics:
    """Of the training images, in pixel values from 0 to 255: red, green, blue."""

    mean: tuple[float, float, float]
    deviation: tuple[float, float, float]


def prepare(
    picture: Picture,
    width: int,
    height: int,
    fit: Fit,
    statistics: Statistics,
    interpolation: Interpolation = "area",
    share: float = 1.0,
) -> tuple[FloatArray, Box]:
    """`share` is the part of the side of the largest centred square that `crop` shows."""
    rows, columns = picture.pixels.shape[:2]
    x0, y0, x1, y1 = (0, 0, columns, rows) if fit != "crop" else crop_centre(columns, rows, width / height, share)
    resized = resize(picture.pixels[y0:y1, x0:x1], width, height, interpolation)
    mean, deviation = np.array(statistics.mean, np.float32), np.array(statistics.deviation, np.float32)
    planes = np.ascontiguousarray(((resized - mean) / deviation).transpose(2, 0, 1)[None], np.float32)
    scale_x, scale_y = picture.size[0] / columns, picture.size[1] / rows
    return planes, (x0 * scale_x, y0 * scale_y, x1 * scale_x, y1 * scale_y)


def letterbox(picture: Picture, side: int, statistics: Statistics) -> tuple[FloatArray, Box]:
    """[1, 3, side, side] with the picture in its corner, and the box of the original under the square."""
    width, height = fit_longest(picture.size, side)
    planes, _ = prepare(picture, width, height, "squash", statistics)
    square = np.zeros((1, 3, side, side), np.float32)
    square[:, :, :height, :width] = planes
    return square, (0.0, 0.0, picture.size[0] * side / width, picture.size[1] * side / height)


def make_statistics(mean: Sequence[float], deviation: Sequence[float]) -> Statistics:
    """Statistics from values of 0 to 1, as networks publish them."""
    numbers = np.array([*mean, *deviation], np.float64)
    if not len(mean) == len(deviation) == 3 or not np.isfinite(numbers).all() or numbers[3:].min() <= 0:
        raise RecipeError(
            "mean and deviation do not fit",
            expected="three numbers each, deviations above 0",
            actual=f"{tuple(mean)}, {tuple(deviation)}",
            fix="e.g. those of ImageNet: mean = [0.485, 0.456, 0.406], deviation = [0.229, 0.224, 0.225]",
        )
    red, green, blue, wide_red, wide_green, wide_blue = (255 * numbers).tolist()
    return Statistics((red, green, blue), (wide_red, wide_green, wide_blue))


def choose_input(picture: Picture, size: int, cell: int, fit: Fit) -> tuple[int, int]:
    """Width and height of the network's input: `size` both, or with `keep` whole cells of about size² pixels."""
    if fit != "keep":
        return size, size
    stretch = (picture.size[0] / picture.size[1]) ** 0.5
    most = max(size // cell, 1) ** 2  # an extreme panorama gets no more cells than the square has
    columns = min(max(round(size * stretch / cell), 1), most)
    rows = min(max(round(size / stretch / cell), 1), most)
    return columns * cell, rows * cell


def choose_size(size: int, scale: float, cell: int) -> int:
    """The side of the input at a scale, in whole cells; a scale of 1 leaves it as it is."""
    return size if scale == 1 else max(round(size * scale / cell), 1) * cell


def resize(pixels: NDArray[np.uint8], width: int, height: int, interpolation: Interpolation) -> NDArray[np.uint8]:
    if interpolation != "area":
        return np.asarray(Image.fromarray(pixels).resize((width, height), FILTERS[interpolation]), np.uint8)
    shrinks = pixels.shape[1] > width or pixels.shape[0] > height
    resized = cv2.resize(pixels, (width, height), interpolation=cv2.INTER_AREA if shrinks else cv2.INTER_LINEAR)
    return np.asarray(resized, np.uint8)


def crop_centre(width: int, height: int, proportion: float, share: float = 1.0) -> tuple[int, int, int, int]:
    """The largest centred box whose width is `proportion` times its height, in whole pixels; or `share` of it."""
    wide = max(1, round(share * min(width, max(1, round(height * proportion)))))
    high = max(1, round(share * min(height, max(1, round(width / proportion)))))
    x, y = (width - wide) // 2, (height - high) // 2
    return x, y, x + wide, y + high


def fit_longest(size: tuple[int, int], side: int) -> tuple[int, int]:
    """Width and height with the longer of them `side` pixels, at least 1 each."""
    scale = side / max(size)
    return max(round(size[0] * scale), 1), max(round(size[1] * scale), 1)
