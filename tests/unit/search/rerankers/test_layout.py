from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pytest

from resight.errors import RecipeError
from resight.index import Searcher
from resight.search import rerankers
from resight.search.rerankers.layout import place_candidates
from resight.types import Choice, Descriptors, Query, Ranking

SIDE = 5  # cells of a grid
CELLS = [(column, row) for row in range(SIDE) for column in range(SIDE)]


def place(name: str, cells: Mapping[int, tuple[int, int]], seeds: bool = False) -> Descriptors:
    """Token t, a direction of its own, in the cell that is given; all others lie in their own cell of the grid."""
    where = [cells.get(token, cell) for token, cell in enumerate(CELLS)]
    boxes = np.array([[10 * x, 10 * y, 10 * x + 10, 10 * y + 10] for x, y in where], np.float32)
    whole = np.tile(np.array([0, 0, 50, 50], np.float32), (len(boxes), 1))
    vectors = np.eye(len(CELLS), dtype=np.float32)
    owners = np.zeros(len(CELLS), np.int32)
    return Descriptors((name,), vectors, owners, boxes=whole if seeds else boxes, seeds=boxes if seeds else None)


class Shelf:
    def __init__(self, *images: Descriptors) -> None:
        self._images = {image.ids[0]: image for image in images}

    def descriptors(self, branch: int, ids: Sequence[str]) -> Iterator[Descriptors]:
        assert branch == 0
        return (self._images[name] for name in ids)

    def searcher(self, branch: int, choice: Choice) -> Searcher:
        raise AssertionError(f"layout needs places, which no index has: {branch}, {choice}")


def ask(*images: Descriptors, seeds: bool = False, **settings: object) -> Ranking:
    query = Query("q", (50, 50), (0, 0, 50, 50), (place("q", {}, seeds),))
    ids = tuple(image.ids[0] for image in images)
    scores = np.linspace(1, 0.5, len(ids), dtype=np.float32)
    return rerankers.build("layout", **settings).rerank(query, Ranking("q", ids, scores), Shelf(*images))


def shuffle(name: str) -> Descriptors:
    order = np.random.default_rng(0).permutation(len(CELLS))
    return place(name, {token: CELLS[cell] for token, cell in enumerate(order)})


@pytest.mark.parametrize("seeds", [False, True])
def test_the_same_parts_in_the_same_places_beat_the_same_parts_elsewhere(seeds: bool):
    # Both hold every token of the query, so that late interaction cannot tell them apart.
    found = ask(shuffle("shuffled"), place("alike", {}, seeds), seeds=seeds)
    assert found.ids == ("alike", "shuffled")
    assert found.signals["alike"]["layout"] > 1.5 * found.signals["shuffled"]["layout"]


def test_a_shifted_view_is_recognised_and_needs_the_shift():
    # Everything one cell to the right; the last column of the query falls outside, and is replaced by the first.
    moved = place("moved", {token: ((x + 1) % SIDE, y) for token, (x, y) in enumerate(CELLS)})
    with_shifts = ask(moved, reach=0.2, steps=3).signals["moved"]["layout"]
    without = ask(moved, reach=0.0, steps=1).signals["moved"]["layout"]
    assert with_shifts > 1.3 * without


def test_places_are_middles_of_patches_over_what_the_tokens_cover():
    rows = Descriptors(
        ("a",),
        np.eye(2, dtype=np.float32),
        np.zeros(2, np.int32),
        boxes=np.array([[100, 50, 200, 250], [200, 50, 300, 250]], np.float32),
        seeds=np.array([[100, 50, 120, 90], [280, 210, 300, 250]], np.float32),
    )
    twice = Descriptors(
        ("b", "none", "c"),
        np.eye(4, 2, dtype=np.float32),
        np.array([0, 0, 2, 2], np.int32),
        boxes=np.concatenate([rows.boxes, rows.boxes * 3]),
        seeds=np.concatenate([rows.seeds, rows.seeds * 3]),
    )
    placed = place_candidates([rows, twice])
    assert placed.ids == ("a", "b", "none", "c")
    assert placed.images is not None
    assert placed.images.offsets.tolist() == [0, 2, 4, 4, 6]
    np.testing.assert_allclose(placed.images.centres, [[-0.45, -0.4], [0.45, 0.4]] * 3, atol=1e-6)


def test_the_mean_counts_every_image_with_tokens_once_and_one_image_has_none():
    def name(image: str, *vectors: tuple[float, float]) -> Descriptors:
        boxes = np.tile(np.array([0, 0, 1, 1], np.float32), (len(vectors), 1))
        return Descriptors((image,), np.array(vectors).reshape(-1, 2), np.zeros(len(vectors), np.int32), boxes=boxes)

    chunks = [name("a", (1, 0), (3, 0)), name("none"), name("b", (0, 6))]
    placed = place_candidates(chunks).images
    assert placed is not None
    assert placed.mean.tolist() == [1, 3]
    alone = place_candidates(chunks[:2]).images
    assert alone is not None
    assert alone.mean.tolist() == [0, 0]


def test_images_and_queries_without_tokens_score_nothing():
    empty = place("empty", {})
    empty = Descriptors(("empty",), empty.vectors[:0], empty.owners[:0], boxes=np.zeros((0, 4), np.float32))
    assert ask(empty, place("alike", {})).ids == ("alike", "empty")
    query = Query("q", (50, 50), (0, 0, 50, 50), (empty,))
    ranking = Ranking("q", ("alike",), np.ones(1, np.float32))
    found = rerankers.build("layout").rerank(query, ranking, Shelf(place("alike", {})))
    assert found.signals["alike"]["layout"] == 0


def test_what_was_not_looked_at_stays_below():
    found = ask(shuffle("shuffled"), place("alike", {}), place("also", {}), candidates=2)
    assert found.ids == ("alike", "shuffled", "also")
    assert "layout" not in found.signals["also"]


@pytest.mark.parametrize("wrong", [{"candidates": -1}, {"tolerance": 0}, {"steps": 0}, {"scales": []}, {"scales": [0]}])
def test_settings_that_mean_nothing_are_refused(wrong: dict):
    with pytest.raises(RecipeError):
        rerankers.build("layout", **wrong)


def test_a_branch_without_tokens_is_refused_by_its_number():
    with pytest.raises(RecipeError, match="late interaction needs tokens") as failure:
        ask(place("alike", {}), branch=1)
    assert failure.value.actual == "branch 1"
    assert ask(place("alike", {}), branch=0).ids == ("alike",)
