"""What every index promises, whatever rows it takes."""

import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
from support.builders import count_rows, global_rows, word_rows

from resight import index, plugins
from resight.errors import MissingExtra, RecipeError
from resight.index import Index, Searcher
from resight.types import Descriptors, Ranking


class Kind:
    """Rows with one number an image, as vectors, words or counts: the larger, the better the answer to `query`."""

    def __init__(self, name: Literal["vectors", "words", "counts"]) -> None:
        self.name = name
        self.query = self.rows({"q": 8})

    def rows(self, images: dict[str, int]) -> Descriptors:
        if self.name == "counts":
            return count_rows({name: dict.fromkeys(range(value), 1) for name, value in images.items()})
        if self.name == "words":
            return word_rows({name: {3: [(1 << value) - 1]} for name, value in images.items()}, 1)
        return global_rows(list(images), [[value / 8, 1] for value in images.values()])


class Case:
    def __init__(self, plugin: Index, kind: Kind, folder: Path) -> None:
        self.plugin, self.kind, self.folder = plugin, kind, folder

    def create(self, *chunks: dict[str, int]) -> Searcher:
        return self.plugin.create(lambda: (self.kind.rows(images) for images in chunks), self.folder)

    def search(self, searcher: Searcher, k: int, allowed: frozenset[str] | None = None) -> Ranking:
        return searcher.search(self.kind.query, k, allowed)


@pytest.fixture(params=plugins.names("resight.index"))
def case(request: pytest.FixtureRequest, tmp_path: Path) -> Case:
    """An index, and the kind of rows that it takes."""
    (tmp_path / "probe").mkdir()
    (tmp_path / "index").mkdir()
    try:
        plugin = index.build(request.param)
    except MissingExtra as missing:
        pytest.skip(missing.problem)
    return Case(plugin, find_kind(plugin, tmp_path / "probe"), tmp_path / "index")


def find_kind(plugin: Index, folder: Path) -> Kind:
    for kind in (Kind("vectors"), Kind("words")):
        try:
            Case(plugin, kind, folder).create({"a": 1})
        except RecipeError:
            continue
        return kind
    return Kind("counts")


IMAGES = {"e": 5, "a": 7, "d": 1, "c": 8, "b": 6}


def best_first(images: dict[str, int]) -> Sequence[str]:
    return tuple(sorted(images, key=lambda name: (-images[name], name)))


def test_the_best_come_first_and_name_the_query(case: Case):
    ranking = case.search(case.create(IMAGES), 3)
    assert ranking.query_id == "q"
    assert ranking.ids == ("c", "a", "b")
    assert ranking.scores.dtype == np.float32
    assert np.all(np.diff(ranking.scores) < 0)


def test_an_index_that_is_opened_again_gives_the_same_answer(case: Case):
    before = case.search(case.create(IMAGES), 5)
    after = case.search(case.plugin.open(case.folder), 5)
    assert after.ids == before.ids
    assert after.scores.tolist() == before.scores.tolist()


def test_chunks_make_no_difference(case: Case, tmp_path: Path):
    together = case.search(case.create(IMAGES), 5)
    (tmp_path / "parts").mkdir()
    parts = Case(case.plugin, case.kind, tmp_path / "parts")
    apart = parts.search(parts.create(*({name: value} for name, value in IMAGES.items())), 5)
    assert apart.ids == together.ids
    assert apart.scores.tolist() == together.scores.tolist()


def test_only_allowed_images_are_found_with_their_usual_scores(case: Case):
    searcher = case.create(IMAGES)
    whole = case.search(searcher, 5)
    usual = dict(zip(whole.ids, whole.scores.tolist(), strict=True))
    ranking = case.search(searcher, 5, frozenset({"d", "b", "unknown"}))
    assert ranking.ids == ("b", "d")
    assert ranking.scores.tolist() == pytest.approx([usual["b"], usual["d"]])


@pytest.mark.parametrize("allowed", [frozenset(), frozenset({"unknown"})])
def test_when_nothing_is_allowed_nothing_is_found(case: Case, allowed: frozenset[str]):
    assert case.search(case.create(IMAGES), 5, allowed).ids == ()


@pytest.mark.parametrize("k", [5, 6, 100])
def test_a_k_beyond_the_collection_gives_all_of_it(case: Case, k: int):
    assert case.search(case.create(IMAGES), k).ids == best_first(IMAGES)


def test_a_k_of_zero_gives_nothing(case: Case):
    ranking = case.search(case.create(IMAGES), 0)
    assert ranking.ids == ()
    assert ranking.scores.shape == (0,)


def test_a_collection_of_one(case: Case):
    assert case.search(case.create({"only": 4}), 3).ids == ("only",)


def test_an_empty_collection_answers_nothing_also_when_opened_again(case: Case):
    assert case.search(case.create(), 3).ids == ()
    assert case.search(case.plugin.open(case.folder), 3).ids == ()


def test_equal_scores_come_in_the_order_of_their_ids(case: Case):
    images = {"e": 5, "b": 5, "d": 8, "c": 5, "a": 5}
    assert case.search(case.create(images), 5).ids == ("d", "a", "b", "c", "e")


def test_ids_may_be_any_text(case: Case):
    images = {"ü/日本.jpg": 7, 'a "b"\n': 6, "": 5}
    case.create(images)
    assert case.search(case.plugin.open(case.folder), 3).ids == tuple(images)


WHOLE, LEFT, RIGHT = (0, 0, 8, 8), (0, 0, 4, 8), (4, 0, 8, 8)


