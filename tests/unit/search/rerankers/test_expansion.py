from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import pytest
from support.builders import global_rows

from resight import topk
from resight.errors import RecipeError
from resight.search import rerankers
from resight.search.gallery import filter_gallery
from resight.search.rerankers.expansion import expand
from resight.types import Choice, Descriptors, FloatArray, Query, Ranking

FREE = {"share": 0.0, "standout": 0.0, "keep": 0.0}  # no guard at all


def turn(*degrees: float) -> FloatArray:
    """Unit vectors in the plane."""
    angles = np.radians(degrees)
    return np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)


class Plane:
    """Images with one direction or several; the own index of branch 0 compares all of them."""

    def __init__(self, images: dict[str, FloatArray], queries: FloatArray) -> None:
        self.images = images
        self.query = Query("q", (9, 9), (0, 0, 9, 9), (Descriptors(("q",), queries, np.zeros(len(queries), np.int32)),))

    def descriptors(self, branch: int, ids: Sequence[str]) -> Iterator[Descriptors]:
        assert branch == 0
        return (Descriptors((name,), self.images[name], np.zeros(len(self.images[name]), np.int32)) for name in ids)

    def searcher(self, branch: int, choice: Choice | None) -> "Plane":
        assert (branch, choice) == (0, None)
        return self

    def search(self, query: Descriptors, k: int, allowed: frozenset[str] | None = None) -> Ranking:
        ids = [name for name in self.images if allowed is None or name in allowed]
        scores = [float((query.vectors @ self.images[name].T).max()) for name in ids]
        best = topk.best("q", ids, np.array(scores, np.float32), k)
        return replace(best, boxes=dict.fromkeys(best.ids, (1.0, 1.0, 2.0, 2.0)))


def ask(plane: Plane, depth: int, allowed: frozenset[str] | None = None, **settings: object) -> Ranking:
    gallery = filter_gallery(plane, allowed)
    first = gallery.searcher(0, None).search(plane.query.descriptors[0], depth)
    ranking = Ranking("q", first.ids, first.scores)
    return rerankers.build("expansion", **settings).rerank(plane.query, ranking, gallery)


# A chain of views: the query at 0 degrees, its neighbours on one side, a stranger on the other.
CHAIN = {"n20": turn(20), "stranger": turn(-33), "n40": turn(40), "n60": turn(60)}


def test_the_plain_mean_of_the_query_and_its_neighbours():
    # (1, 0) + (0, 1) + (0.6, 0.8) = (1.6, 1.8), of length √5.8
    rows = np.array([[1, 0], [0, 1], [0.6, 0.8]], np.float32)
    assert expand(rows[:1], [rows[1:2], rows[2:]], 0) == pytest.approx(np.array([[1.6, 1.8]]) / 5.8**0.5)


def test_neighbours_weigh_their_similarity_to_a_power():
    # Similarities 0.6 and 0; squared: (1, 0) + 0.36 · (0.6, 0.8) = (1.216, 0.288)
    rows = np.array([[1, 0], [0.6, 0.8], [0, 1]], np.float32)
    expected = np.array([[1.216, 0.288]]) / np.hypot(1.216, 0.288)
    assert expand(rows[:1], [rows[1:2], rows[2:]], 2) == pytest.approx(expected)


def test_a_neighbour_that_points_the_other_way_has_no_weight():
    rows = np.array([[1, 0], [-1, 0]], np.float32)
    assert expand(rows[:1], [rows[1:]], 2) == pytest.approx(rows[:1])


def test_of_a_neighbour_with_regions_the_winning_row_counts_for_each_row_of_the_query():
    query = np.eye(3, dtype=np.float32)[:2]
    regions = np.array([[0, 0, 1], [0.6, 0, 0.8], [0, 0.8, 0.6]], np.float32)
    # Row 0: (1, 0, 0) + (0.6, 0, 0.8); row 1: (0, 1, 0) + (0, 0.8, 0.6)
    expected = np.array([[1.6, 0, 0.8], [0, 1.8, 0.6]]) / [[3.2**0.5], [3.6**0.5]]
    assert expand(query, [regions], 0) == pytest.approx(expected)


def test_what_only_the_expanded_query_finds_enters_the_ranking():
    found = ask(Plane(CHAIN, turn(0)), depth=2, neighbours=1, power=0, **FREE)
    # The query turns to 10 degrees, from where 40 is nearer than -33.
    assert found.ids == ("n20", "n40", "stranger", "n60")
    assert found.scores == pytest.approx(np.cos(np.radians([10, 30, 43, 50])), abs=1e-6)
    assert found.signals["n40"] == {"expansion": pytest.approx(np.cos(np.radians(30))), "neighbour": 0.0}
    assert found.signals["n20"]["neighbour"] == 1.0


