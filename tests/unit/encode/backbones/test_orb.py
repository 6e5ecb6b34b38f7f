import numpy as np
from support.builders import draw_texture, fill_picture, make_picture, turn_about, warp

from resight.encode import backbones
from resight.types import Features

PIXELS = draw_texture(np.random.default_rng(0))


def detect(pixels: np.ndarray, **settings) -> Features:
    (features,) = backbones.build("orb", **settings).extract([make_picture(pixels)])
    return features


def test_codes_are_256_packed_bits():
    features = detect(PIXELS)
    assert features.patches.dtype == np.uint8
    assert features.patches.shape[2] == 32


def test_fewer_features_are_the_strongest_of_many():
    many, few = detect(PIXELS, features=300), detect(PIXELS, features=40)
    assert many.patches.shape[1] > few.patches.shape[1] == 40
    assert detect(PIXELS, features=1).patches.shape[1] == 1


def test_a_picture_without_corners_has_no_rows():
    (features,) = backbones.build("orb").extract([fill_picture(64, 64)])
    assert features.patches.shape == (1, 0, 32)
    assert features.points is not None and features.points.shape == (1, 0, 4)


def test_codes_of_a_turned_picture_find_their_own_points():
    turn = turn_about(160, 120, 20)
    first, second = detect(PIXELS), detect(warp(PIXELS, turn))
    assert first.points is not None and second.points is not None
    differing = np.bitwise_count(first.patches[0][:, None] ^ second.patches[0][None]).sum(axis=2)
    close = np.flatnonzero(differing.min(axis=1) < 30)
    moved = np.c_[first.points[0, close, :2], np.ones(len(close))] @ turn[:2].T
    distances = np.linalg.norm(moved - second.points[0, differing[close].argmin(axis=1), :2], axis=1)
    assert len(close) > 30
    assert np.mean(distances < 4) > 0.8


def test_points_of_a_reduced_picture_lie_in_the_original():
    whole = make_picture(np.kron(PIXELS, np.ones((3, 3, 1), np.uint8)))
    (features,) = backbones.build("orb", max_side=320).extract([whole])
    plain = detect(PIXELS)
    assert features.points is not None and plain.points is not None
    np.testing.assert_allclose(features.points[0, :, :2], 3 * (plain.points[0, :, :2] + 0.5) - 0.5, atol=1e-2)
