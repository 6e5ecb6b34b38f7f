"""Pairs of key points: by hand, and the compiled kernels against numpy on random rows and on rows of equal length."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resight.kernels import dispatch, numpy_reference
from resight.kernels.dispatch import has_vnni, pair_points
from resight.vectors import l2_normalise

compiled = pytest.mark.skipif(dispatch.load_native() is None, reason="the compiled kernels are not built")
Rows = np.ndarray


def draw(seed: int, queries: int, rows: int, d: int, least: int) -> tuple[Rows, Rows]:
    """Half of the rows of the image are those of the query, a little changed."""
    rng = np.random.default_rng(seed)
    query = rng.integers(least, 128, (queries, d))
    image = rng.integers(least, 128, (rows, d))
    same = min(queries, rows) // 2
    image[:same] = np.clip(query[:same] + rng.integers(-30, 31, (same, d)), least, 127)
    return query.astype(np.int8), image.astype(np.int8)


def test_a_pair_is_clearly_nearest_in_angle_whatever_the_lengths(monkeypatch: pytest.MonkeyPatch):
    query = np.int8([[100, 0, 0, 0], [0, 10, 1, 0], [1, 1, 1, 1]])
    image = np.int8([[0, 127, 0, 0], [0, 0, 5, 0], [3, 0, 0, 0], [0, 0, 0, 0]])
    for kernels in ("0", "numpy"):
        monkeypatch.setenv("RESIGHT_KERNELS", kernels)
        assert pair_points(query, image, 0.9, True).tolist() == [[0, 2], [1, 0]]


@compiled
@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**20), st.integers(2, 70), st.integers(2, 70), st.integers(1, 130), st.booleans(), st.booleans())
def test_the_kernels_find_the_pairs_of_numpy(seed: int, queries: int, rows: int, d: int, negative: bool, mutual: bool):
    query, image = draw(seed, queries, rows, d, -127 if negative else 0)
    unit = (l2_normalise(part.astype(np.float32), floor=1e-6) for part in (query, image))
    expected = numpy_reference.pair_points(*unit, 0.9, mutual)
    for vnni in {False, has_vnni()}:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(dispatch, "has_vnni", lambda vnni=vnni: vnni)
            found = pair_points(query, image, 0.9, mutual)
        if d > 8:  # in few dimensions cosines are equal, and rounding decides
            assert sorted(map(tuple, found.tolist())) == sorted(map(tuple, expected.tolist()))


@compiled
def test_both_kinds_of_processors_give_the_same(monkeypatch: pytest.MonkeyPatch):
    if not has_vnni():
        pytest.skip("this processor has no AVX-512 VNNI")
    query, image = draw(1, 300, 400, 64, -127)
    first = pair_points(query, image, 0.95, True)
    monkeypatch.setattr(dispatch, "has_vnni", lambda: False)
    np.testing.assert_array_equal(pair_points(query, image, 0.95, True), first)
    assert len(first) > 100


def test_one_row_has_no_second_best():
    query, image = draw(2, 1, 9, 16, 0)
    assert pair_points(query, image, 0.9, True).shape == (0, 2)
    assert pair_points(image, query, 0.9, True).shape == (0, 2)


@compiled
def test_arrays_that_do_not_fit_are_refused():
    native = dispatch.load_native()
    query, image = draw(3, 5, 6, 8, 0)
    for nearest, best, d in ((5, 16, 8), (16, 5, 8), (16, 16, 6), (16, 16, 16)):
        with pytest.raises(ValueError, match="do not fit"):
            native.pair_points(
                query, image, d, 0.81, True, False, np.zeros(nearest, np.int32), np.zeros(best, np.float32)
            )
    with pytest.raises(ValueError, match="do not fit"):
        native.count_support(np.zeros((6, 3)), 1.0, 1.0, np.zeros((2, 6)), np.ones(5), np.zeros((2, 5), np.int32))
