from collections.abc import Sequence

import numpy as np
import pytest
from support.token_rows import Shelf

from resight.errors import RecipeError
from resight.search import rerankers
from resight.search.rerankers.late import keep_inside
from resight.types import Descriptors, Query, Ranking

AXES = np.eye(3, dtype=np.float32)


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
    query = Query("q", (9, 9), (0, 0, 9, 9), (lay("q", AXES[:2], [(1, 1), (5, 5)]),))
    ids = tuple(image.ids[0] for image in images)
    ranking = Ranking("q", ids, np.linspace(1, 0.5, len(ids), dtype=np.float32), regions=regions)
    return rerankers.build("late", within="region", **settings).rerank(query, ranking, Shelf(*images))


def test_only_tokens_in_the_winning_region_count():
    # a: of (x, y, z) only x lies inside: (1 + 0) / 2; b: x and y lie inside: (1 + 1) / 2
    a = lay("a", AXES, [(5, 5), (50, 5), (5, 6)])
    b = lay("b", AXES, [(5, 5), (6, 5), (50, 6)])
    found = ask(a, b, regions={"a": (0, 0, 10, 10), "b": (0, 0, 10, 10)})
    assert found.ids == ("b", "a")
    assert found.scores == pytest.approx([1.0, 0.5])


def test_without_a_region_or_a_token_in_it_all_tokens_count():
    a = lay("a", AXES[:2], [(5, 5), (50, 5)])
    b = lay("b", AXES[:2], [(5, 5), (50, 5)])
    found = ask(a, b, regions={"b": (80, 80, 90, 90)})
    assert found.scores == pytest.approx([1.0, 1.0])


def test_an_image_without_tokens_scores_nothing():
    found = ask(lay("a", AXES[:0], np.zeros((0, 2))), lay("b", AXES, [(1, 1)] * 3), regions={"a": (0, 0, 10, 10)})
    assert found.ids == ("b", "a")
    assert found.signals["a"]["late"] == 0


def test_the_middle_of_a_tokens_own_patch_decides_and_the_edge_belongs_to_the_region():
    kept = keep_inside(lay("a", AXES, [(10, 10), (11, 10), (9, 9)]), (0, 0, 10, 10))
    assert kept.vectors.tolist() == AXES[[0, 2]].tolist()
    assert kept.seeds is not None and kept.boxes is not None
    assert len(kept.seeds) == len(kept.boxes) == len(kept.owners) == 2


def test_the_region_goes_with_balance_and_temperature():
    # 0.5 · 1 + 0.5 · σ(1 / 1) = 0.5 + 0.5 · 0.731059
    found = ask(lay("a", AXES[:2], [(5, 5), (6, 6)]), regions={}, balance=0.5, temperature=1.0)
    assert found.scores == pytest.approx([0.865529])


def test_how_an_index_keeps_tokens_means_nothing_within_a_region():
    with pytest.raises(RecipeError, match="kind would change nothing"):
        rerankers.build("late", within="region", kind="fp16")
