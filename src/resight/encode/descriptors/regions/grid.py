"""Nested grids of cells that do not overlap, each finer than the one before.

In: a picture. Out: its cells, coarse to fine, row by row, all with score 1. Level n adds a grid of
about (n + 1)² cells:

    even     (n + 1) × (n + 1) cells of the image's own proportions: 1, 5, 14, 30 boxes at levels 0 to 3 (Patchify)
    square   at most (n + 1)² cells, as square as possible: a panorama of 20:1 is cut into a row of them
"""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from resight.encode.regions import Proposals
from resight.plugins import check_range
from resight.types import FloatArray, Picture

FINEST_LEVEL = 8
Cells = Literal["even", "square"]


@dataclass(frozen=True)
class Config:
    level: int = 3  # finest level; level n adds about (n + 1)² cells; 0: only the whole image
    cells: Cells = "even"  # even: cells with the image's proportions; square: cells as square as possible

    def __post_init__(self) -> None:
        check_range("level", self.level, 0, FINEST_LEVEL)


def build(config: Config) -> "Grid":
    return Grid(config)


class Grid:
    def __init__(self, config: Config) -> None:
        self.fingerprint = f"grid(level={config.level}, cells={config.cells})"
        self.finest = float(config.level + 1)
        self._config = config

    def propose(self, picture: Picture) -> Proposals:
        boxes = grid(*picture.size, self._config.level, self._config.cells)
        return Proposals(boxes, np.ones(len(boxes), np.float32))


def grid(width: float, height: float, level: int = 3, cells: Cells = "even") -> FloatArray:
    """The boxes [n, 4] of all levels up to `level`."""
    check_range("level", level, 0, FINEST_LEVEL)
    counts = [choose_counts(width, height, parts, cells) for parts in range(1, level + 2)]
    return np.concatenate([_tile(width, height, columns, rows) for columns, rows in counts])


def choose_counts(width: float, height: float, parts: int, cells: Cells) -> tuple[int, int]:
    """Columns and rows of the grid of about parts² cells."""
    if cells == "even":
        return parts, parts
    options = [(parts**2 // rows, rows) for rows in range(1, parts**2 + 1)]
    return min(options, key=lambda option: abs(math.log(width / option[0] * option[1] / height)))


def _tile(width: float, height: float, columns: int, rows: int) -> FloatArray:
    x, y = np.linspace(0, width, columns + 1), np.linspace(0, height, rows + 1)
    return np.array(
        [(x[column], y[row], x[column + 1], y[row + 1]) for row in range(rows) for column in range(columns)],
        np.float32,
    )
