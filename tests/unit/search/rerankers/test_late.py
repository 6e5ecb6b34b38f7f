import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support.token_rows import Shelf, make_tokens, score_by_hand

from resight import index
from resight.errors import RecipeError
from resight.index import Searcher
from resight.search import rerankers
from resight.search.rerankers.late import keep_inside
from resight.search.rescoring import remember_scores
from resight.types import Choice, Descriptors, Query, Ranking

AXES = np.eye(4, dtype=np.float32)
TOKENS = Descriptors(("a", "b", "c", "d"), AXES[[3, 0, 1, 0, 2]], np.array([0, 1, 1, 2, 3], np.int32))


class IndexedShelf:
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
    found = rerankers.build("late", candidates=3, kind=kind).rerank(QUERY, RANKING, IndexedShelf())
    assert found.ids == ("b", "c", "a", "d")
    assert found.scores[:3] == pytest.approx([1.0, 0.5, 0.0], abs=0.01)
    assert found.signals["b"]["late"] == pytest.approx(1.0, abs=0.01)


@pytest.mark.parametrize(("kind", "error"), [("fp32", 1e-6), ("fp16", 1e-3), ("int8", 5e-3)])
def test_the_scores_of_many_images_are_those_of_the_formula(kind: str, error: float):
    images, tokens = make_tokens([1 + number % 7 for number in range(100)]), make_tokens([5], seed=9)
    truth = score_by_hand(tokens, images)
    ranking = Ranking("q", images.ids, np.linspace(1, 0, 100, dtype=np.float32))
    found = rerankers.build("late", kind=kind).rerank(make_query(with_boxes(tokens)), ranking, IndexedShelf(images))
    assert {name: found.signals[name]["late"] for name in found.ids} == pytest.approx(truth, abs=error)
    if kind == "fp32":
        assert list(found.ids) == sorted(truth, key=lambda name: -truth[name])


def test_equal_candidates_stay_in_the_order_of_the_shortlist():
    rows = Descriptors(("a", "b"), AXES[[0, 0]], np.array([0, 1], np.int32))
    found = rerankers.build("late").rerank(
        QUERY, replace(RANKING, ids=("b", "a"), scores=RANKING.scores[:2]), IndexedShelf(rows)
    )
    assert found.ids == ("b", "a")


def test_what_was_not_looked_at_stays_below_and_has_no_signal():
    found = rerankers.build("late", candidates=1).rerank(QUERY, RANKING, IndexedShelf())
    assert found.ids == ("a", "b", "c", "d")
    assert (np.diff(found.scores) <= 0).all()
    assert "late" not in found.signals["d"]


def test_a_share_of_the_ranking_are_the_candidates():
    half = rerankers.build("late", share=0.5)
    assert half.candidates > 4  # the shortlist holds every image
    found = half.rerank(QUERY, RANKING, IndexedShelf())
    assert found.ids == rerankers.build("late", candidates=2).rerank(QUERY, RANKING, IndexedShelf()).ids
    assert {name for name, signals in found.signals.items() if "late" in signals} == {"a", "b"}
    with pytest.raises(RecipeError, match="share"):
        rerankers.build("late", share=1.5)


def test_an_image_that_is_gone_from_the_index_stays_below():
    found = rerankers.build("late").rerank(QUERY, replace(RANKING, ids=("gone", "a", "b", "c")), IndexedShelf())
    assert found.ids == ("b", "c", "a", "gone")
    assert "late" not in found.signals["gone"]


def test_the_index_keeps_the_tokens_in_the_kind_that_is_set_and_in_no_other():
    shelf = IndexedShelf(make_tokens([30] * 10, dimensions=4))
    names = shelf.rows.ids[:4]
    rerankers.build("late", kind="pq", m=2, bits=4).rerank(QUERY, replace(RANKING, ids=names), shelf)
    rerankers.build("late", kind="pq", m=2, bits=8).rerank(QUERY, replace(RANKING, ids=names), shelf)
    assert shelf.asked == [
        (1, Choice("maxsim", {"kind": "pq", "keep": "none", "m": 2})),
        (1, Choice("maxsim", {"kind": "pq", "keep": "none", "m": 2, "bits": 8})),
    ]


def test_parts_without_product_quantisation_are_refused():
    with pytest.raises(RecipeError, match="m would have no effect"):
        rerankers.build("late", m=2).rerank(QUERY, RANKING, IndexedShelf())


def test_a_query_without_tokens_is_refused_with_what_to_add():
    no_boxes = make_query(replace(QUERY.descriptors[1], boxes=None))
    with pytest.raises(RecipeError, match="needs tokens"):
        rerankers.build("late").rerank(no_boxes, RANKING, IndexedShelf())


