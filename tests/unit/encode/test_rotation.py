"""Turned queries: where pixels go, how large the picture becomes, and what fills its corners."""

import numpy as np
from support.builders import draw_texture, make_picture

from resight.encode.rotation import TurnedQueries, list_angles, turn
from resight.types import Query


def test_angles_are_even_and_leave_out_upright() -> None:
    assert list_angles(4) == [90.0, 180.0, 270.0]
    assert list_angles(1) == []


def test_quarter_turns_are_exact_and_swap_the_sides() -> None:
    pixels = draw_texture(np.random.default_rng(0), 60, 40)
    picture = make_picture(pixels)
    for quarters in (1, 2, 3):
        turned = turn(picture, None, 90.0 * quarters)
        np.testing.assert_array_equal(turned.pixels, np.rot90(pixels, quarters))
        assert turned.size == ((40, 60) if quarters % 2 else (60, 40))


def test_a_box_is_turned_about_its_middle_and_its_corners_show_the_ground_around_it() -> None:
    pixels = np.zeros((100, 100, 3), np.uint8)
    pixels[30:70, 30:70] = 100  # the box
    pixels[48:52, 66:70] = 255  # a spot at its right edge
    turned = turn(make_picture(pixels), (30, 30, 70, 70), 90.0)
    assert turned.size == (40, 40)
    assert turned.ref.box is None
    assert (turned.pixels[:4, 18:22] == 255).all()  # now at its upper edge
    turned = turn(make_picture(pixels), (30, 30, 70, 70), 45.0)
    assert (turned.pixels[0, 0] == 0).all()  # beyond the box, inside the picture
    assert (turned.pixels[20, 10] == 100).all()


def test_the_mirror_image_fills_what_lies_beyond_the_picture() -> None:
    turned = turn(make_picture(np.full((50, 50, 3), 77, np.uint8)), None, 30.0)
    assert (turned.pixels == 77).all()


def test_a_picture_decoded_reduced_keeps_the_size_of_its_original() -> None:
    picture = make_picture(draw_texture(np.random.default_rng(0), 60, 40), size=(120, 80))
    turned = turn(picture, (0, 0, 120, 80), 90.0)
    assert turned.size == (80, 120)
    assert turned.pixels.shape == (60, 40, 3)


def test_rotations_are_encoded_once_and_only_when_asked_for() -> None:
    made: list[int] = []
    query = Query("q", (1, 1), (0, 0, 1, 1), ())

    def make() -> tuple[Query, ...]:
        made.append(1)
        return (query,)

    turned = TurnedQueries(make)
    assert made == []
    assert turned() == turned() == (query,)
    assert made == [1]
