from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pytest
from support.builders import global_rows

from resight.errors import RecipeError
from resight.search import rerankers
from resight.types import Box, Descriptors, Match, Query, Ranking

REGION = (40.0, 40.0, 80.0, 80.0)


def tile(id: str, area: Box, things: Mapping[tuple[int, int], int]) -> Descriptors:
    """A region cut into 4 × 4 patches; the one in (row, column) shows a thing, all others nothing in particular."""
    x0, y0, x1, y1 = area
    xs, ys = np.linspace(x0, x1, 5), np.linspace(y0, y1, 5)
    vectors, boxes = [], []
    for row in range(4):
        for column in range(4):
            vectors.append(np.eye(5)[things.get((row, column), 4)])
            boxes.append((xs[column], ys[row], xs[column + 1], ys[row + 1]))
    return Descriptors(
        (id,), np.array(vectors, np.float32), np.zeros(16, np.int32), boxes=np.array(boxes, np.float32), space="s"
    )


class Files:
    """Images whose patches are made when they are asked for."""

    def __init__(self, things: Mapping[str, Mapping[tuple[int, int], int] | None]) -> None:
        self.things = things
        self.asked: list[tuple[str, Box | None]] = []

    def patches(self, name: str, region: Box | None) -> Descriptors | None:
        self.asked.append((name, region))
        things = self.things[name]
        return None if things is None else tile(name, region or (0, 0, 160, 160), things)

    def descriptors(self, *_: Any) -> Iterator[Descriptors]:
        raise AssertionError("stored rows are not needed")

    searcher = positions = descriptors


ALL = {(1, 1): 0, (1, 2): 1, (2, 1): 2, (2, 2): 3}  # the four things in the middle
NONE: Mapping[tuple[int, int], int] = {}
PATCHES = Descriptors(
    ("q",), np.eye(5, dtype=np.float32)[:4], np.zeros(4, np.int32), boxes=np.array([[0, 0, 8, 8]] * 4, np.float32)
)
QUERY = Query("q", (16, 16), (0.0, 0.0, 16.0, 16.0), (global_rows("q", [[1]]),), patches=PATCHES)


def rank(*ids: str, **more: Any) -> Ranking:
    return Ranking("q", ids, np.linspace(0.9, 0.5, len(ids), dtype=np.float32), **more)


def look(files: Files, ranking: Ranking, query: Query = QUERY, **settings: Any) -> Ranking:
    return rerankers.build("patch_refine", **settings).rerank(query, ranking, files)  # type: ignore[arg-type]


def test_the_box_is_where_the_parts_of_the_query_are_in_the_grown_region():
    files = Files({"a": ALL})
    found = look(files, rank("a", regions={"a": REGION}, boxes={"a": REGION}, located_by={"a": "region"}))
    assert files.asked == [("a", (30.0, 30.0, 90.0, 90.0))]
    assert found.boxes["a"] == (45.0, 45.0, 75.0, 75.0)  # the middle four of sixteen patches of 15 pixels
    assert found.located_by["a"] == "tokens"
    assert (found.ids, found.regions) == (("a",), {"a": REGION})


def test_without_a_region_the_whole_image_is_looked_at():
    files = Files({"a": ALL})
    assert look(files, rank("a")).boxes["a"] == (40.0, 40.0, 120.0, 120.0)
    assert files.asked == [("a", None)]


def test_what_was_verified_is_passed_over_and_so_is_what_cannot_be_read():
    files = Files({"a": ALL, "b": None, "c": ALL, "d": ALL})
    verified = {"a": Match("q", "a", 9, np.eye(3), np.zeros((9, 4), np.float32))}
    kept = rank("a", "b", "c", "d", matches=verified, boxes={"b": REGION}, located_by={"b": "region"})
    found = look(files, kept, candidates=3)
    assert [name for name, _ in files.asked] == ["b", "c"]
    assert set(found.boxes) == {"b", "c"} and found.located_by == {"b": "region", "c": "tokens"}
    assert found.signals == {}


def test_with_reorder_the_patches_decide_the_order_of_the_candidates():
    files = Files({"a": NONE, "b": ALL, "c": None})
    found = look(files, rank("a", "b", "c"), reorder=True)
    assert found.ids == ("b", "a", "c")
    assert [found.signals[name]["patch_refine"] for name in "bac"] == [1.0, 0.0, 0.0]
    half = look(files, rank("a", "b", "c"), reorder=True, balance=0.5)
    assert half.scores.tolist() == pytest.approx([0.5 * 0.7 + 0.5, 0.5 * 0.9, 0.5 * 0.5])


def test_a_region_that_shows_nothing_of_the_query_keeps_its_box():
    found = look(Files({"a": NONE}), rank("a", regions={"a": REGION}, boxes={"a": REGION}))
    assert found.boxes == {"a": REGION} and found.located_by == {}


def test_a_query_without_patches_is_refused_with_what_would_do():
    plain = Query("q", (16, 16), (0.0, 0.0, 16.0, 16.0), (global_rows("q", [[1]]),))
    with pytest.raises(RecipeError, match="pooled"):
        look(Files({"a": ALL}), rank("a"), plain)
    assert look(Files({}), rank(), plain).ids == ()
