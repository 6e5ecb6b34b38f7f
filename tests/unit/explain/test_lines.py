import numpy as np

from resight.explain.draw import WIDTH_LIMIT, colour_by_position, draw_match, equalise, spread
from resight.types import Match

GAP = 4  # 2 % of 100 rows would be 2; 4 is the least


def black(height: int, width: int) -> np.ndarray:
    return np.zeros((height, width, 3), np.uint8)


def match(points) -> Match:
    array = np.array(points, np.float32).reshape(-1, 4)
    return Match("q", "i", len(array), np.eye(3), array)


def test_points_of_the_originals_land_on_the_smaller_pixels():
    # Left is half its original's size: (100, 60) → (50, 30). Right is a quarter: (200, 280) → (50, 70), plus 100 + gap.
    drawn = draw_match(black(100, 100), black(100, 100), match([(100, 60, 200, 280)]), (200, 200), (400, 400))
    assert drawn.shape == (100, 200 + GAP, 3)
    assert drawn[30, 50].max() > 150
    assert drawn[70, 150 + GAP].max() > 150
    assert drawn[50, 100 + GAP // 2].max() > drawn[80, 100 + GAP // 2].max() + 20, "the line crosses halfway"
    assert drawn[70, 50].max() == 0
    assert drawn[30, 150 + GAP].max() == 0


def test_the_shorter_image_grows_to_the_taller_ones_height():
    drawn = draw_match(black(50, 100), black(200, 80), match([]), (100, 50), (80, 200))
    assert drawn.shape == (200, 400 + GAP + 80, 3)


def test_without_points_both_images_are_as_they_were():
    left = np.full((60, 40, 3), 10, np.uint8)
    right = np.full((60, 50, 3), 200, np.uint8)
    drawn = draw_match(left, right, match([]), (40, 60), (50, 60))
    assert (drawn[:, :40] == 10).all()
    assert (drawn[:, -50:] == 200).all()


def test_the_arguments_are_left_alone():
    left, right = black(60, 60), black(60, 60)
    draw_match(left, right, match([(10, 10, 20, 20), (40, 40, 50, 50)]), (60, 60), (60, 60))
    assert not left.any()
    assert not right.any()


def test_a_limit_of_no_lines_draws_none():
    drawn = draw_match(black(60, 60), black(60, 60), match([(10, 10, 20, 20)]), (60, 60), (60, 60), limit=0)
    assert not drawn[:, :60].any()


def test_a_panorama_does_not_make_the_picture_endless():
    left, right = equalise(black(20, 2000), black(1000, 1000))
    assert len(left) == len(right)
    assert left.shape[1] + right.shape[1] <= WIDTH_LIMIT + 1


def test_spread_takes_the_corners_of_a_cluttered_square():
    clutter = [(0.5 + 0.001 * i, 0.5) for i in range(20)]
    corners = [(0, 0), (1, 0), (0, 1), (1, 1)]
    chosen = spread(np.array(clutter + corners, np.float32), 5)
    assert set(range(20, 24)) < set(chosen.tolist())
    assert len(chosen) == 5


def test_spread_keeps_all_when_there_are_few():
    assert spread(np.zeros((3, 2), np.float32), 3).tolist() == [0, 1, 2]


def test_points_at_one_place_are_chosen_once_each():
    chosen = spread(np.zeros((9, 2), np.float32), 4)
    assert len(set(chosen.tolist())) == 4


def test_neighbours_have_like_colours_and_opposite_corners_do_not():
    places = np.array([(0, 0), (2, 2), (100, 100), (100, 0)], np.float32)
    here, beside, opposite, across = (np.array(colour) for colour in colour_by_position(places))
    assert np.abs(here - beside).max() < 25
    assert np.abs(here - opposite).max() > 100
    assert np.abs(here - across).max() > 100


def test_one_place_alone_has_a_colour():
    assert len(colour_by_position(np.array([(5, 5)], np.float32))) == 1
