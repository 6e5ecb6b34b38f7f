"""One vector per image that knows where things are: the mean token of each cell of a coarse grid, one after the other.

    x_i ← x_i / |x_i|,  c_ab = mean of x_i - mean(x) over the patches in cell (a, b),  v = L2([c_11, c_12, …])

In: a grid of patches [N, D]. Out: one vector [cells² · D]. The image's own mean is subtracted, because all patches of a
picture have much in common. A dot product of two such vectors compares each part of an image with the same part of
another: for images of the same frame and scale, such as crops of maps around catalogued craters.
"""

from dataclasses import dataclass

import numpy as np

from resight.encode.descriptors.tokens import require_grid
from resight.plugins import check_range
from resight.types import Descriptors, Features, FloatArray, Role
from resight.vectors import l2_normalise


@dataclass(frozen=True)
class Config:
    cells: int = 4  # cells along each side of the image

    def __post_init__(self) -> None:
        check_range("cells", self.cells, 1, 64)


def build(config: Config) -> "Cells":
    return Cells(config)


class Cells:
    def __init__(self, config: Config) -> None:
        self.fingerprint = f"cells({config.cells})"
        self._cells = config.cells

    def describe(self, features: Features, role: Role) -> Descriptors:  # noqa: ARG002 - both sides alike
        require_grid(features, "cells")
        assert features.grid is not None
        tokens = l2_normalise(np.asarray(features.patches, np.float32))
        means = average_cells(features.grid, self._cells) @ (tokens - tokens.mean(axis=1, keepdims=True))
        vectors = l2_normalise(means.reshape(len(tokens), -1), floor=1e-6)
        return Descriptors(features.ids, vectors, np.arange(len(tokens), dtype=np.int32))


def average_cells(grid: tuple[int, int], cells: int) -> FloatArray:
    """[cells², N]: times patches [N, D] it gives the mean of each cell; 0 for a cell without patches."""
    rows, columns = (np.arange(count) * cells // count for count in grid)
    cell = (rows[:, None] * cells + columns).ravel()
    member = np.asarray(cell == np.arange(cells**2)[:, None], np.float32)
    return np.asarray(member / np.maximum(member.sum(axis=1, keepdims=True), 1), np.float32)
