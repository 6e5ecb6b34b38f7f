from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from support.builders import global_rows

from resight.search import fusions
from resight.search.fusions.robust_zscore import robust_zscore
from resight.search.shortlist import Shortlister, shortlist
from resight.types import Descriptors, Query, Ranking

QUERY = Query("q", (100, 80), (10.0, 10.0, 50.0, 40.0), tuple(global_rows("q", [[value]]) for value in (1, 2, 3)))
SUM = fusions.build("score")


@dataclass(frozen=True)
class FakeSearcher:
    """Known scores, 0 for any other image; notes what it was asked."""

    scores: Mapping[str, float]
    others: str = ""
    proof: str = ""
    log: list = field(default_factory=list)

    def search(self, query: Descriptors, k: int, allowed: frozenset[str] | None = None) -> Ranking:
        self.log.append((query.vectors.tolist(), k, allowed))
        everything = {**dict.fromkeys(self.others, 0.0), **self.scores}
        names = sorted(everything if allowed is None else allowed, key=lambda name: (-everything[name], name))[:k]
        values = np.array([everything[name] for name in names], np.float32)
        return Ranking(query.ids[0], tuple(names), values, proof=self.proof)


def test_branches_are_added_up_with_their_weights():
    parts = [
        Shortlister("vlad", 0, 2.0, FakeSearcher({"a": 0.5, "b": 0.25, "c": 0.0})),
        Shortlister("asmk", 1, 0.5, FakeSearcher({"a": 0.0, "b": 1.0, "c": 0.5})),
    ]
    ranking = shortlist(QUERY, parts, SUM, 3, None)
    assert ranking.ids == ("a", "b", "c")
    assert ranking.scores.tolist() == [1.0, 1.0, 0.25]
    assert [dict(ranking.signals[name]) for name in ranking.ids] == [
        {"vlad": 0.5, "asmk": 0.0, "vlad_standout": 0, "asmk_standout": 0},
        {"vlad": 0.25, "asmk": 1.0, "vlad_standout": 0, "asmk_standout": 0},
        {"vlad": 0.0, "asmk": 0.5, "vlad_standout": 0, "asmk_standout": 0},
    ]


def test_a_branch_is_asked_for_what_only_another_has_found():
    first = FakeSearcher({"a": 0.9, "b": 0.8, "c": 0.7, "d": 0.6})
    second = FakeSearcher({"c": 0.5, "d": 0.4, "a": 0.3, "b": 0.2})
    ranking = shortlist(QUERY, [Shortlister("x", 0, 1.0, first), Shortlister("y", 1, 1.0, second)], SUM, 2, None)
    assert first.log == [([[1]], 2, None), ([[1]], 2, frozenset("cd"))]
    assert second.log == [([[2]], 2, None), ([[2]], 2, frozenset("ab"))]
    # a: 0.9 + 0.3, c: 0.7 + 0.5; without the second question c would have had 0.5 alone.
    assert ranking.ids == ("a", "c")
    assert ranking.scores.tolist() == pytest.approx([1.2, 1.2])


def test_an_image_that_an_older_index_of_one_branch_lacks_is_left_out():
    @dataclass(frozen=True)
    class Older(FakeSearcher):
        def search(self, query: Descriptors, k: int, allowed: frozenset[str] | None = None) -> Ranking:
            return super().search(query, k, frozenset(self.scores) & (allowed or frozenset(self.scores)))

    older, newer = Older({"a": 0.5, "b": 0.1}), FakeSearcher({"a": 0.2, "b": 0.1, "new": 0.9})
    ranking = shortlist(QUERY, [Shortlister("x", 0, 1.0, newer), Shortlister("y", 1, 1.0, older)], SUM, 3, None)
    assert ranking.ids == ("a", "b") and ranking.scores.tolist() == pytest.approx([0.7, 0.2])


def test_one_branch_is_asked_once():
    searcher = FakeSearcher({"a": 1.0, "b": 0.5}, "c")
    shortlist(QUERY, [Shortlister("x", 0, 1.0, searcher)], SUM, 2, frozenset("abc"))
    assert searcher.log == [([[1]], 2, frozenset("abc"))]


def test_the_shortlist_has_no_more_than_its_depth_and_signals_for_no_others():
    parts = [
        Shortlister("x", 0, 1.0, FakeSearcher({"a": 3, "b": 1}, "cd")),
        Shortlister("y", 1, 1.0, FakeSearcher({"c": 2, "d": 1}, "ab")),
    ]
    ranking = shortlist(QUERY, parts, SUM, 2, None)
    assert ranking.ids == ("a", "c")
    assert set(ranking.signals) == {"a", "c"}


