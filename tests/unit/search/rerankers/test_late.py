import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support.token_rows import make_tokens, score_by_hand

from resight import index
from resight.errors import RecipeError
from resight.index import Searcher
from resight.search import rerankers
from resight.types import Choice, Descriptors, Query, Ranking

AXES = np.eye(4, dtype=np.float32)
TOKENS = Descriptors(("a", "b", "c", "d"), AXES[[3, 0, 1, 0, 2]], np.array([0, 1, 1, 2, 3], np.int32))


class Shelf:
    """Images with tokens in branch 1; notes which indexes were asked for."""

    def __init__(self, rows: Descriptors = TOKENS) -> None:
        self.rows = rows
        self.asked: list[tuple[int, Choice]] = []

    def descriptors(self, branch: int, ids: Sequence[str]) -> Iterator[Descriptors]:
        raise AssertionError(f"tokens of {ids} in branch {branch} are in the index")

    def searcher(self, branch: int, choice: Choice) -> Searcher:
        self.asked.append((branch, choice))
        with tempfile.TemporaryDirectory() as folder:
            return index.build(choice.name, **choice.settings).create(lambda: iter([self.rows]), Path(folder))


def make_query(rows: Descriptors) -> Query:
    pooled = Descriptors(("q",), AXES[:1], np.zeros(1, np.int32))
    return Query("q", (10, 10), (0, 0, 10, 10), (pooled, rows))


def with_boxes(rows: Descriptors) -> Descriptors:
    return replace(rows, ids=("q",), boxes=np.zeros((len(rows), 4), np.float32))


QUERY = make_query(with_boxes(Descriptors(("q",), AXES[[0, 1]], np.zeros(2, np.int32))))
RANKING = Ranking("q", ("a", "b", "c", "d"), np.array([0.9, 0.8, 0.7, 0.6], np.float32))


@pytest.mark.parametrize("kind", ["fp32", "fp16", "int8"])
def test_candidates_are_ordered_by_the_mean_of_the_best_products(kind: str):
    found = rerankers.build("late", candidates=3, kind=kind).rerank(QUERY, RANKING, Shelf())
    assert found.ids == ("b", "c", "a", "d")
    assert found.scores[:3] == pytest.approx([1.0, 0.5, 0.0], abs=0.01)
    assert found.signals["b"]["late"] == pytest.approx(1.0, abs=0.01)


@pytest.mark.parametrize(("kind", "error"), [("fp32", 1e-6), ("fp16", 1e-3), ("int8", 5e-3)])
def test_the_scores_of_many_images_are_those_of_the_formula(kind: str, error: float):
    images, tokens = make_tokens([1 + number % 7 for number in range(100)]), make_tokens([5], seed=9)
    truth = score_by_hand(tokens, images)
    ranking = Ranking("q", images.ids, np.linspace(1, 0, 100, dtype=np.float32))
    found = rerankers.build("late", kind=kind).rerank(make_query(with_boxes(tokens)), ranking, Shelf(images))
    assert {name: found.signals[name]["late"] for name in found.ids} == pytest.approx(truth, abs=error)
    if kind == "fp32":
        assert list(found.ids) == sorted(truth, key=lambda name: -truth[name])


def test_equal_candidates_stay_in_the_order_of_the_shortlist():
    rows = Descriptors(("a", "b"), AXES[[0, 0]], np.array([0, 1], np.int32))
    found = rerankers.build("late").rerank(
        QUERY, replace(RANKING, ids=("b", "a"), scores=RANKING.scores[:2]), Shelf(rows)
    )
    assert found.ids == ("b", "a")


def test_what_was_not_looked_at_stays_below_and_has_no_signal():
    found = rerankers.build("late", candidates=1).rerank(QUERY, RANKING, Shelf())
    assert found.ids == ("a", "b", "c", "d")
    assert (np.diff(found.scores) <= 0).all()
    assert "late" not in found.signals["d"]


def test_an_image_that_is_gone_from_the_index_stays_below():
    found = rerankers.build("late").rerank(QUERY, replace(RANKING, ids=("gone", "a", "b", "c")), Shelf())
    assert found.ids == ("b", "c", "a", "gone")
    assert "late" not in found.signals["gone"]


def test_the_index_keeps_the_tokens_in_the_kind_that_is_set_and_in_no_other():
    shelf = Shelf(make_tokens([30] * 10, dimensions=4))
    names = shelf.rows.ids[:4]
    rerankers.build("late", kind="pq", m=2, bits=4).rerank(QUERY, replace(RANKING, ids=names), shelf)
    rerankers.build("late", kind="pq", m=2, bits=8).rerank(QUERY, replace(RANKING, ids=names), shelf)
    assert shelf.asked == [
        (1, Choice("maxsim", {"kind": "pq", "keep": "none", "m": 2})),
        (1, Choice("maxsim", {"kind": "pq", "keep": "none", "m": 2, "bits": 8})),
    ]


def test_parts_without_product_quantisation_are_refused():
    with pytest.raises(RecipeError, match="m would change nothing"):
        rerankers.build("late", m=2).rerank(QUERY, RANKING, Shelf())


def test_a_query_without_tokens_is_refused_with_what_to_add():
    no_boxes = make_query(replace(QUERY.descriptors[1], boxes=None))
    with pytest.raises(RecipeError, match="needs tokens"):
        rerankers.build("late").rerank(no_boxes, RANKING, Shelf())
