import numpy as np
import pytest

from resight.errors import BoxError
from resight.explain.draw import (
    CASING,
    MINT,
    PAIR_COLOURS,
    WIDTH_LIMIT,
    choose_pairs,
    colour_by_position,
    draw_box,
    draw_match,
    draw_quadrilateral,
    draw_token_pairs,
    equalise,
    mark,
    sample_farthest,
    stroke,
)
from resight.types import Match, TokenMatches

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
    chosen = sample_farthest(np.array(clutter + corners, np.float32), 5)
    assert set(range(20, 24)) < set(chosen.tolist())
    assert len(chosen) == 5


def test_spread_keeps_all_when_there_are_few():
    assert sample_farthest(np.zeros((3, 2), np.float32), 3).tolist() == [0, 1, 2]


def test_points_at_one_place_are_chosen_once_each():
    chosen = sample_farthest(np.zeros((9, 2), np.float32), 4)
    assert len(set(chosen.tolist())) == 4


def test_neighbours_have_like_colours_and_opposite_corners_do_not():
    places = np.array([(0, 0), (2, 2), (100, 100), (100, 0)], np.float32)
    here, beside, opposite, across = (np.array(colour) for colour in colour_by_position(places))
    assert np.abs(here - beside).max() < 25
    assert np.abs(here - opposite).max() > 100
    assert np.abs(here - across).max() > 100


def test_one_place_alone_has_a_colour():
    assert len(colour_by_position(np.array([(5, 5)], np.float32))) == 1


def line_up(support: list[float], gap: float = 20.0, chosen: list[int] | None = None) -> TokenMatches:
    """Tokens of 10 × 10 pixels in a row, so far apart; each matches the one of its own number unless told."""
    x = np.arange(len(support), dtype=np.float32) * gap
    boxes = np.stack([x, np.zeros_like(x), x + 10, np.full_like(x, 10)], axis=1)
    pairs = np.stack([np.arange(len(x)), np.array(chosen or range(len(x)))], axis=1)
    strength = np.array(support, np.float32)
    return TokenMatches("q", "a", pairs, strength, strength, boxes, boxes, boxes, boxes)


def test_the_best_supported_pairs_come_first_and_no_more_than_asked_for():
    matches = line_up([0.1, 0.4, 0.2, 0.3])
    assert choose_pairs(matches).tolist() == [[1, 1], [3, 3], [2, 2], [0, 0]]
    assert choose_pairs(matches, 2).tolist() == [[1, 1], [3, 3]]


def test_neighbours_of_a_chosen_pair_are_left_out():
    assert choose_pairs(line_up([0.1, 0.4, 0.2, 0.3], gap=10)).tolist() == [[1, 1], [3, 3]]


def test_one_part_of_the_answer_is_shown_once():
    assert choose_pairs(line_up([0.1, 0.4, 0.2, 0.3], chosen=[2, 0, 0, 2])).tolist() == [[1, 0], [3, 2]]


def test_pairs_without_support_are_not_shown():
    assert choose_pairs(line_up([0.0, 0.4, -0.1])).tolist() == [[1, 1]]
    assert choose_pairs(line_up([0.0])).shape == (0, 2)


def test_both_images_stand_side_by_side_at_one_height():
    found = draw_token_pairs(black(50, 100), black(100, 80), line_up([0.5]), (100, 50), (80, 100))
    assert found.shape == (100, 200 + 4 + 80, 3)


def test_marks_are_where_the_boxes_are_and_keep_what_is_in_them():
    pixels = np.full((300, 400, 3), 90, np.uint8)
    drawn = mark(pixels, np.array([[800, 600, 1200, 1000]], np.float32), (1600, 1200))
    differs = (drawn != pixels).any(axis=2)
    rows, columns = np.flatnonzero(differs.any(axis=1)), np.flatnonzero(differs.any(axis=0))
    assert abs(columns[-1] - 300) < 6 and abs(rows[-1] - 250) < 6
    assert 180 < columns[0] < 200 and 130 < rows[0] < 150  # the disc over the corner at 200, 150
    assert not differs[200:240, 230:290].any()
    assert (drawn == PAIR_COLOURS[0]).all(axis=2).any()
    assert (pixels == 90).all()


