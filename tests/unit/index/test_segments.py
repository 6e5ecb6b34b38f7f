"""Segments that are searched as one index."""

from dataclasses import dataclass, field

import numpy as np
from support.builders import global_rows

from resight.index._segments import SPARE, JoinedSearcher, Segment, join
from resight.types import Descriptors, Ranking

QUERY = global_rows("q", [[1]])


@dataclass(frozen=True)
class Known:
    """An index with known scores; notes how many images it was asked for."""

    scores: dict[str, float]
    proof: str = ""
    asked: list[int] = field(default_factory=list)

    def search(self, query: Descriptors, k: int, allowed: frozenset[str] | None = None) -> Ranking:
        self.asked.append(k)
        names = [name for name in self.scores if allowed is None or name in allowed]
        ids = tuple(sorted(names, key=lambda name: (-self.scores[name], name))[:k])
        boxes = {name: (0.0, 0.0, self.scores[name], 1.0) for name in ids}
        scores = np.array([self.scores[name] for name in ids], np.float32)
        return Ranking(query.ids[0], ids, scores, boxes=boxes, proof=self.proof)


def make_segment(scores: dict[str, float], dead: str = "", proof: str = "") -> Segment:
    return Segment(Known(scores, proof), frozenset(scores) - frozenset(dead), len(dead))


def test_the_best_of_all_segments_come_in_order_and_equal_ones_by_id():
    found = join([make_segment({"b": 3, "d": 1}), make_segment({"a": 3, "c": 2})]).search(QUERY, 3)
    assert [found.query_id, found.ids, found.scores.tolist()] == ["q", ("a", "b", "c"), [3, 3, 2]]
    assert found.boxes["c"] == (0.0, 0.0, 2.0, 1.0)


def test_an_image_that_has_changed_is_found_by_its_newest_segment_alone():
    found = join([make_segment({"a": 9, "b": 5, "c": 1}, dead="a"), make_segment({"a": 2})]).search(QUERY, 3)
    assert [found.ids, found.scores.tolist()] == [("b", "a", "c"), [5, 2, 1]]
    assert found.boxes["a"] == (0.0, 0.0, 2.0, 1.0)


def test_a_filter_does_not_bring_back_what_was_removed():
    joined = join([make_segment({"a": 9, "b": 5, "c": 1}, dead="a"), make_segment({"d": 4})])
    assert joined.search(QUERY, 3, frozenset("abd")).ids == ("b", "d")


def test_a_segment_is_asked_again_only_where_the_dead_were_the_best():
    many = {f"{number:03}": 100.0 - number for number in range(60)}
    dead = [name for name in many if name < "040"]
    segment = Segment(Known(many), frozenset(many) - frozenset(dead), len(dead))
    assert JoinedSearcher((segment,)).search(QUERY, 5).ids == ("040", "041", "042", "043", "044")
    assert segment.searcher.asked == [5 + SPARE, 5 + 40]  # type: ignore[attr-defined]
    few = Segment(Known(many), frozenset(many) - {"030", "059"}, 2)
    assert JoinedSearcher((few,)).search(QUERY, 5).ids == ("000", "001", "002", "003", "004")
    assert few.searcher.asked == [5 + 2]  # type: ignore[attr-defined]


def test_all_live_images_are_given_where_more_are_asked_for():
    joined = join([make_segment({"a": 9, "b": 5}, dead="a"), make_segment({"d": 4})])
    assert joined.search(QUERY, 100).ids == ("b", "d")


def test_one_segment_without_dead_images_is_its_own_searcher():
    segment = make_segment({"a": 1})
    assert join([segment]) is segment.searcher
    assert isinstance(join([make_segment({"a": 1, "b": 2}, dead="b")]), JoinedSearcher)


def test_every_segment_contributes_its_proof():
    proven = [make_segment({"a": 1}, proof="All 1."), make_segment({"b": 1}, proof="All 2."), make_segment({"c": 1})]
    assert join(proven).search(QUERY, 1).proof == "Part 1: All 1. Part 2: All 2."
    assert join([proven[0], make_segment({"b": 1}, proof="All 1.")]).search(QUERY, 1).proof == "All 1."
