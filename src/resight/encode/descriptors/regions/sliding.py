"""Overlapping windows of a grid's sizes, each shifted against the one before by a share of its side (the stride).

In: a picture. Out: the windows, coarse to fine, row by row, all with score 1. Where the stride does not divide the
side, the last window is flush with the border. Level 3 has 84 windows at stride 0.5 and 276 at 0.25; stride 1 is the
grid. With `most`, only the coarsest stay.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from resight.encode.descriptors.regions.grid import FINEST_LEVEL
from resight.encode.regions import Proposals
from resight.errors import RecipeError
from resight.plugins import check_range
from resight.types import FloatArray, Picture

MOST_WINDOWS = 10_000  # beyond that a stride is a typing error
TINY = 1e-9  # of a window: 2 / 0.1 is not quite 20


@dataclass(frozen=True)
class Config:
    level: int = 3  # finest level; windows of level n have 1 / (n + 1) of the image's sides; 0: the whole image
    stride: float = 0.5  # shift between windows, as a share of their side, above 0 to 1
    most: int | None = None  # most windows per image, the coarsest first; None: all

    def __post_init__(self) -> None:
        check_range("most", 1 if self.most is None else self.most, 1)
        check_windows(self.level, self.stride)


def build(config: Config) -> "Sliding":
    return Sliding(config)


class Sliding:
    def __init__(self, config: Config) -> None:
        self.fingerprint = f"sliding(level={config.level}, stride={config.stride}, most={config.most})"
        self.finest = float(config.level + 1)
        self._config = config

    def propose(self, picture: Picture) -> Proposals:
        boxes = sliding(*picture.size, self._config.level, self._config.stride)[: self._config.most]
        return Proposals(boxes, np.ones(len(boxes), np.float32))


def sliding(width: float, height: float, level: int = 3, stride: float = 0.5) -> FloatArray:
    """The boxes [n, 4] of all levels up to `level`."""
    check_windows(level, stride)
    return np.concatenate([_slide(width, height, parts, stride) for parts in range(1, level + 2)])


def check_windows(level: int, stride: float) -> None:
    check_range("level", level, 0, FINEST_LEVEL)
    if not 0 < stride <= 1:
        raise RecipeError(
            f"stride = {stride} is out of range", expected="above 0, up to 1", actual=str(stride), fix="e.g. 0.5"
        )
    number = (level / stride + 1) ** 2
    if number > MOST_WINDOWS:
        raise RecipeError(
            f"stride = {stride} gives too many windows",
            expected=f"at most {MOST_WINDOWS:,} of the finest level",
            actual=f"about {number:,.0f}",
            fix="e.g. stride = 0.25",
        )


def _slide(width: float, height: float, parts: int, stride: float) -> FloatArray:
    """Windows whose sides are 1 / `parts` of the image's."""
    starts = _start_windows(parts, stride)
    x, y = starts * (width / parts), starts * (height / parts)
    return np.array([(left, top, left + width / parts, top + height / parts) for top in y for left in x], np.float32)


def _start_windows(parts: int, stride: float) -> NDArray[np.float64]:
    """The starts of windows of length 1 on a side of length `parts`."""
    starts = stride * np.arange(int((parts - 1) / stride + TINY) + 1, dtype=np.float64)
    if starts[-1] < parts - 1 - TINY:
        starts = np.append(starts, parts - 1)
    return starts
