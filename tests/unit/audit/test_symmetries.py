import numpy as np
import pytest
from builders import draw_texture

from resight.audit.dedup import dct_signature
from resight.audit.dedup.grey_thumbnails import shrink

GREY = shrink(draw_texture(np.random.default_rng(3)))
POSITIONS = [np.rot90(side, turn) for side in (GREY, GREY[:, ::-1]) for turn in range(4)]


@pytest.mark.parametrize("number", range(8))
def test_each_position_of_a_square_is_one_of_the_eight_and_known_as_mirrored_or_not(number):
    turned = dct_signature.describe(np.ascontiguousarray(POSITIONS[number])[None])[0]
    found = [
        (float(laid[0] @ turned), mirrored) for mirrored, laid in dct_signature.lay(dct_signature.describe(GREY[None]))
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
