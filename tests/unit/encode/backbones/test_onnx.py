"""Networks of one convolution, drawn here: what they give can be worked out by hand."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper, save
from support.builders import draw_texture, fill_picture, make_picture

from resight.encode import backbones
from resight.encode.backbones import Backbone
from resight.errors import MissingWeights, RecipeError
from resight.types import Features

CELL = 8
PLAIN = {"mean": (0.0, 0.0, 0.0), "deviation": (1.0, 1.0, 1.0), "interpolation": "area"}


def draw_network(folder: Path, kind: str, extra: int = 0, size: object = None, height: object = None) -> Path:
    """Means of red, green and blue in every cell: as a map, as tokens after `extra` leading ones, or over all cells."""
    kernel = np.zeros((3, 3, CELL, CELL), np.float32)
    kernel[range(3), range(3)] = 1 / CELL**2
    leading = np.arange(1, extra + 1, dtype=np.float32).reshape(1, extra, 1).repeat(3, axis=2)
    weights = {"kernel": kernel, "leading": leading, "shape": np.array([0, 3, -1], np.int64)}
    nodes = [helper.make_node("Conv", ["planes", "kernel"], ["map"], strides=[CELL, CELL])]
    if kind == "tokens":
        nodes += [
            helper.make_node("Reshape", ["map", "shape"], ["flat"]),
            helper.make_node("Transpose", ["flat"], ["patches"], perm=[0, 2, 1]),
            helper.make_node("Concat", ["leading", "patches"], ["tokens"], axis=1),
        ]
    if kind == "vector":
        nodes += [
            helper.make_node("GlobalAveragePool", ["map"], ["pooled"]),
            helper.make_node("Flatten", ["pooled"], ["vector"]),
        ]
    ranks = {"map": ["b", 3, "r", "c"], "tokens": ["b", "t", 3], "vector": ["b", 3]}
    names = ["map"] if kind == "map" else ["map", kind]
    graph = helper.make_graph(
        nodes,
        "drawing",
        [helper.make_tensor_value_info("planes", TensorProto.FLOAT, ["b", 3, height or size or "h", size or "w"])],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, ranks[name]) for name in names],
        [numpy_helper.from_array(value, name) for name, value in weights.items()],
    )
    path = folder / f"{kind}.onnx"
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


def show(backbone: Backbone, pixels: Any = None, scale: float = 1.0) -> Features:
    picture = make_picture(draw_texture(np.random.default_rng(0), 32, 32) if pixels is None else pixels)
    (features,) = backbone.extract([picture], scale)
    return features


def average_cells(pixels: Any) -> Any:
    rows, columns = pixels.shape[0] // CELL, pixels.shape[1] // CELL
    cells = pixels.reshape(rows, CELL, columns, CELL, 3).mean(axis=(1, 3)) / 255
    return cells.reshape(1, rows * columns, 3).astype(np.float32)


@pytest.mark.parametrize(("kind", "extra"), [("map", 0), ("tokens", 0), ("tokens", 1), ("tokens", 5)])
def test_cells_come_out_row_by_row(kind: str, extra: int, tmp_path: Path):
    pixels = draw_texture(np.random.default_rng(0), 32, 32)
    backbone = backbones.build("onnx", model=draw_network(tmp_path, kind, extra), size=32, **PLAIN)
    given = show(backbone, pixels)
    assert given.grid == (4, 4)
    np.testing.assert_allclose(given.patches, average_cells(pixels), atol=1e-5)
    assert given.head is None and given.attention is None
    assert (given.cls is None) == (extra == 0)
    if given.cls is not None:
        assert given.cls.tolist() == [[1, 1, 1]]


def test_one_vector_is_cls_head_and_the_only_patch(tmp_path: Path):
    backbone = backbones.build("onnx", model=draw_network(tmp_path, "vector"), size=32, **PLAIN)
    given = show(backbone, np.full((40, 50, 3), 51, np.uint8))
    assert given.grid == (1, 1) and given.patches.shape == (1, 1, 3)
    assert given.cls is not None and given.head is not None
    np.testing.assert_allclose([given.cls[0], given.head[0], given.patches[0, 0]], np.full((3, 3), 0.2), atol=1e-6)


def test_mean_and_deviation_are_taken_off(tmp_path: Path):
    path = draw_network(tmp_path, "vector")
    given = show(
        backbones.build("onnx", model=path, mean=(0.2, 0.1, 0), deviation=(1, 0.5, 2)), np.full((9, 9, 3), 51, np.uint8)
    )
    np.testing.assert_allclose(given.head, [[0, 0.2, 0.1]], atol=1e-6)


@pytest.mark.parametrize("kind", ["map", "tokens"])
def test_a_wide_picture_keeps_its_proportions_and_scales(kind: str, tmp_path: Path):
    backbone = backbones.build("onnx", model=draw_network(tmp_path, kind, 1), size=32, fit="keep", **PLAIN)
    (given,) = backbone.extract([fill_picture(400, 100)])
    assert given.grid == (2, 8)
    assert show(backbone, scale=0.5).grid == (2, 2)


def test_another_output_can_be_chosen_by_name(tmp_path: Path):
    path = draw_network(tmp_path, "vector")
    assert show(backbones.build("onnx", model=path, output="map", size=32)).grid == (4, 4)
    with pytest.raises(RecipeError, match=r"one of map \[\?, 3, \?, \?\], vector \[\?, 3\]"):
        backbones.build("onnx", model=path, output="nonsense")


def test_a_size_in_the_file_is_taken_and_no_other(tmp_path: Path):
    path = draw_network(tmp_path, "map", size=32)
    backbone = backbones.build("onnx", model=path)
    assert show(backbone).grid == (4, 4)
    for settings in ({"size": 64}, {"fit": "keep"}):
        with pytest.raises(RecipeError, match="32 × 32 pixels"):
            backbones.build("onnx", model=path, **settings)
    with pytest.raises(RecipeError, match=r"scale 0\.5"):
        show(backbone, scale=0.5)
    with pytest.raises(RecipeError, match="32 × 48 pixels, a square"):
        backbones.build("onnx", model=draw_network(tmp_path, "map", size=32, height=48))


def test_tokens_that_lie_on_no_grid_are_refused(tmp_path: Path):
    path = draw_network(tmp_path, "tokens", extra=2)
    for settings in ({"prefix": 1}, {"prefix": 3}, {"cell": 4}, {"cell": 8, "prefix": 0}):
        with pytest.raises(RecipeError, match="no grid"):
            show(backbones.build("onnx", model=path, size=32, **settings))
    assert show(backbones.build("onnx", model=path, size=32, cell=8, prefix=2)).grid == (4, 4)


def test_what_is_no_network_of_pictures_is_refused(tmp_path: Path):
    with pytest.raises(MissingWeights, match="the setting model"):
        backbones.build("onnx")
    with pytest.raises(RecipeError, match="no such file"):
        backbones.build("onnx", model=tmp_path / "absent.onnx")
    junk = tmp_path / "junk.onnx"
    junk.write_bytes(b"junk")
    with pytest.raises(RecipeError, match=r"cannot read|does not take pictures"):
        backbones.build("onnx", model=junk)
    graph = helper.make_graph(
        [helper.make_node("Relu", ["x"], ["y"])],
        "flat",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["b", 7])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["b", 7])],
    )
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), junk)
    with pytest.raises(RecipeError, match=r"actual: x \[\?, 7\]"):
        backbones.build("onnx", model=junk)


@pytest.mark.parametrize(
    "settings", [{"mean": (0.1,)}, {"deviation": (1.0, 0.0, 1.0)}, {"cell": 0}, {"prefix": -1}, {"size": 0}]
)
def test_settings_that_mean_nothing_are_refused(settings: dict[str, Any], tmp_path: Path):
    with pytest.raises(RecipeError):
        backbones.build("onnx", model=draw_network(tmp_path, "map"), **settings)


def test_the_fingerprint_follows_the_file_and_the_settings(tmp_path: Path):
    path = draw_network(tmp_path, "tokens", 1)
    first = backbones.build("onnx", model=path, size=32).fingerprint
    assert backbones.build("onnx", model=path, size=32).fingerprint == first
    assert backbones.build("onnx", model=path, size=64).fingerprint != first
    draw_network(tmp_path, "tokens", 2)
    assert backbones.build("onnx", model=path, size=32).fingerprint != first


def test_it_needs_no_torch():
    ask = "import sys, resight.encode.backbones.onnx; print('torch' in sys.modules)"
    answer = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "False"
