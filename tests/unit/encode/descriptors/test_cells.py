"""Cells of a grid, with numbers worked out by hand."""

import numpy as np

from resight.encode.descriptors import build
from resight.encode.descriptors.cells import average_cells
from resight.types import Features


def make_features(patches: list[list[float]], grid: tuple[int, int]) -> Features:
    tokens = np.array(patches, np.float32)[None]
    return Features(("a",), tokens, np.array([[64, 64]], np.int32), grid=grid)


def test_four_patches_in_two_by_two_cells_are_themselves_minus_their_mean() -> None:
    # Of unit length they are (1, 0), (0, 1), (1, 0), (1, 0); their mean is (3/4, 1/4).
    rows = build("cells", cells=2).describe(make_features([[2, 0], [0, 5], [1, 0], [3, 0]], (2, 2)), "database")
    expected = np.array([0.25, -0.25, -0.75, 0.75, 0.25, -0.25, 0.25, -0.25])
    np.testing.assert_allclose(rows.vectors, [expected / np.linalg.norm(expected)], atol=1e-6)


def test_patches_of_one_cell_are_averaged() -> None:
    averages = average_cells((2, 4), 2)
    assert averages.shape == (4, 8)
    np.testing.assert_allclose(averages[0], [0.5, 0.5, 0, 0, 0, 0, 0, 0])
    np.testing.assert_allclose(averages[3], [0, 0, 0, 0, 0, 0, 0.5, 0.5])


def test_more_cells_than_patches_leave_some_empty() -> None:
    averages = average_cells((1, 2), 4)
    assert averages.sum() == 2
    assert (averages.sum(axis=1) <= 1).all()


def test_a_blank_image_is_similar_to_nothing() -> None:
    rows = build("cells", cells=2).describe(make_features([[1, 1]] * 4, (2, 2)), "query")
    assert np.abs(rows.vectors).max() == 0