def test_a_number_at_the_edge_is_drawn_whole():
    pixels = np.full((300, 400, 3), 90, np.uint8)
    inside = (mark(pixels, np.array([[100, 100, 140, 140]], np.float32), (400, 300)) == PAIR_COLOURS[0]).all(axis=2)
    edge = (mark(pixels, np.array([[0, 0, 40, 40]], np.float32), (400, 300)) == PAIR_COLOURS[0]).all(axis=2)
    assert edge[:22, :22].sum() > 0.9 * inside[89:111, 89:111].sum()  # a disc of 21 pixels


RED = (255, 0, 0)


def grey(height: int, width: int) -> np.ndarray:
    return np.full((height, width, 3), 128, np.uint8)


def near(pixels: np.ndarray, colour: tuple[int, int, int]) -> np.ndarray:
    """Which pixels have a colour, but for what anti-aliasing takes."""
    return np.abs(pixels.astype(int) - colour).max(axis=-1) < 30


def test_the_line_runs_along_the_box_with_a_dark_casing_beside_it():
    drawn = draw_box(grey(200, 250), (50, 40, 200, 160), RED)
    assert near(drawn[100, 50], RED)
    assert near(drawn[100, 200], RED)
    assert near(drawn[40, 120], RED)
    assert near(drawn[160, 120], RED)
    assert near(drawn[100, 48], CASING)
    assert near(drawn[100, 52], CASING)


def test_inside_and_outside_keep_their_pixels():
    drawn = draw_box(grey(200, 250), (50, 40, 200, 160), RED)
    assert (drawn[60:140, 70:180] == 128).all()
    assert (drawn[:30] == 128).all()


def test_the_argument_is_left_alone():
    pixels = grey(60, 60)
    draw_box(pixels, (10, 10, 40, 40))
    assert (pixels == 128).all()


def test_a_read_only_view_can_be_drawn_on():
    pixels = grey(60, 120)[:, ::2]
    pixels.setflags(write=False)
    assert draw_box(pixels, (10, 10, 40, 40)).shape == (60, 60, 3)


def test_a_box_of_the_whole_image_shows_its_line_on_all_four_sides():
    drawn = draw_box(grey(100, 100), (0, 0, 100, 100), RED)
    for side in (drawn[50, :3], drawn[50, -3:], drawn[:3, 50], drawn[-3:, 50]):
        assert near(side, RED).any()


@pytest.mark.parametrize("box", [(40, 10, 10, 40), (10, 40, 40, 10), (10, 10, 10, 40)])
def test_a_box_inside_out_is_refused(box):
    with pytest.raises(BoxError, match="x0 < x1"):
        draw_box(grey(60, 60), box)


def test_a_quadrilateral_passes_through_the_middle_of_its_slanted_side():
    corners = np.array([(20, 20), (120, 60), (120, 160), (20, 180)], np.float32)
    drawn = draw_quadrilateral(grey(200, 200), corners)
    assert np.abs(drawn[40, 70].astype(int) - MINT).max() < 60
    assert (drawn[100, 70] == 128).all()


def test_a_corner_near_infinity_does_not_break_the_drawing():
    corners = np.array([(20, 20), (1e12, 60), (120, 160), (20, 180)], np.float32)
    assert near(draw_quadrilateral(grey(200, 200), corners, RED)[100, 20], RED)


@pytest.mark.parametrize(("side", "thickness"), [(10, 1), (250, 1), (640, 3), (4000, 16)])
def test_thickness_grows_with_the_image(side, thickness):
    assert stroke(grey(5, side)) == thickness
