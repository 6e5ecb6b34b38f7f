import re
from pathlib import Path

import numpy as np
import pytest

from resight.explain.map import KEY, RATIO, STYLE, Mark, describe_position, draw_answers, draw_map
from resight.explain.search_page import HitView, QueryView, Section, render_many
from resight.explain.tiles import Tiles
from resight.geodesy import PositionEstimate
from resight.types import Hit

HERE = (52.5, 13.28)
HOSTILE = '"><script>alert(1)</script>'
TILES = Tiles("https://tiles.example.org/{z}/{x}/{y}.png", "© <b>somebody</b>")


def hit(name: str, probability: float | None = 0.95, **attributes) -> Hit:
    return Hit(name, Path(name), 0.5, probability, attributes=attributes)


def estimate(**more) -> PositionEstimate:
    return PositionEstimate(52.5, 13.28, 60.0, **{"probability": 0.62, "known": True, **more})


def plain(text: str) -> str:
    return text.replace("\u00a0", " ")


def test_no_marks_give_no_map():
    assert draw_map([], "Map", "map") is None


def test_one_mark_stands_in_the_middle_of_a_map_with_a_bar_of_20_metres():
    """80 m / 0.74 = 108 m wide: 30 % of it are 32 m, the round length below is 20 m."""
    drawn = plain(draw_map([Mark("truth", HERE, "Query")], "Map", "map"))
    assert '<svg class="geo-mark truth" x="50.00%" y="50.00%">' in drawn
    assert ">20 m</text>" in drawn
    assert "1 position over 108 m from west to east" in drawn


def test_the_scale_bar_is_as_long_as_it_says():
    drawn = plain(draw_map([Mark("truth", (0.0, 0.0), "a"), Mark("answer", (0.0, 0.01), "b")], "Map", "map"))
    # 0.01° are 1,111.95 m on 74 % of the width.
    assert ">200 m</text>" in drawn
    length = float(re.search(r'class="geo-bar" x2="([\d.]+)%"', drawn).group(1))
    assert length == pytest.approx(100 * 200 * 0.74 / 1111.95, abs=0.01)


def test_a_circle_is_as_large_as_its_metres():
    """SVG takes a radius in per cent of the diagonal / √2; a map as wide as 4:3 has a diagonal of 1.25 widths."""
    drawn = draw_map([Mark("estimate", HERE, "e", metres=100.0)], "Map", "map")
    width = 200 * RATIO / 0.74
    radius = float(re.search(r'r="([\d.]+)%"', drawn).group(1))
    assert radius == pytest.approx(100 * 100 / (1.25 * width / 2**0.5), abs=0.01)


def test_a_circle_that_dwarfs_the_marks_does_not_push_them_together():
    drawn = plain(draw_map([Mark("estimate", HERE, "e", metres=1e6)], "Map", "map"))
    assert "over 108 m from west to east" in drawn


def test_every_kind_of_mark_is_in_the_key_and_in_the_style():
    drawn = draw_map([Mark(kind, HERE, kind) for kind in KEY], "Map", "map")
    for kind, words in KEY.items():
        assert f"</svg>{words}</li>" in drawn.replace("\n", "")
        assert f".geo .{kind} " in STYLE
    assert "viewing direction" not in drawn


def test_the_table_has_every_mark_with_its_distance_from_the_truth():
    marks = [Mark("truth", (0.0, 0.0), "Query"), Mark("answer", (0.01, 0.0), "far", "1", 370.0, note="95%")]
    drawn = plain(draw_map(marks, "Map", "map"))
    assert "<td>1</td><td>far</td><td>0.01000° N, 0.00000° E</td><td>10°</td><td>1.1 km</td><td>95%</td>" in drawn
    assert "Distance to the query" in drawn


def test_words_of_users_are_text():
    drawn = draw_map([Mark("answer", HERE, HOSTILE, note=HOSTILE)], HOSTILE, "map", HOSTILE)
    assert "<script" not in drawn


def test_the_style_has_the_ratio_of_the_map():
    assert STYLE.count("aspect-ratio: 4 / 3") == 2
    assert pytest.approx(4 / 3) == RATIO


def test_answers_are_numbered_by_rank_and_coloured_by_probability():
    hits = [hit("a", 0.95, lat=52.5, lon=13.28), hit("b", 0.3), hit("c", 0.02, lat=52.6, lon=13.28)]
    drawn = draw_answers(hits, None, {}, "map", "#answer-1-")
    assert re.findall(r'class="geo-mark ([\w-]+)"', drawn) == ["very-unlikely", "very-likely"]
    assert re.findall(r'<text y="4">(\d)</text>', drawn) == ["3", "1"]
    assert 'href="#answer-1-3"' in drawn
    assert "1 answer has no position." in drawn


def test_answers_without_positions_give_no_map_even_where_the_query_has_one():
    assert draw_answers([hit("a")], None, {"lat": 1.0, "lon": 2.0}, "map") is None


def test_without_a_calibration_answers_are_just_answers():
    drawn = draw_answers([hit("a", None, lat=1.0, lon=2.0)], None, {}, "map")
    assert 'class="geo-mark answer"' in drawn


def test_an_estimate_is_told_with_its_radius_coverage_and_error():
    assert plain(describe_position(estimate(), {"lat": 52.5, "lon": 13.2803})) == (
        "Estimated at 52.50000° N, 13.28000° E, within 60 m (90%). "
        "Probability that the collection shows this place: 62%. The query's own position is 20.3 m away."
    )


def test_where_the_place_is_not_known_it_is_said():
    assert plain(describe_position(estimate(known=False, probability=0.2), {})) == (
        "Position unknown. Probability that the collection shows this place: 20%. Best guess: 52.50000° N, 13.28000° E."
    )
    drawn = draw_answers([hit("a", lat=52.5, lon=13.28)], estimate(known=False), {}, "map")
    assert 'class="geo-mark guess"' in drawn
    assert 'class="geo-mark estimate"' not in drawn


def page(tiles: Tiles | None, **attributes) -> str:
    query = QueryView("q.jpg", np.zeros((30, 40, 3), np.uint8), (40, 30))
    view = HitView(hit("a", **attributes), np.zeros((30, 40, 3), np.uint8), (40, 30))
    return render_many("t", [Section(query, [view], position=estimate())], tiles)


def test_a_page_has_a_map_where_answers_have_positions():
    shown = page(None, lat=52.5, lon=13.28)
    assert 'id="map-1"' in shown
    assert 'id="answer-1-1"' in shown
    assert "img-src data:;" in shown
    assert 'class="geo-frame"' not in page(None)


def test_with_tiles_the_policy_lets_in_their_server_and_they_are_attributed():
    shown = page(TILES, lat=52.5, lon=13.28)
    assert "img-src data: https://tiles.example.org;" in shown
    assert shown.count('<image href="https://tiles.example.org/') >= 4
    assert "© &lt;b&gt;somebody&lt;/b&gt;" in shown
