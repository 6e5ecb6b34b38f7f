"""What every index promises, whatever rows it takes."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from builders import global_rows, word_rows

from resight import index, plugins
from resight.errors import MissingExtra, RecipeError
from resight.index import Index, Searcher
from resight.types import Descriptors, Ranking


class Kind:
    """Rows with one number an image, as vectors or as words: the larger it is, the better the answer to `query`."""

    def __init__(self, words: bool) -> None:
        self.words = words
        self.query = self.rows({"q": 8})

    def rows(self, images: dict[str, int]) -> Descriptors:
        if self.words:
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
    kind = Kind(words=False)
    try:
        Case(plugin, kind, tmp_path / "probe").create({"a": 1})
    except RecipeError:
        kind = Kind(words=True)
    return Case(plugin, kind, tmp_path / "index")


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
