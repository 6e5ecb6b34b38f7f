"""A picture in the upper left corner of a square, its proportions kept, as detectors and SAM want it.

In: a Picture, the side of the square and the statistics of the training images. Out: [1, 3, side, side] float32, the
rest 0 (the mean colour), and the box of the original under the square, which reaches beyond the picture.
"""

import numpy as np

from resight.encode.preprocess import Statistics, prepare
from resight.types import Box, FloatArray, Picture


def place_in_corner(picture: Picture, side: int, statistics: Statistics) -> tuple[FloatArray, Box]:
    width, height = fit_longest(picture.size, side)
    planes, _ = prepare(picture, width, height, "squash", statistics)
    square = np.zeros((1, 3, side, side), np.float32)
    square[:, :, :height, :width] = planes
    return square, (0.0, 0.0, picture.size[0] * side / width, picture.size[1] * side / height)


def fit_longest(size: tuple[int, int], side: int) -> tuple[int, int]:
    """Width and height with the longer of them `side` pixels, at least 1 each."""
    scale = side / max(size)
    return max(round(size[0] * scale), 1), max(round(size[1] * scale), 1)
