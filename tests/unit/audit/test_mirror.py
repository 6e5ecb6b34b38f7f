import numpy as np
from builders import detect, draw_texture

from resight.audit.dedup.dct_signature import ORDER, mirror_features


def test_mirrored_features_are_those_of_the_mirrored_picture():
    pixels = draw_texture(np.random.default_rng(1))
    made = mirror_features(detect(pixels), (0, 0, pixels.shape[1], pixels.shape[0]))
    real = detect(np.ascontiguousarray(pixels[:, ::-1]))
    apart = np.abs(made.points[:, None, :2] - real.points[None, :, :2]).sum(axis=2)
    turned = np.abs((made.points[:, None, 3] - real.points[None, :, 3] + 180) % 360 - 180)
    nearest = (apart + turned).argmin(axis=1)
    met = (apart + turned).min(axis=1) < 2
    assert met.mean() > 0.6
    alike = (made.vectors[met] * real.vectors[nearest[met]]).sum(axis=1)
    assert np.median(alike) > 0.99


def test_mirroring_twice_changes_nothing():
    assert (ORDER[ORDER] == np.arange(128)).all()


def test_a_box_is_mirrored_about_its_own_middle():
    features = detect(draw_texture(np.random.default_rng(2)))
    moved = mirror_features(features, (100, 0, 300, 200))
    assert np.allclose(moved.points[:, 0], 399 - features.points[:, 0])
