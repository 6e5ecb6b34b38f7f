import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import pytest
from support.builders import detect, draw_texture, global_rows, local_rows, tilt, warp

from resight.errors import RecipeError
from resight.search import rerankers
from resight.search.matchers import LocalFeatures
from resight.search.rerankers.geometry import ENOUGH
from resight.types import Descriptors, Query, Ranking

PIXELS = draw_texture(np.random.default_rng(0))


class FakeGallery:
    """Local features in branch 1, two images at a time; notes which were read."""

    def __init__(self, images: Sequence[LocalFeatures]) -> None:
        self.images = {image.id: image for image in images}
        self.read: list[tuple[int, str]] = []

    def descriptors(self, branch: int, ids: Sequence[str]) -> Iterator[Descriptors]:
        self.read += [(branch, name) for name in ids]
        for start in range(0, len(ids), 2):
            yield local_rows([self.images[name] for name in ids[start : start + 2]])


@pytest.fixture(scope="module")
def images() -> list[LocalFeatures]:
    others = np.random.default_rng(50)
    blank = LocalFeatures("blank", np.zeros((0, 128), np.float32), np.zeros((0, 4), np.float32))
    return [
        detect(draw_texture(others), "other"),
        blank,
        detect(warp(PIXELS, tilt()), "tilted"),
        detect(draw_texture(others), "another"),
    ]


def ask(*descriptors: Descriptors) -> Query:
    return Query(
        "q",
        (320, 240),
        (0.0, 0.0, 320.0, 240.0),
        descriptors or (global_rows("q", [[1]]), local_rows([detect(PIXELS)])),
    )


def rank(images: Sequence[LocalFeatures]) -> Ranking:
    ids = tuple(image.id for image in images)
    return Ranking(
        "q", ids, np.linspace(1, 0.5, len(ids), dtype=np.float32), signals={name: {"asmk": 1.0} for name in ids}
    )


def test_the_verified_image_comes_first_and_the_others_keep_their_order(images: list[LocalFeatures]):
    ranking = rerankers.build("geometry").rerank(ask(), rank(images), FakeGallery(images))
    assert ranking.ids == ("tilted", "other", "blank", "another")
    assert set(ranking.matches) == {"tilted"}
    inliers, significance = ranking.matches["tilted"].inliers, ranking.matches["tilted"].significance
    assert inliers > 50
    assert ranking.scores[0] == pytest.approx(rank(images).scores[2] + math.log(1 + significance), rel=1e-5)
    assert ranking.signals["tilted"] == {"asmk": 1.0, "inliers": inliers, "significance": significance}
    assert ranking.signals["blank"] == {"asmk": 1.0, "inliers": 0, "significance": 0}


def test_only_the_first_candidates_are_read_and_told_how_many_inliers_they_have(images: list[LocalFeatures]):
    gallery = FakeGallery(images)
    ranking = rerankers.build("geometry", candidates=2).rerank(ask(), rank(images), gallery)
    assert gallery.read == [(1, "other"), (1, "blank")]
    assert ranking.ids == ("other", "blank", "tilted", "another")
    assert ["inliers" in ranking.signals[name] for name in ranking.ids] == [True, True, False, False]


def test_a_query_without_a_single_feature_verifies_nothing(images: list[LocalFeatures]):
    ranking = rerankers.build("geometry").rerank(ask(local_rows([images[1]])), rank(images), FakeGallery(images))
    assert ranking.ids == rank(images).ids
    assert ranking.matches == {}


def test_without_key_points_it_says_what_to_add(images: list[LocalFeatures]):
    with pytest.raises(RecipeError, match="needs local features"):
        rerankers.build("geometry").rerank(ask(global_rows("q", [[1]])), rank(images), FakeGallery(images))


def test_rows_of_any_type_become_unit_rows():
    rows = LocalFeatures("a", np.array([[3, 4], [0, 0], [-5, 0]], np.int8), np.zeros((3, 4), np.float32)).vectors
    np.testing.assert_allclose(rows, [[0.6, 0.8], [0, 0], [-1, 0]], rtol=1e-6)
    assert rows.dtype == np.float32


