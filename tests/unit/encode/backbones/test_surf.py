import numpy as np
import pytest
from support.builders import draw_texture, fill_picture, make_picture, warp

from resight.encode import backbones
from resight.types import Features

pytest.importorskip("mahotas", reason="mahotas, of the extra `places`, is not installed")
PIXELS = draw_texture(np.random.default_rng(0))


def detect(pixels: np.ndarray, **settings) -> Features:
    (features,) = backbones.build("surf", **settings).extract([make_picture(pixels)])
    return features


def test_vectors_are_64_numbers_of_unit_length():
    features = detect(PIXELS)
    assert features.patches.shape[2] == 64
    np.testing.assert_allclose(np.linalg.norm(features.patches[0], axis=1), 1, rtol=1e-5)


def test_fewer_features_are_the_first_of_many():
    many, few = detect(PIXELS, features=60), detect(PIXELS, features=20)
    assert few.patches.shape[1] == 20
    np.testing.assert_array_equal(few.patches[0], many.patches[0, :20])


@pytest.mark.parametrize(("width", "height"), [(64, 64), (8, 8), (200, 3)])
def test_a_picture_without_blobs_or_too_small_for_any_has_no_rows(width: int, height: int):
    (features,) = backbones.build("surf").extract([fill_picture(width, height)])
    assert features.patches.shape == (1, 0, 64)


def test_vectors_of_a_shifted_picture_find_their_own_points():
    shift = np.array([[1, 0, 8], [0, 1, 5], [0, 0, 1]], np.float64)
    first, second = detect(PIXELS), detect(warp(PIXELS, shift))
    assert first.points is not None and second.points is not None
    similar = first.patches[0] @ second.patches[0].T
    close = np.flatnonzero(similar.max(axis=1) > 0.97)
    distances = np.linalg.norm(
        first.points[0, close, :2] + (8, 5) - second.points[0, similar[close].argmax(axis=1), :2], axis=1
    )
    assert len(close) > 100
    assert np.mean(distances < 2) > 0.9
