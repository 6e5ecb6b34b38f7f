import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from resight.encode import shrinkage
from resight.encode.shrinkage import choose_intensity, measure, shrink
from resight.errors import InputError


def test_moments_of_the_corners_of_a_square():
    corners = np.array([[0, 0], [2, 0], [0, 2], [2, 2]], np.float32)
    moments = measure(lambda: [corners[:3], corners[3:]])
    assert (moments.rows, moments.mean.tolist(), moments.covariance.tolist()) == (4, [1, 1], [[1, 0], [0, 1]])
    assert moments.fourth == 4  # every corner is √2 from the middle


@given(sizes=st.lists(st.integers(1, 9), min_size=1, max_size=6), at_once=st.integers(1, 5))
def test_blocks_of_any_size_give_the_covariance_of_all_rows(sizes: list[int], at_once: int):
    rows = np.random.default_rng(sum(sizes)).normal(5, 1, (sum(sizes), 3))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shrinkage, "ROWS_AT_ONCE", at_once)
        moments = measure(lambda: np.split(rows, np.cumsum(sizes)[:-1]))
    np.testing.assert_allclose(moments.covariance, np.cov(rows.T, bias=True), atol=1e-9)
    np.testing.assert_allclose(moments.fourth, (np.linalg.norm(rows - rows.mean(axis=0), axis=1) ** 4).mean())


@pytest.mark.parametrize(
    ("fourth", "independent", "intensity"),
    [
        (20, 10, 0.8),  # Ledoit-Wolf (20 - 10) / (10 × 2) = 0.5, OAS 16 / (10 × 2)
        (20, 100, 0.08),  # 0.05, 16 / (100 × 2)
        (110, 100, 0.5),  # heavy tails: (110 - 10) / (100 × 2), 0.08
        (20, 1, 1.0),
        (20, 0, 1.0),
    ],
)
def test_the_intensity_is_the_larger_of_two_estimates(fourth: float, independent: int, intensity: float):
    assert choose_intensity(np.diag([3.0, 1.0]), fourth, independent) == pytest.approx(intensity)


def test_what_is_round_already_is_shrunk_wholly():
    assert choose_intensity(np.eye(3), 9.0, 1000) == 1
    assert choose_intensity(np.array([[7.0]]), 49.0, 1000) == 1
    assert choose_intensity(np.zeros((2, 2)), 0.0, 5) == 1


def test_normal_rows_need_less_shrinkage_the_more_there_are():
    rng = np.random.default_rng(0)
    scales = np.geomspace(1, 10, 20)
    found = [measure(lambda n=n: [rng.normal(size=(n, 20)) * scales]).shrinkage for n in (3, 30, 300, 3000)]
    assert found == sorted(found, reverse=True)
    assert found[0] > 0.5 and found[-1] < 0.02


def test_eigenvalues_move_towards_their_mean():
    assert shrink(np.array([0.0, 4.0]), 0.5).tolist() == [1, 3]
    assert shrink(np.array([0.0, 4.0]), 1).tolist() == [2, 2]
    assert shrink(np.array([1.0, 4.0]), 0).tolist() == [1, 4]


def test_eigenvalues_stay_above_zero():
    assert shrink(np.array([0.0, 4.0]), 0).min() > 0
    assert shrink(np.array([0.0, 0.0]), 0.5).tolist() == [1, 1]


def test_vectors_too_long_for_a_covariance_are_refused():
    with pytest.raises(InputError, match="at most 4,096"):
        measure(lambda: [np.zeros((2, 4097), np.float32)])


def test_vectors_that_are_not_numbers_are_refused():
    with pytest.raises(InputError, match="finite"):
        measure(lambda: [np.array([[1.0, np.nan], [0.0, 1.0]])])