def test_within_the_region_only_its_own_key_points_and_those_around_it_take_part():
    clutter = draw_texture(np.random.default_rng(3), 640, 240)
    clutter[:, :320] = PIXELS
    images = [detect(clutter, "a")]
    inside = rerankers.build("geometry", within="region")
    for region, seen in (((0.0, 0.0, 320.0, 240.0), True), ((560.0, 0.0, 640.0, 240.0), False)):
        ranking = replace(rank(images), regions={"a": region})
        assert ("a" in inside.rerank(ask(), ranking, FakeGallery(images)).matches) == seen
        assert "a" in rerankers.build("geometry").rerank(ask(), ranking, FakeGallery(images)).matches
    assert "a" in inside.rerank(ask(), rank(images), FakeGallery(images)).matches  # without a region, all do


def test_of_two_kinds_of_key_points_an_image_keeps_the_more_significant_match(images: list[LocalFeatures]):
    """Branch 1 has half of the key points, branch 2 all of them, without sizes and angles."""

    class TwoBranches(FakeGallery):
        def descriptors(self, branch: int, ids: Sequence[str]) -> Iterator[Descriptors]:
            change = halve if branch == 1 else forget_shapes
            return (local_rows([change(self.images[name])]) for name in ids)

    query = ask(
        global_rows("q", [[1]]), local_rows([halve(detect(PIXELS))]), local_rows([forget_shapes(detect(PIXELS))])
    )
    chain = [
        rerankers.build("geometry", branch=1),
        rerankers.build("geometry", branch=2, prefix="other_", matcher={"name": "ratio", "ratio": 0.95}),
    ]
    gallery = TwoBranches(images)
    first, last = (each.rerank(query, rank(images), gallery).matches["tilted"].significance for each in chain)
    both = chain[1].rerank(query, chain[0].rerank(query, rank(images), gallery), gallery)
    assert both.ids[0] == "tilted"
    assert both.matches["tilted"].significance == max(first, last)
    assert both.signals["tilted"]["significance"] == first
    assert both.signals["tilted"]["other_significance"] == last
    assert both.scores[0] == pytest.approx(rank(images).scores[2] + math.log(1 + max(first, last)), rel=1e-5)
    joined = rerankers.build("geometry", branch=2, prefix="best_", joined=True, candidates=1)
    only_first = joined.rerank(query, chain[0].rerank(query, rank(images), gallery), gallery)
    assert joined.signals == ("best_significance",)
    assert only_first.signals["tilted"]["best_significance"] == first > ENOUGH  # of the earlier key points, unbounded
    first_alone = replace(rank(images), ids=("tilted", *(name for name in rank(images).ids if name != "tilted")))
    assert joined.rerank(query, first_alone, gallery).signals["tilted"]["best_significance"] == ENOUGH
    alone = joined.rerank(query, rank(images), gallery)
    assert "best_significance" not in alone.signals["tilted"]  # beyond the first candidate, and no match before
    turned_round = chain[0].rerank(query, chain[1].rerank(query, rank(images), gallery), gallery)
    assert turned_round.matches["tilted"].significance == max(first, last)


def halve(image: LocalFeatures) -> LocalFeatures:
    return replace(image, rows=image.vectors[::2], points=image.points[::2])


def forget_shapes(image: LocalFeatures) -> LocalFeatures:
    points = image.points.copy()
    points[:, 2:] = np.nan
    return replace(image, points=points)


def test_a_branch_without_key_points_is_refused(images: list[LocalFeatures]):
    with pytest.raises(RecipeError, match="local features") as refused:
        rerankers.build("geometry", branch=0).rerank(ask(), rank(images), FakeGallery(images))
    assert refused.value.actual == "branch 0"


def test_a_matcher_and_a_ratio_beside_it_are_refused():
    with pytest.raises(RecipeError, match="matcher"):
        rerankers.build("geometry", matcher="mutual", ratio=0.8)