def test_what_a_filter_left_out_does_not_come_back():
    found = ask(Plane(CHAIN, turn(0)), 2, frozenset({"n20", "stranger", "n60"}), neighbours=1, power=0, **FREE)
    assert set(found.ids) == {"n20", "stranger", "n60"}


def test_an_image_that_is_new_has_the_box_that_the_index_found():
    found = ask(Plane(CHAIN, turn(0)), depth=2, neighbours=1, power=0, **FREE)
    assert found.boxes["n40"] == (1, 1, 2, 2)
    assert found.located_by["n40"] == "region"


def test_an_image_of_the_ranking_that_the_index_no_longer_finds_stays():
    plane = Plane({"far": turn(-60), **CHAIN}, turn(0))
    ranking = Ranking("q", ("n20", "far"), np.array([0.9, 0.5], np.float32))
    settings = {"candidates": 1, "neighbours": 1, "power": 0, **FREE}
    found = rerankers.build("expansion", **settings).rerank(plane.query, ranking, plane)
    assert found.ids == ("n20", "n40", "far")


def test_neighbours_far_below_the_best_do_not_count():
    found = ask(Plane(CHAIN, turn(0)), depth=4, neighbours=3, power=0, share=0.9, standout=0.0, keep=0.0)
    assert [name for name in found.ids if found.signals[name]["neighbour"]] == ["n20"]


def test_a_verified_neighbour_counts_however_unlike_it_is():
    plane = Plane(CHAIN, turn(0))
    first = plane.search(plane.query.descriptors[0], 4)
    ranking = Ranking("q", first.ids, first.scores, signals={"n40": {"inliers": 15.0}})
    found = rerankers.build("expansion", neighbours=3, standout=50.0, keep=0.0).rerank(plane.query, ranking, plane)
    assert [name for name in found.ids if found.signals[name]["neighbour"]] == ["n40"]
    assert found.ids[0] == "n40" and found.scores[0] > np.log(16)  # what is proven stays first


def test_images_that_do_not_stand_out_are_no_neighbours_and_the_answer_is_dropped():
    found = ask(Plane(CHAIN, turn(0)), depth=4, share=0.0, standout=3.0)  # four are too few to stand out from
    assert found.ids == ("n20", "stranger", "n40", "n60")
    assert all(signals == {"expansion": 0.0, "neighbour": 0.0} for signals in found.signals.values())


def test_one_that_stands_out_counts_and_the_others_do_not():
    images = {"right": turn(10), **{f"other{number}": turn(75 + number / 2) for number in range(12)}}
    found = ask(Plane(images, turn(0)), depth=13, neighbours=5, share=0.0, standout=3.0)
    assert [name for name in found.ids if found.signals[name]["neighbour"]] == ["right"]


def test_the_answer_is_dropped_with_fewer_neighbours_than_asked_for():
    settings = {"neighbours": 3, "share": 0.9, "standout": 0.0, "keep": 0.0}
    found = ask(Plane(CHAIN, turn(0)), depth=4, fewest=2, **settings)
    assert found.signals["n20"] == {"expansion": 0.0, "neighbour": 0.0}
    assert ask(Plane(CHAIN, turn(0)), depth=4, fewest=1, **settings).signals["n20"]["neighbour"] == 1.0


@pytest.mark.parametrize(("keep", "is_kept"), [(0.5, True), (0.6, False)])
def test_the_answer_is_dropped_when_it_loses_the_best_answers(keep: float, is_kept: bool):
    # Of the first two, n20 and the stranger, the expanded query keeps n20 alone.
    settings = {"neighbours": 2, "share": 0.9, "standout": 0.0, "power": 0.0}
    found = ask(Plane(CHAIN, turn(0)), depth=4, keep=keep, **settings)
    assert found.ids[1] == ("n40" if is_kept else "stranger")
    assert (found.signals["n20"]["expansion"] > 0) is is_kept


def test_a_branch_of_tokens_is_refused():
    tokens = replace(global_rows("q", turn(0)), boxes=np.zeros((1, 4), np.float32))
    query = Query("q", (9, 9), (0, 0, 9, 9), (tokens,))
    with pytest.raises(RecipeError, match="one vector per image"):
        rerankers.build("expansion").rerank(query, Ranking("q", ("a",), np.ones(1, np.float32)), Plane(CHAIN, turn(0)))
