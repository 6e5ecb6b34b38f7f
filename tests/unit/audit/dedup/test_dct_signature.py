import numpy as np
import pytest
from support.builders import detect, draw_texture

from resight.audit.dedup import dct_signature
from resight.audit.dedup.dct_signature import ORDER, mirror_features
from resight.audit.dedup.grey_thumbnails import shrink

GREY = shrink(draw_texture(np.random.default_rng(3)))
POSITIONS = [np.rot90(side, turn) for side in (GREY, GREY[:, ::-1]) for turn in range(4)]


@pytest.mark.parametrize("number", range(8))
def test_each_position_of_a_square_is_one_of_the_eight_and_known_as_mirrored_or_not(number):
    turned = dct_signature.describe(np.ascontiguousarray(POSITIONS[number])[None])[0]
    found = [
        (float(laid[0] @ turned), mirrored)
        for mirrored, laid in dct_signature.orient(dct_signature.describe(GREY[None]))
    ]
    assert len(found) == 8
    likeness, mirrored = max(found)
    assert likeness > 0.999
    assert mirrored == (number >= 4)
    assert sorted(found)[-2][0] < 0.9


def test_brightness_and_contrast_do_not_matter():
    dim = (GREY * 0.5 + 40).astype(np.uint8)
    one, two = dct_signature.describe(np.stack([GREY, dim]))
    assert one @ two > 0.999


def test_a_picture_of_one_shade_is_like_nothing():
    assert not dct_signature.describe(np.full((1, 96, 96), 90, np.uint8)).any()


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