def region_rows(images: dict[str, dict[tuple[float, ...], float]]) -> Descriptors:
    """Rows of regions from {id: {box: score of the row}}; the query is (1, 0)."""
    rows = [(owner, box, value) for owner, boxes in enumerate(images.values()) for box, value in boxes.items()]
    return Descriptors(
        ids=tuple(images),
        vectors=np.array([[value, 1] for _, _, value in rows], np.float32).reshape(len(rows), 2),
        owners=np.array([owner for owner, _, _ in rows], np.int32),
        boxes=np.array([box for _, box, _ in rows], np.float32).reshape(len(rows), 4),
    )


REGIONS = {
    "a": {WHOLE: 0.1, LEFT: 0.7, RIGHT: 0.2},
    "b": {WHOLE: 0.9},
    "bare": {},
    "c": {WHOLE: 0.3, LEFT: 0.3, RIGHT: 0.8},
    "d": {WHOLE: -0.5, LEFT: -0.6},
}
REGION_QUERY = Descriptors(("q",), np.array([[1, 0]], np.float32), np.zeros(1, np.int32))


REGIONAL = ["exact", "hnsw", "ivfpq", *(["qdrant"] if importlib.util.find_spec("qdrant_client") else [])]


@pytest.fixture(params=REGIONAL)
def regions(request: pytest.FixtureRequest, tmp_path: Path) -> Searcher:
    """An index whose image counts by its best row, over images with one row, several and none."""
    return index.build(request.param, match="best").create(lambda: iter([region_rows(REGIONS)]), tmp_path)


@pytest.mark.parametrize("k", [5, 3, 1])
def test_the_best_region_is_the_score_of_its_image_and_one_without_any_has_0(regions: Searcher, k: int):
    ranking = regions.search(REGION_QUERY, k)
    assert ranking.ids == ("b", "c", "a", "bare", "d")[:k]
    assert ranking.scores.tolist() == pytest.approx([0.9, 0.8, 0.7, 0, -0.5][:k])


@pytest.mark.parametrize("k", [5, 2])
def test_the_box_of_the_region_that_won_comes_with_each_image_that_has_one(regions: Searcher, k: int):
    boxes = regions.search(REGION_QUERY, k).boxes
    assert boxes == dict(list({"b": WHOLE, "c": RIGHT, "a": LEFT, "d": WHOLE}.items())[:k])


def test_allowed_images_have_their_usual_scores_and_boxes(regions: Searcher):
    ranking = regions.search(REGION_QUERY, 3, frozenset({"d", "a", "bare", "unknown"}))
    assert ranking.ids == ("a", "bare", "d")
    assert ranking.scores.tolist() == pytest.approx([0.7, 0, -0.5])
    assert ranking.boxes == {"a": LEFT, "d": WHOLE}


def test_of_equal_regions_the_first_wins(regions: Searcher):
    assert regions.search(Descriptors(("q",), np.array([[0, 1]], np.float32), np.zeros(1)), 5).boxes["c"] == WHOLE


def test_several_rows_of_a_query_match_by_their_best_pair(regions: Searcher):
    query = Descriptors(("q",), np.array([[1, 0], [-2, 0]], np.float32), np.zeros(2, np.int32))
    ranking = regions.search(query, 5)
    assert dict(zip(ranking.ids, ranking.scores.tolist(), strict=True)) == pytest.approx(
        {"d": 1.2, "b": 0.9, "c": 0.8, "a": 0.7, "bare": 0}
    )
    assert ranking.boxes["d"] == LEFT


def test_a_query_without_rows_finds_everything_equal(regions: Searcher):
    ranking = regions.search(Descriptors(("q",), np.zeros((0, 2), np.float32), np.zeros(0, np.int32)), 2)
    assert ranking.ids == ("a", "b")
    assert ranking.scores.tolist() == [0, 0]


@pytest.mark.parametrize("name", REGIONAL)
def test_several_rows_of_a_query_are_refused_where_nothing_says_how_they_match(name: str, tmp_path: Path):
    searcher = index.build(name).create(lambda: iter([region_rows(REGIONS)]), tmp_path)
    query = Descriptors(("q",), np.ones((2, 2), np.float32), np.zeros(2, np.int32))
    with pytest.raises(RecipeError, match=r'"best".*"mean"[\s\S]*"maxsim"'):
        searcher.search(query, 1)


@pytest.mark.parametrize("name", REGIONAL)
def test_regions_on_many_images_give_the_answer_of_a_plain_comparison(name: str, tmp_path: Path):
    generator = np.random.default_rng(0)
    vectors = generator.normal(size=(200, 3, 8)).astype(np.float32)
    rows = Descriptors(
        tuple(f"{number:03}" for number in range(200)),
        vectors.reshape(600, 8),
        np.repeat(np.arange(200, dtype=np.int32), 3),
        np.arange(2400, dtype=np.float32).reshape(600, 4),
    )
    settings = {"ivfpq": {"nbits": 10}}.get(name, {})
    queries = generator.normal(size=(2, 8)).astype(np.float32)
    query = Descriptors(("q",), queries, np.zeros(2, np.int32))
    products = np.einsum("irc,qc->iqr", vectors, queries)
    for match, scores in (("best", products.max(axis=(1, 2))), ("mean", products.max(axis=2).mean(axis=1))):
        (tmp_path / match).mkdir()
        ranking = (
            index.build(name, match=match, **settings).create(lambda: iter([rows]), tmp_path / match).search(query, 3)
        )
        order = np.argsort(-scores)[:3]
        assert ranking.ids == tuple(f"{image:03}" for image in order)
        np.testing.assert_allclose(ranking.scores, scores[order], rtol=1e-4)
        winners = 3 * order + products[order].max(axis=1).argmax(axis=1)
        assert ranking.boxes == {
            f"{image:03}": tuple(rows.boxes[row]) for image, row in zip(order, winners, strict=True)
        }
