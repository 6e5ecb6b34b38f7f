"""What every reranker promises, with its default settings."""

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support.builders import detect, draw_texture, global_rows, local_rows, tilt, warp

from resight import index, plugins
from resight.errors import MissingExtra, MissingWeights
from resight.geodesy import Positions
from resight.index import Searcher
from resight.search import rerankers
from resight.search.rerankers import Reranker
from resight.types import Box, Choice, Descriptors, Query, Ranking

IDS = ("other", "tilted", "blank")


class SmallGallery:
    """Three images: branch 0 has one vector an image, branch 1 local features, branch 2 the same rows as tokens."""

    def __init__(self) -> None:
        rng = np.random.default_rng(0)
        pixels = draw_texture(rng)
        blank = np.full_like(pixels, 128)
        views = {"other": draw_texture(rng), "tilted": warp(pixels, tilt()), "blank": blank}
        self.local = {name: local_rows([detect(view, name)]) for name, view in views.items()}
        self.whole = {name: global_rows([name], [vector]) for name, vector in zip(IDS, np.eye(3), strict=True)}
        self.tokens = {name: as_tokens(rows) for name, rows in self.local.items()}
        local = local_rows([detect(pixels, "q")])
        parts = (global_rows("q", [[0.1, 0.9, 0]]), local, as_tokens(local))
        self.query = Query("q", (320, 240), (0.0, 0.0, 320.0, 240.0), parts, patches=parts[2])

    def descriptors(self, branch: int, ids: Sequence[str]) -> Iterator[Descriptors]:
        return ((self.whole, self.local, self.tokens)[branch][name] for name in ids)

    def searcher(self, branch: int, choice: Choice | None) -> Searcher:
        choice = choice or Choice("exact")
        with tempfile.TemporaryDirectory() as folder:
            plugin = index.build(choice.name, **choice.settings)
            return plugin.create(lambda: self.descriptors(branch, IDS), Path(folder))

    def patches(self, name: str, region: Box | None) -> Descriptors | None:  # noqa: ARG002
        return self.tokens[name]

    def positions(self) -> Positions:
        places = np.array([52.5, 52.6, 52.7])
        return Positions(IDS, places, np.full(3, 13.0), np.full(3, np.nan))


def as_tokens(rows: Descriptors) -> Descriptors:
    """Rows that know the box which they stand for, in place of a key point."""
    assert rows.points is not None
    places = rows.points[:, :2]
    return replace(rows, points=None, boxes=np.hstack([places - 8, places + 8]))


@pytest.fixture(scope="module")
def gallery() -> SmallGallery:
    return SmallGallery()


@pytest.fixture(params=plugins.names("resight.search.rerankers"), scope="module")
def reranker(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Reranker:
    try:
        return rerankers.build(request.param)
    except MissingWeights:
        path = write_scorer(tmp_path_factory.mktemp("scorer") / "weights.npz")
        return rerankers.build(request.param, scorer={"name": "transformer", "weights": str(path)})
    except MissingExtra as missing:
        pytest.skip(missing.problem)


def write_scorer(path: Path) -> Path:
    """A transformer for 128 dimensions that has learnt nothing: one layer of zeros, and late interaction."""
    sizes = {"attention": (6, 2), "output": (2, 2), "widen": (4, 2), "narrow": (2, 4), "norm1": (2,), "norm2": (2,)}
    sizes = {"project": (2, 128), "head": (1, 2), "norm": (2,)} | {
        f"layers.0.{name}": size for name, size in sizes.items()
    }
    weights = {f"{name}.weight": np.zeros(size, np.float32) for name, size in sizes.items()}
    biases = {f"{name}.bias": np.zeros(size[0], np.float32) for name, size in sizes.items()}
    rest = {"place.weight": np.zeros((2, 4), np.float32), "kinds": np.zeros((3, 2), np.float32)}
    np.savez(path, depth=1, heads=1, late=np.ones(1, np.float32), **weights, **biases, **rest)
    return path


def rank(*ids: str) -> Ranking:
    scores = np.linspace(0.9, 0.1, len(ids), dtype=np.float32)
    return Ranking(
        "q", ids, scores, signals={name: {"asmk": float(score)} for name, score in zip(ids, scores, strict=True)}
    )


def test_an_empty_ranking_stays_empty(reranker: Reranker, gallery: SmallGallery):
    ranking = reranker.rerank(gallery.query, rank(), gallery)
    assert ranking.ids == ()
    assert ranking.scores.shape == (0,)


def test_a_ranking_shorter_than_the_candidates_keeps_its_images(reranker: Reranker, gallery: SmallGallery):
    assert reranker.candidates > len(IDS)
    ranking = reranker.rerank(gallery.query, rank(*IDS), gallery)
    assert sorted(ranking.ids) == sorted(IDS)
    assert ranking.query_id == "q"
    assert ranking.scores.shape == (3,) and ranking.scores.dtype == np.float32
    assert np.all(np.diff(ranking.scores) <= 0)


def test_one_candidate_is_enough(reranker: Reranker, gallery: SmallGallery):
    assert reranker.rerank(gallery.query, rank("tilted"), gallery).ids == ("tilted",)


def test_the_image_of_the_same_thing_is_not_moved_down(reranker: Reranker, gallery: SmallGallery):
    assert reranker.rerank(gallery.query, rank(*IDS), gallery).ids.index("tilted") <= IDS.index("tilted")


def test_the_signals_that_it_declares_are_added_to_those_that_were_there(reranker: Reranker, gallery: SmallGallery):
    ranking = reranker.rerank(gallery.query, rank(*IDS), gallery)
    for name in IDS:
        assert set(ranking.signals[name]) == {"asmk", *reranker.signals}


def test_matches_are_of_images_in_the_ranking(reranker: Reranker, gallery: SmallGallery):
    ranking = reranker.rerank(gallery.query, rank(*IDS), gallery)
    assert set(ranking.matches) <= set(IDS)
    assert all((match.query_id, match.image_id) == ("q", name) for name, match in ranking.matches.items())


def test_the_ranking_that_was_given_stays_as_it_was(reranker: Reranker, gallery: SmallGallery):
    given, same = rank(*IDS), rank(*IDS)
    reranker.rerank(gallery.query, given, gallery)
    assert given.ids == same.ids
    assert given.scores.tolist() == same.scores.tolist()
    assert given.signals == same.signals
    assert given.matches == {}


def test_the_same_question_has_the_same_answer(reranker: Reranker, gallery: SmallGallery):
    first, second = (reranker.rerank(gallery.query, rank(*IDS), gallery) for _ in range(2))
    assert first.ids == second.ids
    assert first.scores.tolist() == second.scores.tolist()
