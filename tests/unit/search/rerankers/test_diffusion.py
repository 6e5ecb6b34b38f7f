from collections.abc import Iterator, Sequence

import numpy as np
import pytest
from support.builders import global_rows

from resight.errors import RecipeError
from resight.index import Searcher
from resight.search import rerankers
from resight.search.rerankers import diffusion
from resight.search.rerankers.diffusion import Config, compare, diffuse, keep_nearest, link, start, subtract_mean
from resight.types import Choice, Descriptors, FloatArray, Query, Ranking


def turn(*degrees: float) -> FloatArray:
    angles = np.radians(degrees)
    return np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)


class Shelf:
    def __init__(self, images: dict[str, FloatArray]) -> None:
        self._images = images

    def descriptors(self, branch: int, ids: Sequence[str]) -> Iterator[Descriptors]:
        assert branch == 0
        return (Descriptors((name,), self._images[name], np.zeros(len(self._images[name]), np.int32)) for name in ids)

    def searcher(self, branch: int, choice: Choice | None) -> Searcher:
        raise AssertionError(f"diffusion searches nothing: {branch}, {choice}")


def ask(images: dict[str, FloatArray], **settings: object) -> Ranking:
    query = Query("q", (9, 9), (0, 0, 9, 9), (global_rows("q", turn(0)),))
    scores = np.array([float((rows @ [1, 0]).max()) for rows in images.values()], np.float32)
    order = np.argsort(-scores, kind="stable")
    ids = tuple(np.array(list(images))[order].tolist())
    return rerankers.build("diffusion", **settings).rerank(query, Ranking("q", ids, scores[order]), Shelf(images))


# A chain of views on one side of the query, a stranger on the other that is nearer than most of them, and images
# that have nothing to do with either.
VIEWS = {"a": turn(10), "stranger": turn(-25), "b": turn(28), "c": turn(46)}
OTHERS = {"x": turn(170), "y": turn(190), "z": turn(260)}


def test_what_hangs_together_with_the_nearest_comes_before_a_stranger_that_is_nearer():
    found = ask({**VIEWS, **OTHERS}, links=2, decay=0.9, balance=0.0)
    assert found.ids.index("b") < found.ids.index("stranger")
    assert np.all(np.diff(found.scores) <= 0)


def test_the_balance_is_the_say_of_the_score_that_was_there():
    spread = ask({**VIEWS, **OTHERS}, links=2, balance=0.0).signals
    found = ask({**VIEWS, **OTHERS}, links=2, balance=0.25)
    expected = 0.25 * np.cos(np.radians(28)) + 0.75 * spread["b"]["diffusion"]
    assert found.scores[found.ids.index("b")] == pytest.approx(expected)
    assert ask({**VIEWS, **OTHERS}, balance=1.0).ids[:4] == ("a", "stranger", "b", "c")


def test_the_best_has_one_and_nothing_more():
    assert max(signals["diffusion"] for signals in ask({**VIEWS, **OTHERS}).signals.values()) == 1


def test_what_all_rows_have_in_common_is_taken_off():
    # The mean of (1, 1), (1, -1) and (1, 0) is (1, 0).
    images = [np.array([[1, 1], [1, -1]], np.float32), np.zeros((0, 2), np.float32), np.array([[1, 0]], np.float32)]
    first, none, last = subtract_mean(images)
    assert first.tolist() == [[0, 1], [0, -1]]
    assert none.shape == (0, 2)
    assert last.tolist() == [[0, 0]]


def test_the_system_that_is_solved():
    # Two linked images: S = [[0, 1], [1, 0]]; (I − 0.5 S) f = (1, 0) has f = (4/3, 2/3).
    f = diffuse(np.array([[0.0, 1.0], [1.0, 0.0]]), np.array([1.0, 0.0]), Config(decay=0.5))
    assert f == pytest.approx([4 / 3, 2 / 3])


def test_conjugate_gradients_agree_with_a_direct_solution():
    vectors = np.random.default_rng(0).random((60, 8))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    links = link(vectors @ vectors.T, 6, 3.0)
    begin = np.random.default_rng(1).random(60)
    direct = np.linalg.solve(np.eye(60) - 0.9 * links, begin)
    assert diffuse(links, begin, Config(decay=0.9, steps=200)) == pytest.approx(direct, abs=1e-5)


def test_links_are_mutual_neighbours_to_a_power_and_normalised():
    # Nearest: 0 → 1, 1 → 0, 2 → 1; only 0 and 1 chose each other. One link each: its normalised weight is 1.
    likeness = np.array([[1, 0.9, 0.2], [0.9, 1, 0.5], [0.2, 0.5, 1]])
    assert link(likeness, 1, 3.0) == pytest.approx(np.array([[0, 1, 0], [1, 0, 0], [0, 0, 0]]))
    # With two neighbours all are linked: a = .9², .2², .5², sums .85, 1.06, .29.
    second = link(likeness, 2, 2.0)
    assert second[0, 1] == pytest.approx(0.81 / np.sqrt(0.85 * 1.06))
    assert second[2, 0] == pytest.approx(0.04 / np.sqrt(0.85 * 0.29))


def test_the_query_is_linked_to_its_nearest_candidates_alone():
    assert start(np.array([0.5, 0.8, 0.2]), Config(starts=2, power=2.0)) == pytest.approx([0.25, 0.64, 0])


def test_what_points_the_other_way_is_no_neighbour():
    assert keep_nearest(np.array([[-0.1, 0.3, 0.0]]), 2).tolist() == [[False, True, False]]


def test_images_without_a_link_keep_their_order_below():
    # Directions that share nothing: once the mean is off, none is like another.
    images = {"a": turn(0), "lone": turn(60), "other": turn(80), "last": turn(180)}
    found = ask(images, links=1, balance=0.0)
    assert found.ids == ("a", "lone", "other", "last")
    assert found.signals["last"] == {"diffusion": 0.0}
    assert [found.signals[name]["diffusion"] for name in ("a", "lone")] == [1.0, 0.0]


def test_images_beyond_the_candidates_have_no_signal_and_stay_below():
    found = ask({"a": turn(10), "b": turn(15), "c": turn(20)}, candidates=2)
    assert found.ids[2] == "c"
    assert "diffusion" not in found.signals["c"]


@pytest.mark.parametrize("block", [1, 64 << 20])
def test_the_best_pair_of_regions_counts_in_blocks_of_any_size(block: int, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(diffusion, "BLOCK_BYTES", block)
    rows = [turn(0, 90), turn(30), np.zeros((0, 2), np.float32), turn(60, 200, 300)]
    table = compare(rows, rows)
    # 0 and 90 to 30: cos 30; 0 and 90 to 60, 200, 300: cos 30 (90 to 60); 30 to 60: cos 30; none without rows
    c = np.cos(np.radians(30))
    assert table == pytest.approx(np.array([[1, c, 0, c], [c, 1, 0, c], [0, 0, 0, 0], [c, c, 0, 1]]), abs=1e-6)


def test_more_candidates_than_the_matrix_may_have_are_refused():
    with pytest.raises(RecipeError, match="out of range"):
        rerankers.build("diffusion", candidates=2001)


def test_a_branch_of_local_features_is_refused():
    rows = Descriptors(("q",), turn(0), np.zeros(1, np.int32), points=np.zeros((1, 4), np.float32))
    query = Query("q", (9, 9), (0, 0, 9, 9), (rows,))
    with pytest.raises(RecipeError, match="diffusion needs one vector"):
        rerankers.build("diffusion").rerank(query, Ranking("q", ("a",), np.ones(1, np.float32)), Shelf({}))
