import numpy as np
import pytest

from resight.vectors import l2_normalise, l2_normalise_exact


def test_rows_have_length_one_and_zeros_stay_zero():
    rows = l2_normalise(np.array([[3, 4], [0, 0]], np.uint8))
    assert rows.dtype == np.float32
    assert rows.tolist() == [[pytest.approx(0.6), pytest.approx(0.8)], [0, 0]]


def test_what_is_shorter_than_the_floor_stays_short():
    assert l2_normalise(np.array([3e-7, 4e-7]), floor=1e-6).tolist() == pytest.approx([0.3, 0.4])


def test_the_exact_one_keeps_its_dtype():
    assert l2_normalise_exact(np.array([3.0, 4.0])).dtype == np.float64
