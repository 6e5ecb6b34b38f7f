import numpy as np
import pytest
from support.builders import keypoint_features

from resight.encode import codebook as codebooks
from resight.encode.descriptors._vocabulary import sum_residuals
from resight.encode.descriptors.vlad import Vlad, aggregate

BOOK = codebooks.make(np.array([[0, 0], [10, 0]], np.float32))


def rows(*values: tuple[float, float]) -> np.ndarray:
    return np.array(values, np.float32).reshape(-1, 2)


def test_residuals_are_summed_for_each_word_that_occurs():
    words, residuals = sum_residuals(rows((1, 0), (10, 3), (0, 2)), BOOK, count=1)
    assert words.tolist() == [0, 1]
    assert residuals.tolist() == [[1, 2], [0, 3]]


def test_a_word_that_does_not_occur_is_not_listed():
    words, residuals = sum_residuals(rows((10, 3), (9, 0)), BOOK, count=1)
    assert words.tolist() == [1]
    assert residuals.tolist() == [[-1, 3]]


def test_a_feature_can_be_given_to_two_words():
    words, residuals = sum_residuals(rows((1, 2), (7, 0)), BOOK, count=2)
    assert words.tolist() == [0, 1]
    assert residuals.tolist() == [[8, 2], [-12, 2]]


def test_vlad_is_normalised_word_by_word_and_then_as_a_whole():
    # word 0: (1, 2) / √5, word 1: (0, 1); both together have length √2
    vector = aggregate(rows((1, 0), (10, 3), (0, 2)), BOOK)
    np.testing.assert_allclose(vector, [1 / 10**0.5, 2 / 10**0.5, 0, 1 / 2**0.5], rtol=1e-6)


def test_the_place_of_a_word_that_does_not_occur_stays_zero():
    np.testing.assert_allclose(aggregate(rows((3, 4)), BOOK), [0.6, 0.8, 0, 0], rtol=1e-6)


def test_many_equal_features_weigh_no_more_than_one():
    once, often = aggregate(rows((3, 4), (10, 2)), BOOK), aggregate(rows((3, 4), *[(10, 2)] * 50), BOOK)
    np.testing.assert_allclose(often, once, rtol=1e-6)


@pytest.mark.parametrize("features", [rows(), rows((10, 0))], ids=["no feature", "a feature on its centre"])
def test_an_image_without_residuals_is_the_zero_vector(features: np.ndarray):
    assert aggregate(features, BOOK).tolist() == [0, 0, 0, 0]


def test_one_row_an_image():
    described = Vlad(BOOK).describe(keypoint_features([[3, 4]], "x"), "database")
    assert described.ids == ("x",)
    assert described.vectors.shape == (1, 4) and described.vectors.dtype == np.float32
    assert described.owners.tolist() == [0]
    assert described.words is None and described.points is None


def test_the_features_that_were_given_stay_as_they_were():
    features = rows((1, 0), (10, 3))
    aggregate(features, BOOK)
    assert features.tolist() == [[1, 0], [10, 3]]
