import numpy as np
import pytest
from support.builders import detect, draw_texture, keypoint_features

from resight.encode import descriptors
from resight.encode.descriptors.local import to_int8
from resight.errors import RecipeError
from resight.types import Features


def test_the_largest_entry_of_a_row_becomes_127():
    assert to_int8(np.array([[0.5, 1.0, -0.25], [0, -2, 1]], np.float32)).tolist() == [[64, 127, -32], [0, -127, 64]]


def test_the_direction_of_sift_rows_survives_within_one_percent():
    vectors = detect(draw_texture(np.random.default_rng(0))).vectors
    kept = to_int8(vectors).astype(np.float64)
    kept /= np.linalg.norm(kept, axis=1, keepdims=True)
    assert np.linalg.norm(kept - vectors, axis=1).max() < 0.01


def test_a_zero_row_stays_zero():
    assert to_int8(np.zeros((1, 3), np.float32)).tolist() == [[0, 0, 0]]


def test_rows_keep_their_points():
    rows = descriptors.build("local").describe(keypoint_features([[1, 0], [0, 1], [1, 1]], "x"), "query")
    assert rows.ids == ("x",)
    assert rows.owners.tolist() == [0, 0, 0]
    assert rows.vectors.tolist() == [[127, 0], [0, 127], [127, 127]]
    assert rows.vectors.dtype == np.int8
    assert rows.points is not None and rows.points[:, 0].tolist() == [0, 1, 2]


def test_the_first_rows_up_to_the_limit_are_kept():
    rows = descriptors.build("local", limit=2).describe(keypoint_features([[1, 0], [0, 1], [1, 1]]), "database")
    assert rows.vectors.tolist() == [[127, 0], [0, 127]]
    assert rows.points is not None and rows.points[:, 0].tolist() == [0, 1]


def test_rows_of_a_batch_belong_to_their_images():
    both = Features(("a", "b"), np.ones((2, 3, 4), np.float32), np.zeros((2, 2), np.int32), points=np.ones((2, 3, 4)))
    assert descriptors.build("local", limit=2).describe(both, "database").owners.tolist() == [0, 0, 1, 1]


def test_features_without_key_points_are_refused():
    dense = Features(("a",), np.ones((1, 4, 2), np.float32), np.array([[8, 8]], np.int32), grid=(2, 2))
    with pytest.raises(RecipeError, match="needs key points"):
        descriptors.build("local").describe(dense, "database")
