import re
from dataclasses import replace
from pathlib import Path

import pytest
from support.evaluations import make_result

from resight.evaluate.comparison import compare
from resight.evaluate.evaluation import Evaluation, single_row
from resight.evaluate.pages.evaluation_page import render
from resight.evaluate.pages.maps import map_example, map_queries
from resight.evaluate.result_cache import ResultCache
from resight.evaluate.results import AnsweredImage, GeoPosition, PositiveRanks, add_positions
from resight.evaluate.sizes import Sizes
from resight.evaluate.summary import summarise
from resight.evaluate.summary_file import to_dict
from resight.explain.tiles import Tiles
from resight.types import Dataset, ImageRef

STEP = 0.001  # degrees of latitude: 111.2 m


def ref(name: str, **attributes) -> ImageRef:
    return ImageRef(name, Path(name), attributes=attributes)


QUERIES = (
    ref("q0", lat=0.0, lon=0.0, heading=90),
    ref("q1", lat=STEP, lon=0.0),
    ref("q2", lat=2 * STEP, lon=0.0),
    ref("q3"),
)
DATABASE = (ref("a", lat=0.0, lon=0.0), ref("b", lat=3 * STEP, lon=0.0, heading=10.0), ref("unseen", lat=9.0, lon=9.0))


@pytest.fixture
def result():
    """q0 is right, q1 wrong (its best answer is 222 m away), q2 has nothing to be found, q3 has no position."""
    made = make_result({"recall@1": [1, 0, 0, 1], "ap": [1, 0.5, 0, 1]})
    first = (AnsweredImage("a", 1, True), AnsweredImage("b", 2, False))
    second = (AnsweredImage("b", 1, False), AnsweredImage("a", 2, True))
    answers, bests = (first, second, second, first), ("a", "b", "b", "a")
    places = ({"a": 0}, {"a": 1}, None, {"a": 0})
    queries = [
        replace(
            query,
            answers=found,
            best_id=best,
            positive_ranks=where and PositiveRanks(where),
            values=query.values if where else {},
        )
        for query, found, best, where in zip(made.queries, answers, bests, places, strict=True)
    ]
    return add_positions(replace(made, queries=tuple(queries)), Dataset("walls", DATABASE, QUERIES, {}))


def test_positions_of_queries_and_of_answers_that_are_kept_are_kept(result):
    assert result.query_positions == {
        "q0": GeoPosition(0.0, 0.0, 90.0),
        "q1": GeoPosition(STEP, 0.0),
        "q2": GeoPosition(2 * STEP, 0.0),
    }
    assert result.image_positions == {"a": GeoPosition(0.0, 0.0), "b": GeoPosition(3 * STEP, 0.0, 10.0)}


def test_positions_come_back_from_the_cache_of_results(result, tmp_path):
    cache = ResultCache(tmp_path)
    cache.write("key", result, Sizes(1.0, 1.0, 1.0))
    found, _ = cache.read("key", result.recipe)
    assert (found.query_positions, found.image_positions) == (result.query_positions, result.image_positions)


def test_all_queries_with_a_position_are_right_wrong_or_open(result):
    drawn = map_queries(summarise(result), "map").replace("\u00a0", " ")
    kinds = dict(re.findall(r'geo-mark (\w+)"[^>]*><title>(q\d)', drawn))
    assert {name: kind for kind, name in kinds.items()} == {"q0": "right", "q1": "wrong", "q2": "open"}
    assert "1 of 2 queries are right at rank 1." in drawn
    # Errors are 0, 222.4 and 111.2 m: half of the queries are within 111 m.
    assert "The best answer was taken 111 m from its query or less for half of 3 queries" in drawn
    assert "wrong: the best answer is 222 m away" in drawn


def test_of_very_many_queries_some_are_shown_and_it_is_said(result, monkeypatch):
    monkeypatch.setattr("resight.evaluate.pages.maps.MOST", 2)
    drawn = map_queries(summarise(result), "map")
    assert drawn.count("geo-mark") == 2
    assert "One query in 2 is shown." in drawn


def test_an_example_has_its_truth_its_answers_and_the_distance(result):
    summary = summarise(result)
    (example,) = (query for query in summary.examples.worst if query.id == "q1")
    found = map_example(example, summary, "map")
    assert found.sentence.replace("\u00a0", " ") == "Answer 1 was taken 222 m from the query."
    assert re.findall(r'geo-mark (\w+)"', found.figure) == ["right", "wrong", "truth"]


def test_a_query_without_a_position_has_no_map(result):
    summary = summarise(result)
    (example,) = (query for query in summary.examples.worst if query.id == "q3")
    assert map_example(example, summary, "map") is None


def draw(result, tiles=None) -> str:
    comparison = compare([single_row(summarise(result), "tried")], metric="ap")
    return render(comparison.table, comparison, tiles=tiles)


def test_the_page_has_a_part_for_places_only_where_positions_are_known(result):
    shown = draw(result)
    assert '<a href="#places">' in shown
    assert len(re.findall('<figure class="geo"', shown)) == 3  # all, q0 and q1
    anchors = re.findall(r'<figure class="geo" id="([^"]+)"', shown)
    assert len(set(anchors)) == 3
    without = draw(replace(result, query_positions={}, image_positions={}))
    assert "#places" not in without
    assert '<figure class="geo"' not in without


def test_files_from_before_positions_were_kept_are_still_shown(result):
    values = to_dict(summarise(result))
    del values["positions"]
    comparison = compare([Evaluation.from_dict(values)], metric="ap")
    assert "#places" not in render(comparison.table, comparison)


def test_with_tiles_the_policy_lets_in_their_server_alone(result):
    assert "img-src data:;" in draw(result)
    tiles = Tiles("https://tiles.example.org/{z}/{x}/{y}.png", "© somebody")
    assert "img-src data: https://tiles.example.org;" in draw(result, tiles)
