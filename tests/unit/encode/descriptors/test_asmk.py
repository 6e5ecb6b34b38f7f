import numpy as np
from support.builders import keypoint_features

from resight.encode import codebook as codebooks
from resight.encode.descriptors.asmk import Asmk

BOOK = codebooks.make(np.array([[0.0] * 8, [10.0] * 8, [90.0] * 8], np.float32))
RISES = [1, -1, 1, -1, 1, 1, -1, -1]  # 10101100
FALLS = [-3, 0, -3, 0, 0, 0, 2, 0]


def test_a_bit_says_whether_the_sum_of_the_residuals_is_above_zero():
    rows = Asmk(BOOK, 1).describe(keypoint_features([RISES], "x"), "database")
    assert rows.ids == ("x",)
    assert rows.words is not None and rows.words.tolist() == [0]
    assert rows.vectors.tolist() == [[0b10101100]]
    assert rows.owners.tolist() == [0]
    assert (rows.vectors.dtype, rows.words.dtype, rows.owners.dtype) == (np.uint8, np.int32, np.int32)


def test_features_of_one_word_share_a_row():
    # the sum is -2, -1, -2, -1, 1, 1, 1, -1
    rows = Asmk(BOOK, 1).describe(keypoint_features([RISES, FALLS]), "database")
    assert rows.words is not None and rows.words.tolist() == [0]
    assert rows.vectors.tolist() == [[0b00001110]]


def test_a_sum_of_exactly_zero_is_no_bit():
    rows = Asmk(BOOK, 1).describe(keypoint_features([[0] * 8]), "database")
    assert rows.vectors.tolist() == [[0]]


def test_residuals_are_taken_from_the_words_own_centre_and_words_rise():
    second = [11, 11, 9, 9, 9, 9, 9, 11]
    rows = Asmk(BOOK, 1).describe(keypoint_features([second, RISES]), "database")
    assert rows.words is not None and rows.words.tolist() == [0, 1]
    assert rows.vectors.tolist() == [[0b10101100], [0b11000001]]


def test_a_query_gives_each_feature_to_several_words_and_an_image_to_one():
    describer = Asmk(BOOK, 2)
    features = keypoint_features([[4, 4, 4, 4, 4, 4, -4, -4]])
    query, image = describer.describe(features, "query"), describer.describe(features, "database")
    assert query.words is not None and image.words is not None
    assert (query.words.tolist(), query.vectors.tolist()) == ([0, 1], [[0b11111100], [0]])
    assert (image.words.tolist(), image.vectors.tolist()) == ([0], [[0b11111100]])


def test_an_image_without_features_has_no_rows_of_the_usual_width():
    rows = Asmk(BOOK, 2).describe(keypoint_features(np.zeros((0, 8))), "query")
    assert rows.vectors.shape == (0, 1)
    assert rows.words is not None and rows.words.shape == (0,)
    assert rows.owners.shape == (0,)