def test_a_proof_says_which_branch_it_is_about_where_there_are_several():
    proven, plain = FakeSearcher({"a": 1.0}, proof="All seen."), FakeSearcher({"a": 1.0})
    alone = shortlist(QUERY, [Shortlister("x", 0, 1.0, proven)], SUM, 1, None)
    both = shortlist(QUERY, [Shortlister("x", 0, 1.0, proven), Shortlister("y", 1, 1.0, plain)], SUM, 1, None)
    assert (alone.proof, both.proof) == ("All seen.", "x: All seen.")


def test_an_empty_collection_has_an_empty_shortlist():
    parts = [Shortlister("x", 0, 1.0, FakeSearcher({})), Shortlister("y", 1, 1.0, FakeSearcher({}))]
    for name in ("score", "robust_zscore", "rank"):
        assert shortlist(QUERY, parts, fusions.build(name), 3, None).ids == ()


def test_standout_by_hand():
    # The median is 3.5; the distances from it have the median 1: one unit of spread is 1.4826.
    values = robust_zscore(np.array([9, 5, 4, 4, 3, 3, 2, 2], np.float32))
    assert values == pytest.approx([5.5 / 1.4826, 1.5 / 1.4826, 0.5 / 1.4826, 0.5 / 1.4826, 0, 0, 0, 0], rel=1e-4)


def test_standout_does_not_depend_on_the_order():
    scores = np.array([9, 5, 4, 4, 3, 3, 2, 2], np.float32)
    assert robust_zscore(scores[::-1]).tolist() == robust_zscore(scores)[::-1].tolist()


def test_standout_looks_at_the_best_thirty_only():
    head = np.linspace(1, 0.5, 30, dtype=np.float32)
    longer = np.concatenate([head, np.full(500, 0.01, np.float32)])
    assert robust_zscore(longer)[:30] == pytest.approx(robust_zscore(head))
    assert robust_zscore(longer)[30:].tolist() == [0] * 500


@pytest.mark.parametrize("count", [0, 1, 7])
def test_among_too_few_nothing_stands_out(count: int):
    assert robust_zscore(np.arange(count, 0, -1, dtype=np.float32)).tolist() == [0] * count


def test_among_equals_nothing_stands_out():
    assert robust_zscore(np.ones(10, np.float32)).tolist() == [0] * 10


def test_the_standout_of_a_single_branch_has_no_prefix():
    scores = dict(zip("abcdefgh", [9.0, 5, 4, 4, 3, 3, 2, 2], strict=True))
    ranking = shortlist(QUERY, [Shortlister("x", 0, 1.0, FakeSearcher(scores))], SUM, 8, None)
    assert ranking.signals["a"] == {"x": 9.0, "standout": pytest.approx(5.5 / 1.4826, rel=1e-4)}


@dataclass(frozen=True)
class FakeRegions(FakeSearcher):
    """Says where each image matched: a box whose first side is the score in tenths."""

    def search(self, query: Descriptors, k: int, allowed: frozenset[str] | None = None) -> Ranking:
        ranking = super().search(query, k, allowed)
        boxes = {name: (10 * score, 0.0, 20.0, 20.0) for name, score in zip(ranking.ids, ranking.scores, strict=True)}
        return replace(ranking, boxes=boxes)


def test_the_region_that_won_is_where_the_thing_is_at_first():
    ranking = shortlist(QUERY, [Shortlister("pooled", 0, 1.0, FakeRegions({"a": 0.5, "b": 0.25}))], SUM, 2, None)
    assert ranking.boxes == ranking.regions == {"a": (5.0, 0.0, 20.0, 20.0), "b": (2.5, 0.0, 20.0, 20.0)}
    assert ranking.located_by == {"a": "region", "b": "region"}


def test_of_several_branches_the_one_to_which_an_image_stands_out_says_where():
    low = dict.fromkeys("cdefghij", 0.1) | {"c": 0.11, "d": 0.12}
    parts = [
        Shortlister("pooled", 0, 1.0, FakeRegions({"a": 0.9, "b": 0.1, **low})),
        Shortlister("tokens", 1, 1.0, FakeRegions({"a": 0.1, "b": 0.8, **low})),
        Shortlister("vlad", 2, 1.0, FakeSearcher({"a": 0.9, "b": 0.9, **low})),
    ]
    ranking = shortlist(QUERY, parts, SUM, 10, None)
    assert ranking.regions["a"][0] == pytest.approx(9) and ranking.regions["b"][0] == pytest.approx(8)


def test_without_regions_there_is_no_box():
    ranking = shortlist(QUERY, [Shortlister("vlad", 0, 1.0, FakeSearcher({"a": 1.0}))], SUM, 1, None)
    assert (ranking.boxes, ranking.regions, ranking.located_by) == ({}, {}, {})
