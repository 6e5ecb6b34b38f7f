"""Posting lists that are added up: by hand, and the compiled kernel against its numpy twin."""

import numpy as np
import pytest

from resight.kernels import dispatch, numpy_reference
from resight.kernels.numpy_reference import GAINS, Gain

QUERY = np.array([2, 1], np.float32)
STARTS, STOPS = np.array([0, 2]), np.array([2, 4])
IMAGES = np.array([0, 2, 1, 2], np.int32)
VALUES = np.array([3, 1, 1, 4], np.float32)

needs_kernel = pytest.mark.skipif(dispatch.load_native() is None, reason="the compiled kernels are not built")


@pytest.mark.parametrize("compiled", ["0", "numpy"], ids=["compiled where it can be", "numpy"])
@pytest.mark.parametrize(
    ("gain", "expected"),
    # image 0: (2, 3); image 1: (1, 1); image 2: (2, 1) and (1, 4); image 3: nothing
    [("product", [6, 1, 6, 0]), ("overlap", [4, 2, 4, 0]), ("chi2", [24 / 5, 2, 8 / 3 + 16 / 5, 0])],
)
def test_what_words_add_by_hand(monkeypatch: pytest.MonkeyPatch, compiled: str, gain: Gain, expected: list[float]):
    monkeypatch.setenv("RESIGHT_KERNELS", compiled)
    totals = dispatch.add_postings(QUERY, STARTS, STOPS, IMAGES, VALUES, gain, 4)
    np.testing.assert_allclose(totals, expected, rtol=1e-6)


@pytest.mark.parametrize("gain", GAINS)
def test_both_ways_give_the_same_totals(gain: Gain):
    rng = np.random.default_rng(0)
    lengths = rng.integers(0, 300, 40)
    stops = np.cumsum(lengths)
    images = np.concatenate([np.sort(rng.choice(300, length, replace=False)) for length in lengths]).astype(np.int32)
    values, query = rng.random(len(images)).astype(np.float32), rng.random(40).astype(np.float32)
    arguments = (query, stops - lengths, stops, images, values, gain, 300)
    np.testing.assert_allclose(dispatch.add_postings(*arguments), numpy_reference.add_postings(*arguments), rtol=1e-4)


def test_no_words_add_nothing():
    none = np.zeros(0, np.int64)
    empty = np.zeros(0, np.float32)
    assert dispatch.add_postings(empty, none, none, IMAGES, VALUES, "product", 2).tolist() == [0, 0]


@needs_kernel
@pytest.mark.parametrize(
    ("starts", "stops", "images"),
    [([0, 2], [2, 5], IMAGES), ([-1, 2], [2, 4], IMAGES), ([2, 2], [1, 4], IMAGES), ([0, 2], [2, 4], IMAGES - 1)],
    ids=["a list that ends too late", "one that starts too early", "one that ends before it starts", "no such image"],
)
def test_damaged_lists_are_refused(starts: list[int], stops: list[int], images: np.ndarray):
    with pytest.raises(ValueError, match="do not fit together"):
        dispatch.add_postings(QUERY, np.array(starts), np.array(stops), images, VALUES, "product", 3)


CODES = np.array([[0b0000_0001], [0b0000_0111], [0b1111_1111], [0b0000_0000]], np.uint8)
GAIN_OF_BITS = np.array([10, 5, 2, 1, 0, 0, 0, 0, 0], np.float64)


@pytest.mark.parametrize("compiled", ["0", "numpy"], ids=["compiled where it can be", "numpy"])
def test_what_codes_add_by_hand(monkeypatch: pytest.MonkeyPatch, compiled: str):
    monkeypatch.setenv("RESIGHT_KERNELS", compiled)
    query = np.array([[0b0000_0001], [0b0000_0000]], np.uint8)
    # word 0 (weight 1): image 0 differs by 0 bits, image 2 by 2; word 1 (weight 3): image 1 by 8, image 2 by 0
    totals = dispatch.add_codes(query, np.array([1.0, 3.0]), STARTS, STOPS, IMAGES, CODES, GAIN_OF_BITS, 4)
    assert totals.tolist() == [10, 0, 2 + 30, 0]


@pytest.mark.parametrize("size", [1, 3, 8, 16, 19])
def test_both_ways_add_the_same_codes(size: int):
    rng = np.random.default_rng(size)
    lengths = rng.integers(0, 200, 30)
    stops = np.cumsum(lengths)
    images = np.concatenate([np.sort(rng.choice(300, length, replace=False)) for length in lengths]).astype(np.int32)
    codes, query = (rng.integers(0, 256, (count, size), np.uint8) for count in (len(images), 30))
    arguments = (query, rng.random(30), stops - lengths, stops, images, codes, rng.random(8 * size + 1), 300)
    np.testing.assert_allclose(dispatch.add_codes(*arguments), numpy_reference.add_codes(*arguments), rtol=1e-12)


@needs_kernel
@pytest.mark.parametrize(
    ("stops", "images", "codes"),
    [([2, 5], IMAGES, CODES), ([2, 4], IMAGES - 1, CODES), ([2, 4], IMAGES, CODES[:3])],
    ids=["a list that ends too late", "no such image", "a code too few"],
)
def test_damaged_lists_of_codes_are_refused(stops: list[int], images: np.ndarray, codes: np.ndarray):
    query = np.zeros((2, 1), np.uint8)
    with pytest.raises(ValueError, match="do not fit together"):
        dispatch.add_codes(query, np.ones(2), STARTS, np.array(stops), images, codes, GAIN_OF_BITS, 3)
