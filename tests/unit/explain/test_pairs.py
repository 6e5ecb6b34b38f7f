import numpy as np

from resight.explain.draw import COLOURS, choose_pairs, draw_pairs, mark
from resight.types import TokenMatches


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


def test_marks_are_where_the_boxes_are_and_keep_what_is_in_them():
    pixels = np.full((300, 400, 3), 90, np.uint8)
    drawn = mark(pixels, np.array([[800, 600, 1200, 1000]], np.float32), (1600, 1200))
    differs = (drawn != pixels).any(axis=2)
    rows, columns = np.flatnonzero(differs.any(axis=1)), np.flatnonzero(differs.any(axis=0))
    assert abs(columns[-1] - 300) < 6 and abs(rows[-1] - 250) < 6
    assert 180 < columns[0] < 200 and 130 < rows[0] < 150  # the disc over the corner at 200, 150
    assert not differs[200:240, 230:290].any()
    assert (drawn == COLOURS[0]).all(axis=2).any()
    assert (pixels == 90).all()


def test_a_number_at_the_edge_is_drawn_whole():
    pixels = np.full((300, 400, 3), 90, np.uint8)
    inside = (mark(pixels, np.array([[100, 100, 140, 140]], np.float32), (400, 300)) == COLOURS[0]).all(axis=2)
    edge = (mark(pixels, np.array([[0, 0, 40, 40]], np.float32), (400, 300)) == COLOURS[0]).all(axis=2)
    assert edge[:22, :22].sum() > 0.9 * inside[89:111, 89:111].sum()  # a disc of 21 pixels


def test_query_and_answer_stand_side_by_side_at_one_height():
    small, large = np.zeros((50, 100, 3), np.uint8), np.zeros((100, 80, 3), np.uint8)
    assert draw_pairs(small, large, line_up([0.5]), (100, 50), (80, 100)).shape == (100, 200 + 4 + 80, 3)
