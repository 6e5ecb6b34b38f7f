"""The network of LightGlue and LighterGlue: attention within and across two sets of key points.

In: a state dict, and the local features of two images. Out: pairs. An ONNX graph gives the logarithm of the probability
that key points i and j are a pair: softmax over the rows times softmax over the columns of their similarity, times the
probabilities that each has a partner at all. A pair is each other's best, and more probable than `threshold`. Positions
count relative to each other, in units of the area that the key points span. All layers run for all key points: the
published early stop and pruning only save time. Lindenberger, Sarlin, Pollefeys: LightGlue, ICCV 2023.
"""

from pathlib import Path

import numpy as np
import onnx
from numpy.typing import NDArray

from resight.encode import torch_file
from resight.encode.graph_builder import SIGMOID, GraphBuilder
from resight.encode.onnx_graph import start
from resight.encode.torch_file import Arrays
from resight.errors import RecipeError
from resight.search.matchers import LocalFeatures, Pairs
from resight.types import FloatArray


class Glue:
    def __init__(self, path: Path, heads: int, threshold: float, threads: int) -> None:
        weights = rename(torch_file.load(path))
        self._name, self._threshold = path.name, threshold
        self._session = start(build_graph(weights, heads, path.name), threads, path.name)
        self._dimensions = weights["input_proj.weight"].shape[1]

    def match(self, query: LocalFeatures, image: LocalFeatures, mutual: bool = True) -> Pairs:
        for features in (query, image):
            if features.vectors.shape[1] != self._dimensions:
                raise RecipeError(
                    f"the weights {self._name} do not match these local features",
                    expected=f"descriptors of {self._dimensions} dimensions",
                    actual=f"{features.vectors.shape[1]} dimensions",
                    fix="choose the matcher's weights for the encoder of this branch",
                )
        if len(query.vectors) == 0 or len(image.vectors) == 0:
            return np.zeros((0, 2), np.int64)
        return choose_pairs(self.score(query, image), self._threshold, mutual)

    def score(self, query: LocalFeatures, image: LocalFeatures) -> FloatArray:
        """The logarithms [n, m] of the probabilities of all pairs."""
        inputs = {
            "points0": scale_points(query.points),
            "vectors0": query.vectors,
            "points1": scale_points(image.points),
            "vectors1": image.vectors,
        }
        (scores,) = self._session.run(None, inputs)
        return np.asarray(scores, np.float32)


def choose_pairs(scores: FloatArray, threshold: float, mutual: bool) -> Pairs:
    best = scores.argmax(axis=1)
    rows = np.arange(len(scores))
    values = scores[rows, best]
    kept = values > np.log(threshold)
    if mutual:
        kept &= scores.argmax(axis=0)[best] == rows
    chosen = np.flatnonzero(kept)
    chosen = chosen[np.argsort(-values[chosen], kind="stable")]
    return np.stack([chosen, best[chosen]], axis=1)


def scale_points(points: FloatArray) -> FloatArray:
    """x, y [n, 2] of key points in units of half the longer side that they span."""
    low, high = points[:, :2].min(axis=0), points[:, :2].max(axis=0)
    return np.asarray((points[:, :2] - (low + high) / 2) / ((high - low + 1).max() / 2), np.float32)


def rename(weights: Arrays) -> Arrays:
    """The names of both publications → those of this module."""
    found = {}
    for name, values in weights.items():
        parts = name.removeprefix("matcher.").split(".")
        if parts[0] in ("self_attn", "cross_attn"):
            parts = ["transformers", parts[1], parts[0], *parts[2:]]
        found[".".join(parts)] = values
    return found


def build_graph(weights: Arrays, heads: int, name: str) -> onnx.ModelProto:
    """From points [n, 2] and vectors [n, D] of two images to the logarithms [n, m]."""
    graph = _GlueBuilder(weights, name, heads)
    layers = 1 + max((int(key.split(".")[1]) for key in weights if key.startswith("transformers.")), default=-1)
    sides = ("0", "1")
    flows = [graph.linear(f"vectors{side}", "input_proj") for side in sides]
    waves = [graph.encode(f"points{side}") for side in sides]
    for layer in range(layers):
        block = f"transformers.{layer}"
        flows = [graph.attend(flow, *wave, f"{block}.self_attn") for flow, wave in zip(flows, waves, strict=True)]
        flows = graph.cross(flows, f"{block}.cross_attn")
    scores = graph.assign(flows, f"log_assignment.{layers - 1}")
    dimensions = graph.tensor("input_proj.weight", 2).shape[1]
    inputs = {f"points{side}": [f"rows{side}", 2] for side in sides}
    return graph.finish(inputs | {f"vectors{side}": [f"rows{side}", dimensions] for side in sides}, [scores])


