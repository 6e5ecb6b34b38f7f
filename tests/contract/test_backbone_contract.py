"""What every backbone promises, with its default settings; without its weights, where those are not here."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from support.builders import draw_texture, fill_picture, make_picture
from support.local_networks import write_superpoint

from resight import plugins
from resight.encode import backbones
from resight.encode.backbones import Backbone
from resight.encode.encoder import build_backbone
from resight.errors import MissingExtra, MissingWeights, RecipeError
from resight.types import Choice, Features, Picture

SMALLER = ("backbone", "size")  # settings that only save time


@pytest.fixture(params=plugins.names("resight.encode.backbones"), scope="module")
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def find_settings(name: str, folder: Path) -> dict[str, Any]:
    """The fewest settings with which it can be built here, small where its weights are not."""
    if name == "fused":
        parts = [{"encoder": {"name": "efficientnet_lite", "block": block}, "descriptor": "pooled"} for block in (3, 9)]
        return {"parts": parts}
    if name in ("own", "precomputed"):
        pytest.skip("a program gives it: tests/integration/test_own_encoder.py")
    if name == "onnx":
        return {"model": write_network(folder / "small.onnx")}
    if name == "superpoint":
        return {"weights": write_superpoint(folder / "superpoint.pth"), "threshold": 0.0}
    if name == "place":
        return {"model": "cosplace", "untrained": True, "backbone": "resnet18", "size": 128}
    if name in ("cider", "landmark"):  # which are built without weights, so that they can be trained
        return {"untrained": True, "backbone": "resnet18", "size": 128}
    try:
        backbones.build(name)
    except MissingWeights:
        return {"untrained": True, "size": 224}
    except MissingExtra as missing:
        pytest.skip(missing.problem)
    return {}


def write_network(path: Path) -> Path:
    """One convolution with a stride of 16, for pictures of any size."""
    kernel = np.random.default_rng(0).normal(size=(8, 3, 16, 16)).astype(np.float32)
    graph = helper.make_graph(
        [helper.make_node("Conv", ["image", "kernel"], ["map"], strides=[16, 16], kernel_shape=[16, 16])],
        "small",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, ["n", 3, "h", "w"])],
        [helper.make_tensor_value_info("map", TensorProto.FLOAT, ["n", 8, "rows", "columns"])],
        [numpy_helper.from_array(kernel, "kernel")],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10), path)
    return path


@pytest.fixture(scope="module")
def settings(name: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return find_settings(name, tmp_path_factory.mktemp("network"))


@pytest.fixture(scope="module")
def backbone(name: str, settings: dict[str, Any]) -> Backbone:
    return build_backbone(Choice(name, settings))


def draw_pictures() -> list[Picture]:
    """Pictures of several shapes, two of one shape, one of them blank and one decoded at half its size."""
    rng = np.random.default_rng(0)
    return [
        make_picture(draw_texture(rng), "wide"),
        make_picture(draw_texture(rng, 200, 260), "tall"),
        fill_picture(320, 240, "blank"),
        make_picture(draw_texture(rng, 160, 120), "half", size=(320, 241)),
        make_picture(draw_texture(rng, 400, 24), "strip"),
    ]


@pytest.fixture(scope="module")
def batches(backbone: Backbone) -> list[Features]:
    return list(backbone.extract(draw_pictures()))


def test_every_picture_comes_out_once_and_in_order(batches: list[Features]):
    assert [name for batch in batches for name in batch.ids] == ["wide", "tall", "blank", "half", "strip"]


def test_the_arrays_of_a_batch_fit_together(batches: list[Features]):
    for batch in batches:
        count, rows, dimensions = batch.patches.shape
        assert count == len(batch.ids)
        assert batch.sizes.shape == (count, 2)
        assert (batch.grid is None) != (batch.points is None)
        if batch.grid is not None:
            assert rows == batch.grid[0] * batch.grid[1]
        if batch.points is not None:
            assert count == 1
            assert batch.points.shape == (1, rows, 4)
        assert batch.cls is None or batch.cls.shape[0] == count
        assert batch.attention is None or batch.attention.shape == (count, rows)
        assert dimensions == batches[0].patches.shape[2]


def test_sizes_are_those_of_the_originals(batches: list[Features]):
    assert np.concatenate([batch.sizes for batch in batches]).tolist() == [list(part.size) for part in draw_pictures()]


def test_key_points_lie_in_the_original_and_reach_across_it(batches: list[Features]):
    for batch in batches:
        if batch.points is not None and batch.points.shape[1] > 0:
            places = batch.points[0, :, :2]
            assert (places >= 0).all() and (places <= batch.sizes[0]).all()
            assert places[:, 0].max() > 0.7 * batch.sizes[0, 0]


def test_everything_is_a_finite_number(batches: list[Features]):
    for batch in batches:
        for array in (batch.patches, batch.cls, batch.attention, batch.head):
            assert array is None or np.isfinite(array).all()


def test_size_and_angle_of_key_points_are_known_for_all_or_for_none(batches: list[Features]):
    for points in (batch.points for batch in batches if batch.points is not None):
        assert np.isfinite(points[..., :2]).all()
        assert np.isfinite(points[..., 2:]).all() or np.isnan(points[..., 2:]).all()


def test_a_picture_gives_the_same_features_alone_again_and_from_another_build(
    name: str, settings: dict[str, Any], batches: list[Features]
):
    (alone,) = build_backbone(Choice(name, settings)).extract(draw_pictures()[:1])
    np.testing.assert_allclose(alone.patches[0], batches[0].patches[0], atol=1e-5)


def test_several_threads_can_use_it_at_once(backbone: Backbone, batches: list[Features]):
    pictures = draw_pictures()
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda picture: next(iter(backbone.extract([picture]))), pictures * 3))
    alone = {batch.ids[row]: batch.patches[row] for batch in batches for row in range(len(batch.ids))}
    for answer in answers:
        np.testing.assert_allclose(answer.patches[0], alone[answer.ids[0]], atol=1e-5)


def test_what_it_says_about_itself_is_true(name: str, settings: dict[str, Any]):
    as_it_comes = build_backbone(Choice(name, {key: value for key, value in settings.items() if key not in SMALLER}))
    (features,) = as_it_comes.extract(draw_pictures()[:1])
    about = plugins.find("resight.encode.backbones", name).ABOUT
    assert about.dimensions in (0, features.patches.shape[2])
    assert about.tokens in (0, features.patches.shape[1])
    assert about.family and about.rows and about.weights and about.licence


def test_no_pictures_give_no_batches(backbone: Backbone):
    assert list(backbone.extract([])) == []


def test_the_pixels_are_only_read(backbone: Backbone):
    pixels = draw_texture(np.random.default_rng(1))
    pixels.flags.writeable = False
    assert len(list(backbone.extract([make_picture(pixels)]))) == 1


def test_the_fingerprint_names_the_backbone_and_does_not_change(
    name: str, settings: dict[str, Any], backbone: Backbone
):
    assert backbone.fingerprint.startswith(name)
    assert build_backbone(Choice(name, settings)).fingerprint == backbone.fingerprint


def test_another_scale_is_another_grid_or_is_refused(backbone: Backbone, batches: list[Features]):
    try:
        (larger,) = backbone.extract(draw_pictures()[:1], 2.0)
    except RecipeError as refused:
        assert refused.expected and refused.fix
        return
    assert larger.patches.shape[2] == batches[0].patches.shape[2]
    if batches[0].grid not in (None, (1, 1)):
        assert larger.grid is not None and larger.grid[0] == pytest.approx(2 * batches[0].grid[0], abs=1)


def test_it_says_how_many_pictures_serve_it_best(backbone: Backbone):
    assert backbone.batch >= 1
