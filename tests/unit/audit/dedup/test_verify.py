import numpy as np
import pytest
from support.builders import draw_texture

from resight.audit.dedup.grey_thumbnails import shrink
from resight.audit.dedup.verify import reduce_transform, register, turn_whole

PIXELS = draw_texture(np.random.default_rng(4), 400, 300)
OTHER = draw_texture(np.random.default_rng(5), 400, 300)
WHOLE = (0.0, 0.0, 400.0, 300.0)


def test_a_picture_agrees_with_itself_everywhere():
    laid = register(shrink(PIXELS), shrink(PIXELS), np.eye(3))
    assert laid.agreement == 1
    assert (laid.share_a, laid.share_b, laid.region_a) == (1, 1, (0, 0, 1, 1))


def test_a_crop_covers_its_part_of_the_picture_and_agrees_there():
    part = PIXELS[60:210, 100:300]  # a quarter of the area
    onto = np.array([[1.0, 0, -100], [0, 1, -60], [0, 0, 1]])
    laid = register(shrink(PIXELS), shrink(part), reduce_transform(onto, (WHOLE, (0, 0, 200, 150)), 96))
    assert laid.agreement > 0.85
    assert laid.share_a == pytest.approx(0.25, abs=0.02)
    assert laid.share_b > 0.97
    assert laid.region_a == pytest.approx((0.25, 0.2, 0.75, 0.7), abs=0.01)
    assert laid.region_b == (0, 0, 1, 1)


@pytest.mark.parametrize("quarters", range(4))
def test_turned_pictures_agree_at_the_right_turn_alone(quarters):
    turned = np.ascontiguousarray(np.rot90(shrink(PIXELS), -quarters))
    found = [register(shrink(PIXELS), turned, turn_whole(turn, 96)).agreement for turn in range(4)]
    assert np.argmax(found) == quarters
    assert found[quarters] == 1
    assert sorted(found)[-2] < 0.3


def test_other_pictures_do_not_agree_whatever_their_frames():
    framed = [np.pad(pixels, ((60, 60), (60, 60), (0, 0)), constant_values=255) for pixels in (PIXELS, OTHER)]
    assert register(*map(shrink, framed), np.eye(3)).agreement < 0.5
    assert register(shrink(PIXELS), shrink(OTHER), np.eye(3)).agreement < 0.2


def test_light_does_not_matter_and_letters_spoil_only_where_they_are():
    darker = (255 * (PIXELS / 255.0) ** 1.5 * 0.8).astype(np.uint8)
    assert register(shrink(PIXELS), shrink(darker), np.eye(3)).agreement > 0.97
    written = PIXELS.copy()
    written[100:150, :] = 255
    assert 0.5 < register(shrink(PIXELS), shrink(written), np.eye(3)).agreement < 0.85


def test_a_small_overlap_says_nothing():
    onto = np.array([[1.0, 0, 90], [0, 1, 90], [0, 0, 1]])
    assert register(shrink(PIXELS), shrink(PIXELS), onto).agreement == 0