class _GlueBuilder(GraphBuilder):
    def __init__(self, weights: Arrays, network: str, heads: int) -> None:
        super().__init__(weights, network)
        self._heads = heads
        self._side = self.tensor("input_proj.weight", 2).shape[0] // heads  # dimensions of a head

    def encode(self, points: str) -> tuple[str, str]:
        """Cosine and sine [n, side] of positions, each twice: one for either of two dimensions that turn together."""
        waves = np.repeat(self.tensor("posenc.Wr.weight", 2), 2, axis=0)
        angles = self.add("MatMul", [points, self.constant(waves.T)])
        return self.add("Cos", [angles]), self.add("Sin", [angles])

    def attend(self, flow: str, cosines: str, sines: str, block: str) -> str:
        """Attention among the key points of one image, with rotary positions."""
        kernel, bias = self.tensor(f"{block}.Wqkv.weight", 2), self.tensor(f"{block}.Wqkv.bias", 1)
        (query, turned_query), (key, turned_key), (value, _) = (
            (
                self._project(flow, kernel[part::3], bias[part::3]),
                self._project(flow, *turn(kernel[part::3], bias[part::3])),
            )
            for part in range(3)
        )
        turned = [
            self.add("Add", [self.add("Mul", [plain, cosines]), self.add("Mul", [other, sines])])
            for plain, other in ((query, turned_query), (key, turned_key))
        ]
        shares = self.add("Softmax", [self._compare(*turned)], axis=-1)
        message = self.linear(self._join(self.add("MatMul", [shares, value])), f"{block}.out_proj")
        return self._forward(flow, message, block)

    def cross(self, flows: list[str], block: str) -> list[str]:
        """Attention from each image to the other."""

        def project(flow: str, name: str) -> str:
            return self._project(flow, self.tensor(f"{block}.{name}.weight", 2), self.tensor(f"{block}.{name}.bias", 1))

        keys, values = ([project(flow, name) for flow in flows] for name in ("to_qk", "to_v"))
        similarity = self._compare(*keys)
        shares = [similarity, self.add("Transpose", [similarity], perm=[0, 2, 1])]
        messages = [
            self.add("MatMul", [self.add("Softmax", [share], axis=-1), value])
            for share, value in zip(shares, reversed(values), strict=True)
        ]
        joined = [self.linear(self._join(message), f"{block}.to_out") for message in messages]
        return [self._forward(flow, message, block) for flow, message in zip(flows, joined, strict=True)]

    def assign(self, flows: list[str], block: str) -> str:
        """The logarithms [n, m] from the last states."""
        sides = [self.linear(flow, f"{block}.final_proj") for flow in flows]
        scale = self.constant((self._heads * self._side) ** -0.5)
        product = self.add("MatMul", [sides[0], self.add("Transpose", [sides[1]], perm=[1, 0])])
        similarity = self.add("Mul", [product, scale])
        alone = [self.add("Log", [self.add(SIGMOID, [self.linear(flow, f"{block}.matchability")])]) for flow in flows]
        parts = [self.add("LogSoftmax", [similarity], axis=axis) for axis in (0, 1)]
        return self.add("Sum", [*parts, alone[0], self.add("Transpose", [alone[1]], perm=[1, 0])])

    def _project(self, flow: str, kernel: NDArray[np.floating], bias: NDArray[np.floating]) -> str:
        """[n, D] → [heads, n, side]."""
        found = self.add("Add", [self.add("MatMul", [flow, self.constant(kernel.T)]), self.constant(bias)])
        split = self.add("Reshape", [found, self.constant([0, self._heads, self._side], np.int64)])
        return self.add("Transpose", [split], perm=[1, 0, 2])

    def _join(self, flow: str) -> str:
        """[heads, n, side] → [n, D]."""
        rows = self.add("Transpose", [flow], perm=[1, 0, 2])
        return self.add("Reshape", [rows, self.constant([0, self._heads * self._side], np.int64)])

    def _compare(self, query: str, key: str) -> str:
        product = self.add("MatMul", [query, self.add("Transpose", [key], perm=[0, 2, 1])])
        return self.add("Mul", [product, self.constant(self._side**-0.5)])

    def _forward(self, flow: str, message: str, block: str) -> str:
        """The state plus a perceptron over state and message."""
        hidden = self.linear(self.add("Concat", [flow, message], axis=1), f"{block}.ffn.0")
        gain, shift = (self.constant(self.tensor(f"{block}.ffn.1.{part}", 1)) for part in ("weight", "bias"))
        normed = self.add("LayerNormalization", [hidden, gain, shift], axis=-1, epsilon=1e-5)
        error = self.add("Erf", [self.add("Mul", [normed, self.constant(0.5**0.5)])])
        gate = self.add("Mul", [normed, self.add("Add", [error, self.constant(1.0)])])
        gelu = self.add("Mul", [gate, self.constant(0.5)])
        return self.add("Add", [flow, self.linear(gelu, f"{block}.ffn.3")])


def turn(kernel: NDArray[np.floating], bias: NDArray[np.floating]) -> tuple[NDArray[np.floating], NDArray[np.floating]]:
    """A layer whose results are those of the given one, turned by 90° in each pair of dimensions: (a, b) → (−b, a)."""

    def each(values: NDArray[np.floating]) -> NDArray[np.floating]:
        turned = np.empty_like(values)
        turned[0::2], turned[1::2] = -values[1::2], values[0::2]
        return turned

    return each(kernel), each(bias)
