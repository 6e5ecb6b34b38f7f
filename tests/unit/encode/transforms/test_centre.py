"""Rows minus the mean of their image's rows, with numbers worked out by hand."""

import numpy as np

from resight.encode.transforms import build
from resight.types import Descriptors


def test_each_image_loses_its_own_mean() -> None:
    vectors = np.array([[1, 0], [0, 1], [1, 0], [1, 0], [0.6, 0.8]], np.float32)
    rows = Descriptors(("a", "b", "c"), vectors, np.array([0, 0, 1, 1, 2], np.int32))
    half = np.sqrt(0.5)
    # a: minus (.5, .5); b: both equal their mean; c: alone, unchanged.
    expected = [[half, -half], [-half, half], [0, 0], [0, 0], [0.6, 0.8]]
    np.testing.assert_allclose(build("centre").apply(rows, "database").vectors, expected, atol=1e-6)
    np.testing.assert_array_equal(rows.vectors, vectors)
