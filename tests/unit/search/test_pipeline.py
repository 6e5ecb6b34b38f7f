import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from support.builders import global_rows

from resight.search.calibration import Calibration
from resight.search.fusions.score import Score
from resight.search.gallery import Gallery
from resight.search.pipeline import Pipeline, search, search_in_stages
from resight.search.shortlist import Shortlister
from resight.types import Descriptors, Match, Query, Ranking

QUERY = Query("q", (100, 80), (10.0, 10.0, 50.0, 40.0), (global_rows("q", [[1]]), global_rows("q", [[2]])))


@dataclass(frozen=True)
class FakeSearcher:
    """Known scores; notes what it was asked."""

    scores: Mapping[str, float]
    log: list = field(default_factory=list)

    def search(self, query: Descriptors, k: int, allowed: frozenset[str] | None = None) -> Ranking:
        self.log.append(("search", query.vectors.tolist(), k, allowed))
        ids = tuple(sorted(self.scores, key=lambda name: -self.scores[name])[:k])
        return Ranking(query.ids[0], ids, np.array([self.scores[name] for name in ids], np.float32))


@dataclass(frozen=True)
class Promote:
    """Puts one image first, with a match and a signal."""

    name: str
    candidates: int
    log: list
    signals: tuple[str, ...] = ("inliers",)

    def rerank(self, query: Query, ranking: Ranking, gallery: Gallery) -> Ranking:  # noqa: ARG002 - as every reranker
        self.log.append(("rerank", self.name, ranking.ids))
        ids = (self.name, *(other for other in ranking.ids if other != self.name))
        match = Match("q", self.name, 20, np.eye(3), np.ones((20, 4), np.float32))
        signals = {**ranking.signals, self.name: {**ranking.signals[self.name], "inliers": 20.0}}
        return replace(ranking, ids=ids, signals=signals, matches={**ranking.matches, self.name: match})


@dataclass(frozen=True)
class SizesOnly:
    """A gallery of sizes: nothing else of it may be read."""

    log: list

    def sizes(self, ids: Sequence[str]) -> dict[str, tuple[int, int]]:
        self.log.append(("sizes", tuple(ids)))
        return dict.fromkeys(ids, (100, 80))

    def descriptors(self, branch: int, ids: Sequence[str]) -> Iterator[Descriptors]:
        raise AssertionError(f"nobody should read branch {branch} of {ids}")


def make_pipeline(
    scores: Mapping[str, float], rerankers: tuple = (), log: list | None = None, **changes: object
) -> Pipeline:
    log = [] if log is None else log
    parts = (Shortlister("asmk", 0, 1.0, FakeSearcher(scores, log)),)
    return replace(Pipeline(parts, Score(), rerankers, None, SizesOnly(log)), **changes)


SCORES = {"a": 0.9, "b": 0.8, "c": 0.7, "d": 0.6}


def test_the_stages_run_in_their_order_each_on_what_the_one_before_gave():
    log: list = []
    chain = (Promote("c", 3, log), Promote("b", 2, log))
    search(QUERY, make_pipeline(SCORES, chain, log), k=2)
    assert log == [
        ("search", [[1]], 30, None),
        ("rerank", "c", ("a", "b", "c", "d")),
        ("rerank", "b", ("c", "a", "b", "d")),
        ("sizes", ("b", "c")),
    ]


def test_the_shortlist_is_told_before_anything_else_is_done():
    log: list = []
    calibration = Calibration(-3.0, {"asmk": 1.0, "inliers": 1.0})
    pipeline = make_pipeline(SCORES, (Promote("c", 3, log),), log, calibration=calibration)
    stages = search_in_stages(QUERY, pipeline, k=2)
    first = next(stages)
    assert [first.ids, dict(first.probabilities), list(first.seconds)] == [("a", "b"), {}, ["shortlist"]]
    assert log == [("search", [[1]], 30, None)]
    (last,) = stages
    whole = search(QUERY, pipeline, k=2)
    assert [last.ids, last.scores.tolist(), last.probabilities] == [
        whole.ids,
        whole.scores.tolist(),
        whole.probabilities,
    ]


def test_the_time_that_a_reader_takes_between_the_stages_does_not_count():
    stages = search_in_stages(QUERY, make_pipeline(SCORES, (Promote("c", 3, []),)), k=2)
    next(stages)
    time.sleep(0.3)
    (last,) = stages
    assert sum(last.seconds.values()) < 0.25


def test_the_shortlist_is_as_deep_as_the_deepest_stage_and_the_answer_has_k():
    log: list = []
    ranking = search(QUERY, make_pipeline(SCORES, (Promote("d", 40, log),), log), k=1)
    assert log[0][2] == 40
    assert ranking.ids == ("d",)
    assert ranking.scores.shape == (1,)


