from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest
from support.token_rows import Shelf

from resight.errors import InputError, MissingWeights, RecipeError, SpaceMismatch
from resight.search import rerankers, scorers
from resight.search.rerankers.pair_transformer import Config, PairTransformer
from resight.search.scorers.transformer import find_boxes
from resight.types import Descriptors, Query, Ranking

WIDTH = 2


def lay(name: str, vectors: np.ndarray, middles: Sequence[tuple[float, float]] = ()) -> Descriptors:
    places = np.array(middles or [(5.0, 5.0)] * len(vectors), np.float32).reshape(-1, 2)
    boxes = np.hstack([places - 1, places + 1])
    return Descriptors((name,), np.asarray(vectors, np.float32), np.zeros(len(vectors), np.int32), boxes=boxes)


def write_weights(path: Path, **changed: np.ndarray) -> Path:
    """No layers: the logit is head(norm(class token)) + late · MaxSim, whatever the tokens are."""
    weights: Mapping[str, np.ndarray] = {
        "depth": np.array(0),
        "heads": np.array(1),
        "project.weight": np.zeros((WIDTH, 3)),
        "project.bias": np.zeros(WIDTH),
        "place.weight": np.zeros((WIDTH, 4)),
        "kinds": np.array([[3.0, 1.0], [0, 0], [0, 0]]),
        "norm.weight": np.ones(WIDTH),
        "norm.bias": np.zeros(WIDTH),
        "head.weight": np.array([[0.5, 0.25]]),
        "head.bias": np.array([0.125]),
        "late": np.array([4.0]),
    }
    np.savez(path, **{**weights, **changed})
    return path


class Count:
    """A scorer that likes images with many tokens."""

    fingerprint = "count"

    def score(self, query: Descriptors, image: Descriptors) -> float:  # noqa: ARG002 - as every scorer
        return float(len(image))


def ask(config: Config) -> Ranking:
    images = [lay("a", np.eye(3)[:1]), lay("b", np.eye(3)), lay("c", np.eye(3)[:2])]
    query = Query("q", (9, 9), (0, 0, 9, 9), (lay("q", np.eye(3)),))
    ranking = Ranking("q", ("a", "b", "c"), np.array([0.9, 0.8, 0.7], np.float32))
    return PairTransformer(config, Count()).rerank(query, ranking, Shelf(*images))


def test_candidates_are_ordered_by_the_scorer():
    found = ask(Config())
    assert found.ids == ("b", "c", "a")
    assert found.scores.tolist() == [3, 2, 1]
    assert found.signals["c"] == {"pair_transformer": 2.0}


def test_the_scorer_sees_the_candidates_alone():
    found = ask(Config(candidates=1))
    assert found.ids == ("a", "b", "c")
    assert "pair_transformer" not in found.signals["b"]


def test_balance_and_temperature_blend():
    # a: 0.5 · 0.9 + 0.5 · σ(1 / 2) = 0.45 + 0.5 · 0.622459
    found = ask(Config(balance=0.5, temperature=2.0))
    assert found.scores[found.ids.index("a")] == pytest.approx(0.76123, abs=1e-5)


def test_the_blend_of_ames():
    # a: 0.35 · 0.9 + 0.65 · σ(0.1 · 1) = 0.315 + 0.65 · 0.524979
    found = ask(Config(balance=0.35, gamma=0.1))
    assert found.scores[found.ids.index("a")] == pytest.approx(0.656236, abs=1e-5)


def test_no_candidates_change_nothing():
    assert ask(Config(candidates=0)).ids == ("a", "b", "c")


def test_the_logit_by_hand(tmp_path: Path):
    # norm((3, 1)) = (1, -1) up to 1e-5; head: 0.5 - 0.25 + 0.125 = 0.375; MaxSim of (x, y) in (x, z): (1 + 0) / 2
    scorer = scorers.build("transformer", weights=write_weights(tmp_path / "w.npz"))
    score = scorer.score(lay("q", np.eye(3)[:2]), lay("a", np.eye(3)[[0, 2]]))
    assert score == pytest.approx(0.375 + 4 * 0.5, abs=1e-4)


def test_an_image_without_tokens_has_the_bias_alone(tmp_path: Path):
    scorer = scorers.build("transformer", weights=write_weights(tmp_path / "w.npz"))
    assert scorer.score(lay("q", np.eye(3)), lay("a", np.zeros((0, 3)))) == pytest.approx(0.125)


def test_other_weights_have_another_fingerprint(tmp_path: Path):
    first = scorers.build("transformer", weights=write_weights(tmp_path / "1.npz"))
    second = scorers.build("transformer", weights=write_weights(tmp_path / "2.npz", late=np.array([5.0])))
    assert first.fingerprint != second.fingerprint


def test_places_are_shares_of_what_the_tokens_cover():
    # Patches of 2 × 2 at (1, 1) and (9, 5) cover 10 × 6.
    places = find_boxes(lay("a", np.eye(3)[:2], [(1.0, 1.0), (9.0, 5.0)]))
    assert places == pytest.approx(np.array([[0.1, 1 / 6, 0.2, 1 / 3], [0.9, 5 / 6, 0.2, 1 / 3]]))


def test_missing_weights_say_what_to_do(tmp_path: Path):
    with pytest.raises(MissingWeights, match="train one"):
        rerankers.build("pair_transformer")
    with pytest.raises(MissingWeights, match="absent"):
        scorers.build("transformer", weights=tmp_path / "absent.npz")


def test_the_scorer_is_a_table_in_the_recipe(tmp_path: Path):
    choice = {"name": "transformer", "weights": str(write_weights(tmp_path / "w.npz"))}
    assert rerankers.build("pair_transformer", scorer=choice).signals == ("pair_transformer",)
    with pytest.raises(RecipeError, match="no scorers called"):
        rerankers.build("pair_transformer", scorer="absent")


def test_a_file_of_something_else_is_refused(tmp_path: Path):
    np.savez(tmp_path / "other.npz", a=np.zeros(3))
    (tmp_path / "text.npz").write_text("no weights")
    for name in ("other.npz", "text.npz"):
        with pytest.raises(InputError, match="does not hold the weights"):
            scorers.build("transformer", weights=tmp_path / name)


def test_tokens_of_other_dimensions_are_refused(tmp_path: Path):
    scorer = scorers.build("transformer", weights=write_weights(tmp_path / "w.npz"))
    with pytest.raises(SpaceMismatch, match="other tokens"):
        scorer.score(lay("q", np.eye(4)), lay("a", np.eye(4)))
