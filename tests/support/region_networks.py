"""Tiny networks, drawn here, with the inputs and outputs of detectors, SAM and saliency: files for tests.

In: a folder. Out: the paths of ONNX files, whose answers can be worked out by hand; a folder with a Grounding DINO.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from onnx import NodeProto, TensorProto, helper, numpy_helper, save

BERT = {0: "[PAD]", 100: "[UNK]", 101: "[CLS]", 102: "[SEP]", 103: "[MASK]", 1012: ".", 1029: "?", 1030: "object"}
WORDS = 1040  # the network knows the full stop by its number in BERT's vocabulary

GROUNDING_DINO = {
    "model_type": "grounding-dino",
    "backbone_config": {
        "model_type": "swin",
        "image_size": 64,
        "embed_dim": 8,
        "depths": [1, 1, 1, 1],
        "num_heads": [1, 1, 2, 2],
        "window_size": 4,
        "out_features": ["stage2", "stage3", "stage4"],
    },
    "text_config": {
        "model_type": "bert",
        "vocab_size": WORDS,
        "hidden_size": 16,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "intermediate_size": 16,
    },
    "d_model": 32,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 2,
    "decoder_attention_heads": 2,
    "encoder_ffn_dim": 16,
    "decoder_ffn_dim": 16,
    "num_queries": 10,
    "max_text_len": 32,
}


def write_grounding_dino(folder: Path) -> Path:
    """A folder with the architecture at its smallest and a vocabulary, without weights."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(GROUNDING_DINO))
    (folder / "vocab.txt").write_text("\n".join(BERT.get(number, f"[unused{number}]") for number in range(WORDS)))
    return folder


def draw_detector(
    folder: Path, boxes: Any, scores: Any = None, side: int | None = 64, names: Sequence[str] = ("boxes", "scores")
) -> Path:
    """Gives the same boxes whatever it is shown."""
    values = [np.asarray(part, np.float32) for part in (boxes, scores) if part is not None]
    nodes = [
        node
        for name, number in zip(names, range(len(values)), strict=False)
        for node in (
            helper.make_node("ReduceMin", ["planes"], [f"any_{name}"], keepdims=0),
            helper.make_node("Mul", [f"any_{name}", "nought"], [f"nought_{name}"]),
            helper.make_node("Add", [f"fixed_{number}", f"nought_{name}"], [name]),
        )
    ]
    weights = {"nought": np.zeros(1, np.float32), **{f"fixed_{n}": value for n, value in enumerate(values)}}
    planes = {"planes": [1, 3, side or "height", side or "width"]}
    return _save(folder / "detector.onnx", nodes, planes, dict.fromkeys(names[: len(values)]), weights)


def draw_saliency(folder: Path, side: int | None = None, channels: int = 1) -> Path:
    """How bright a pixel is, with three channels each colour by itself."""
    kernel = np.full((channels, 3, 1, 1), 1 / 3, np.float32)
    nodes = [helper.make_node("Conv", ["planes", "kernel"], ["map"])]
    planes = {"planes": [1, 3, side or "height", side or "width"]}
    return _save(folder / "saliency.onnx", nodes, planes, {"map": None}, {"kernel": kernel})


def draw_sam(
    folder: Path, side: int = 64, extent: float = 12.0, fits: Sequence[float] = (0.9, 0.5)
) -> tuple[Path, Path]:
    """Encoder and decoder: under a point lies a square that reaches `extent` pixels of the input to each side.

    There are two masks a point, of which the second is everything. The decoder's masks are of the size that is asked
    for and cover the picture: their pixel (row, column) is tested against the point in pixels of the input.
    """
    encoder = _save(
        folder / "sam_encoder.onnx",
        [helper.make_node("GlobalAveragePool", ["planes"], ["embeddings"])],
        {"planes": [1, 3, side, side]},
        {"embeddings": None},
        {},
    )
    nodes = [
        helper.make_node("Cast", ["orig_im_size"], ["sizes"], to=TensorProto.INT64),
        *_measure_axis("rows", 0, 1),
        *_measure_axis("columns", 1, 0),
        helper.make_node("Unsqueeze", ["away_rows", "one"], ["upright"]),
        helper.make_node("Max", ["upright", "away_columns"], ["away"]),
        helper.make_node("Sub", ["extent", "away"], ["inside"]),
        helper.make_node("Mul", ["inside", "nought"], ["flat"]),
        helper.make_node("Add", ["flat", "unit"], ["everything"]),
        helper.make_node("Unsqueeze", ["inside", "front"], ["first"]),
        helper.make_node("Unsqueeze", ["everything", "front"], ["second"]),
        helper.make_node("Concat", ["first", "second"], ["masks"], axis=1),
        helper.make_node("Identity", ["fits"], ["iou_predictions"]),
        helper.make_node("ReduceMax", ["orig_im_size"], ["longest"], keepdims=0),
        helper.make_node("Div", ["side", "longest"], ["scale"]),
    ]
    weights = {
        "extent": np.float32(extent),
        "side": np.float32(side),
        "half": np.float32(0.5),
        "nought": np.float32(0),
        "unit": np.float32(1),
        "one": np.array([1], np.int64),
        "front": np.array([0, 1], np.int64),
        "fits": np.array([fits], np.float32),
        "start": np.array(0, np.int64),
        "step": np.array(1, np.int64),
        "axis_0": np.array(0, np.int64),
        "axis_1": np.array(1, np.int64),
    }
    inputs: dict[str, list[Any]] = {
        "image_embeddings": [1, 3, 1, 1],
        "point_coords": [1, "points", 2],
        "point_labels": [1, "points"],
        "mask_input": [1, 1, 256, 256],
        "has_mask_input": [1],
        "orig_im_size": [2],
    }
    order = [nodes[-2], nodes[-1], *nodes[:-2]]  # a graph lists what is used before its users
    decoder = _save(folder / "sam_decoder.onnx", order, inputs, {"masks": None, "iou_predictions": None}, weights)
    return encoder, decoder


def _measure_axis(name: str, size_axis: int, point_axis: int) -> list[NodeProto]:
    """How far each row (column) of the mask is from the first point, in pixels of the input."""
    return [
        helper.make_node("Gather", ["sizes", f"axis_{size_axis}"], [f"count_{name}"]),
        helper.make_node("Range", ["start", f"count_{name}", "step"], [f"whole_{name}"]),
        helper.make_node("Cast", [f"whole_{name}"], [f"number_{name}"], to=TensorProto.FLOAT),
        helper.make_node("Add", [f"number_{name}", "half"], [f"middle_{name}"]),
        helper.make_node("Mul", [f"middle_{name}", "scale"], [f"place_{name}"]),
        helper.make_node("Gather", ["point_coords", "axis_0"], [f"batch_{name}"], axis=0),
        helper.make_node("Gather", [f"batch_{name}", "axis_0"], [f"point_{name}"], axis=0),
        helper.make_node("Gather", [f"point_{name}", f"axis_{point_axis}"], [f"coordinate_{name}"], axis=0),
        helper.make_node("Sub", [f"place_{name}", f"coordinate_{name}"], [f"signed_{name}"]),
        helper.make_node("Abs", [f"signed_{name}"], [f"away_{name}"]),
    ]


def _save(
    path: Path,
    nodes: Sequence[NodeProto],
    inputs: dict[str, list[Any]],
    outputs: dict[str, list[Any] | None],
    weights: dict[str, Any],
) -> Path:
    graph = helper.make_graph(
        nodes,
        "drawing",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in inputs.items()],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in outputs.items()],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in weights.items()],
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path
