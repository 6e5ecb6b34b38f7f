import numpy as np
import pytest

from resight.index.rows.scoring import HEIGHT, deterministic_dot


def make_rows(count: int, dimensions: int) -> np.ndarray:
    return np.random.default_rng(dimensions).normal(size=(count, dimensions)).astype(np.float32)


def test_products_are_dot_products():
    vectors = np.array([[1, 2], [3, -4]], np.float32)
    assert deterministic_dot(vectors, np.array([[10, 1]], np.float32)).tolist() == [[12], [26]]
    assert deterministic_dot(vectors, np.array([[10, 1], [0, 2]], np.float32)).tolist() == [[12, 4], [26, -8]]


def test_no_rows_have_no_products():
    assert deterministic_dot(np.zeros((0, 3), np.float32), np.ones((2, 3), np.float32)).shape == (0, 2)


@pytest.mark.parametrize("kernels", ["compiled", "numpy"])
@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("dimensions", [8, 352, 1280])
def test_the_product_of_a_row_does_not_depend_on_the_others(
    monkeypatch: pytest.MonkeyPatch, dimensions: int, count: int, kernels: str
):
    """A plain matrix product fails here: its last rows, and those of short parts, differ in the last bit."""
    if kernels == "numpy":
        monkeypatch.setenv("RESIGHT_KERNELS", "numpy")
    vectors, queries = make_rows(2 * HEIGHT + 5, dimensions), make_rows(4, dimensions)[:count]
    whole = deterministic_dot(vectors, queries)
    parts = [(0, 1, 1), (0, 2, 1), (1, 8, 1), (3, 3 + HEIGHT, 1), (HEIGHT + 2, None, 1), (7, None, 3)]
    for part in (slice(*bounds) for bounds in parts):
        assert np.array_equal(deterministic_dot(vectors[part], queries), whole[part])
