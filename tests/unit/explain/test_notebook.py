"""HTML for notebooks: everything from files is escaped, pictures are data: URIs, and missing ones are named."""

import numpy as np

from resight.explain.notebook import THUMBNAIL, Card, draw_gallery, draw_table
from resight.explain.sheet import GAP, LINE, TILE, Tile, draw_sheet

RED = np.full((300, 600, 3), (255, 0, 0), np.uint8)


def test_names_are_escaped_wherever_they_appear() -> None:
    page = draw_gallery("<script>", [Card(RED, ("<b>id",)), Card(None, ("gone",))], ["a & b"])
    assert "<script>" not in page and "<b>id" not in page
    assert "&lt;script&gt;" in page and 'alt="&lt;b&gt;id"' in page and "a &amp; b" in page


def test_a_card_without_a_picture_says_so_and_the_others_are_data() -> None:
    page = draw_gallery("", [Card(RED), Card(None, ("gone",))])
    assert page.count('<img src="data:image/webp;base64,') == 1
    assert page.count("no picture") == 1 and f"max-width:{THUMBNAIL}px" in page


def test_a_long_table_is_cut_and_says_so() -> None:
    page = draw_table("t", ["n"], [[number] for number in range(70)])
    assert page.count("<tr>") == 61 and "… and 10 more rows" in page


def test_a_sheet_has_a_row_per_four_tiles_and_marks_the_likely_ones() -> None:
    sheet = draw_sheet([Tile(RED, "query", "q"), *(Tile(RED, "1", "x" * 200, marked=True) for _ in range(4))])
    assert sheet.size == (4 * (TILE + GAP) + GAP, 2 * (TILE + 2 * LINE + GAP) + GAP)
    assert sheet.getpixel((GAP + TILE // 2, GAP + TILE // 2)) == (255, 0, 0)
    assert sheet.getpixel((GAP + 5, GAP + TILE + 1)) == (255, 255, 255)  # the query is not marked
    assert sheet.getpixel((GAP + TILE + GAP + 5, GAP + TILE + 1)) != (255, 255, 255)
