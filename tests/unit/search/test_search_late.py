from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import pytest

from resight.errors import RecipeError
from resight.search import rerankers
from resight.types import Descriptors, Query, Ranking

AXES = np.eye(4, dtype=np.float32)
TOKENS = {"a": AXES[[3]], "b": AXES[[0, 1]], "c": AXES[[0]], "d": AXES[[2]]}


class Shelf:
    """Images whose tokens are axes, so that every score can be read off."""

    def descriptors(self, branch: int, ids: Sequence[str]) -> Iterator[Descriptors]:
        assert branch == 1
        rows = [TOKENS[name] for name in ids]
        owners = np.repeat(np.arange(len(ids), dtype=np.int32), [len(part) for part in rows])
        yield Descriptors(tuple(ids), np.concatenate(rows), owners)


def make_query(rows: Descriptors) -> Query:
    pooled = Descriptors(("q",), AXES[:1], np.zeros(1, np.int32))
    return Query("q", (10, 10), (0, 0, 10, 10), (pooled, rows))


QUERY = make_query(Descriptors(("q",), AXES[[0, 1]], np.zeros(2, np.int32), boxes=np.zeros((2, 4), np.float32)))
RANKING = Ranking("q", ("a", "b", "c", "d"), np.array([0.9, 0.8, 0.7, 0.6], np.float32))


def test_candidates_are_ordered_by_the_mean_of_the_best_products():
    found = rerankers.build("late", candidates=3).rerank(QUERY, RANKING, Shelf())
    assert found.ids == ("b", "c", "a", "d")
    assert found.scores[:3] == pytest.approx([1.0, 0.5, 0.0])
    assert found.signals["b"]["late"] == pytest.approx(1.0)


def test_what_was_not_looked_at_stays_below_and_has_no_signal():
    found = rerankers.build("late", candidates=1).rerank(QUERY, RANKING, Shelf())
    assert found.ids == ("a", "b", "c", "d")
    assert (np.diff(found.scores) <= 0).all()
    assert "late" not in found.signals["d"]


def test_a_query_without_tokens_is_refused_with_what_to_add():
    no_boxes = make_query(replace(QUERY.descriptors[1], boxes=None))
    with pytest.raises(RecipeError, match="needs tokens"):
        rerankers.build("late").rerank(no_boxes, RANKING, Shelf())