def test_a_branch_of_regions_scores_by_its_best_region():
    """Patchify's own local score: one vector of the query against the regions of each image."""
    query = make_query(Descriptors(("q",), AXES[:1], np.zeros(1, np.int32)))  # no boxes: not tokens
    rows = Descriptors(("a", "b"), np.stack([AXES[1], 0.6 * AXES[0], 0.9 * AXES[0]]), np.array([0, 0, 1], np.int32))
    ranking = Ranking("q", ("a", "b"), np.array([0.9, 0.8], np.float32))
    shelf = IndexedShelf(rows)
    found = rerankers.build("late", kind="fp32", branch=1).rerank(query, ranking, shelf)
    assert found.ids == ("b", "a")
    assert found.scores == pytest.approx([0.9, 0.6])
    assert shelf.asked[0][0] == 1
    with pytest.raises(RecipeError, match="0 to 1"):
        rerankers.build("late", branch=2).rerank(query, ranking, shelf)


def test_a_grid_of_settings_searches_the_index_once():
    shelf = IndexedShelf()
    with remember_scores():
        few = rerankers.build("late", candidates=2).rerank(QUERY, RANKING, shelf)
        all_four = rerankers.build("late", candidates=4, balance=0.5).rerank(QUERY, RANKING, shelf)
        again = rerankers.build("late", candidates=3).rerank(QUERY, RANKING, shelf)
    assert len(shelf.asked) == 2
    assert few.signals["b"] == again.signals["b"]
    assert again.ids == rerankers.build("late", candidates=3).rerank(QUERY, RANKING, IndexedShelf()).ids
    assert all_four.ids == rerankers.build("late", balance=0.5).rerank(QUERY, RANKING, IndexedShelf()).ids


THREE_AXES = np.eye(3, dtype=np.float32)


def lay(name: str, vectors: np.ndarray, middles: Sequence[tuple[float, float]]) -> Descriptors:
    """Tokens whose own patches of 2 × 2 pixels have these middles; together each covers far more."""
    places = np.array(middles, np.float32)
    own = np.hstack([places - 1, places + 1])
    return Descriptors(
        (name,),
        vectors,
        np.zeros(len(vectors), np.int32),
        boxes=own + np.array([-50, -50, 50, 50], np.float32),
        seeds=own,
    )


def ask(*images: Descriptors, regions: dict, **settings: object) -> Ranking:
    query = Query("q", (9, 9), (0, 0, 9, 9), (lay("q", THREE_AXES[:2], [(1, 1), (5, 5)]),))
    ids = tuple(image.ids[0] for image in images)
    ranking = Ranking("q", ids, np.linspace(1, 0.5, len(ids), dtype=np.float32), regions=regions)
    return rerankers.build("late", within="region", **settings).rerank(query, ranking, Shelf(*images))


def test_only_tokens_in_the_winning_region_count():
    # a: of (x, y, z) only x lies inside: (1 + 0) / 2; b: x and y lie inside: (1 + 1) / 2
    a = lay("a", THREE_AXES, [(5, 5), (50, 5), (5, 6)])
    b = lay("b", THREE_AXES, [(5, 5), (6, 5), (50, 6)])
    found = ask(a, b, regions={"a": (0, 0, 10, 10), "b": (0, 0, 10, 10)})
    assert found.ids == ("b", "a")
    assert found.scores == pytest.approx([1.0, 0.5])


def test_without_a_region_or_a_token_in_it_all_tokens_count():
    a = lay("a", THREE_AXES[:2], [(5, 5), (50, 5)])
    b = lay("b", THREE_AXES[:2], [(5, 5), (50, 5)])
    found = ask(a, b, regions={"b": (80, 80, 90, 90)})
    assert found.scores == pytest.approx([1.0, 1.0])


def test_an_image_without_tokens_scores_nothing():
    found = ask(
        lay("a", THREE_AXES[:0], np.zeros((0, 2))), lay("b", THREE_AXES, [(1, 1)] * 3), regions={"a": (0, 0, 10, 10)}
    )
    assert found.ids == ("b", "a")
    assert found.signals["a"]["late"] == 0


def test_the_middle_of_a_tokens_own_patch_decides_and_the_edge_belongs_to_the_region():
    kept = keep_inside(lay("a", THREE_AXES, [(10, 10), (11, 10), (9, 9)]), (0, 0, 10, 10))
    assert kept.vectors.tolist() == THREE_AXES[[0, 2]].tolist()
    assert kept.seeds is not None and kept.boxes is not None
    assert len(kept.seeds) == len(kept.boxes) == len(kept.owners) == 2


def test_the_region_goes_with_balance_and_temperature():
    # 0.5 · 1 + 0.5 · σ(1 / 1) = 0.5 + 0.5 · 0.731059
    found = ask(lay("a", THREE_AXES[:2], [(5, 5), (6, 6)]), regions={}, balance=0.5, temperature=1.0)
    assert found.scores == pytest.approx([0.865529])


def test_how_an_index_keeps_tokens_means_nothing_within_a_region():
    with pytest.raises(RecipeError, match="kind would have no effect"):
        rerankers.build("late", within="region", kind="fp16")