def test_a_k_beyond_the_candidates_makes_the_shortlist_deeper():
    log: list = []
    ranking = search(QUERY, make_pipeline(SCORES, (Promote("a", 2, log),), log), k=50)
    assert log[0][2] == 50
    assert len(ranking.ids) == 4


def test_what_an_image_scores_does_not_depend_on_k():
    scores = {f"{number:02}": 1 / (number + 1) for number in range(40)}
    one = search(QUERY, make_pipeline(scores, (), []), k=1)
    all_of_them = search(QUERY, make_pipeline(scores, (), []), k=40)
    assert one.signals["00"] == all_of_them.signals["00"]
    assert one.signals["00"]["standout"] > 0


def test_what_is_allowed_reaches_the_index():
    log: list = []
    search(QUERY, make_pipeline(SCORES, log=log), k=2, allowed=frozenset("ab"))
    assert log[0][3] == frozenset("ab")


def test_the_calibration_comes_after_the_rerankers_and_before_the_cut():
    calibration = Calibration(-3.0, {"asmk": 1.0, "inliers": 1.0})
    chain = (Promote("c", 4, []),)
    ranking = search(QUERY, make_pipeline(SCORES, chain, calibration=calibration), k=2)
    assert ranking.ids == ("c", "a")
    np.testing.assert_allclose(ranking.scores, [-3 + 0.7 + np.log(21), -3 + 0.9], rtol=1e-5)
    assert ranking.probabilities["a"] == pytest.approx(1 / (1 + np.exp(2.1)), rel=1e-5)


def test_only_what_is_answered_and_matched_is_located():
    log: list = []
    ranking = search(QUERY, make_pipeline(SCORES, (Promote("b", 4, log),), log), k=2)
    assert log[-1] == ("sizes", ("b",))
    assert ranking.boxes == {"b": QUERY.outline}


def test_every_stage_is_timed():
    ranking = search(QUERY, make_pipeline(SCORES, (Promote("b", 4, []), Promote("a", 4, []))), k=2)
    assert list(ranking.seconds) == ["shortlist", "promote", "locate"]
    assert all(seconds >= 0 for seconds in ranking.seconds.values())


def test_an_empty_collection_gives_an_empty_answer():
    ranking = search(QUERY, make_pipeline({}), k=5)
    assert ranking.query_id == "q"
    assert ranking.ids == () and ranking.scores.shape == (0,)


@dataclass(frozen=True)
class ByQuery:
    """The scores that belong to the value of the query's only row."""

    scores: Mapping[float, Mapping[str, float]]
    log: list

    def search(self, query: Descriptors, k: int, allowed: frozenset[str] | None = None) -> Ranking:  # noqa: ARG002
        value = float(query.vectors[0, 0])
        self.log.append(value)
        return FakeSearcher(self.scores[value]).search(query, k)


def turn_query(value: float, degrees: float) -> Query:
    return replace(QUERY, descriptors=(global_rows("q", [[value]]),), rotation=degrees)


@pytest.mark.parametrize(("bias", "first", "asked"), [(-9.0, "b", [1.0, 2.0, 3.0]), (9.0, "a", [1.0])])
def test_other_rotations_are_tried_unless_the_upright_answer_convinces(bias: float, first: str, asked: list[float]):
    scores = {1.0: {"a": 0.5, "b": 0.4}, 2.0: {"a": 0.1, "b": 0.9}, 3.0: {"a": 0.2, "b": 0.3}}
    log: list[float] = []
    parts = (Shortlister("tokens", 0, 1.0, ByQuery(scores, log)),)
    pipeline = make_pipeline({}, (), [], shortlisters=parts, calibration=Calibration(bias, {"tokens": 1.0}))
    query = replace(turn_query(1.0, 0.0), turned=lambda: (turn_query(2.0, 90.0), turn_query(3.0, 180.0)))
    ranking = search(query, pipeline, k=2)
    assert ranking.ids[0] == first
    assert log == asked
    assert ranking.signals["b"].get("rotation") == (90.0 if len(asked) > 1 else None)
    assert ranking.signals["a"].get("rotation") == (0.0 if len(asked) > 1 else None)


def test_without_turned_queries_no_other_rotation_is_searched():
    log: list[float] = []
    parts = (Shortlister("tokens", 0, 1.0, ByQuery({1.0: {"a": 0.5}}, log)),)
    search(turn_query(1.0, 0.0), make_pipeline({}, (), [], shortlisters=parts), k=1)
    assert log == [1.0]
