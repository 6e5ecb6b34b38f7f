"""SuperPoint: learnt corners and descriptors, with a weights file of your own.

In: pictures. Out: Features with `points` [1, N, 4], of which size and angle are NaN (unknown), and `patches`
[1, N, 256] float32 of unit length, strongest first. The authors allow their weights for research alone, so resight
brings none: `weights` names a state dict in their layout (conv1a … convDb), e.g. superpoint_v1.pth. The module reads it
without torch and makes an ONNX graph. DeTone, Malisiewicz, Rabinovich: SuperPoint, CVPR workshops 2018.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx

from resight.encode import torch_file
from resight.encode.backbones import About
from resight.encode.backbones._key_points import extract_each, read_grey, scale_back
from resight.encode.backbones._score_maps import choose_peaks, join_cells, normalise_maps, sample_linear, unshaped
from resight.encode.graph_builder import RELU, GraphBuilder
from resight.encode.onnx_graph import start
from resight.encode.torch_file import Arrays
from resight.errors import MissingExtra
from resight.files.fingerprint import fingerprint_file
from resight.plugins import check_range
from resight.types import Features, FloatArray, Picture
from resight.vectors import l2_normalise

DIMENSIONS = 256
ABOUT = About("local features", DIMENSIONS, "key point", "a file of your own", "that of the file")
CELL = 8  # pixels of a descriptor
RADIUS, BORDER = 4, 4  # pixels around a key point without another, and at the edges without any


@dataclass(frozen=True)
class Config:
    weights: Path | None = None  # state dict in the authors' layout; required
    features: int = 1000  # most key points per image; the strongest stay
    threshold: float = 0.005  # probability that a corner needs
    max_side: int = 800  # pixels; an image with a longer side is reduced to this before detection
    threads: int = 1  # CPU threads per picture; several pictures are encoded in parallel

    def __post_init__(self) -> None:
        check_range("features", self.features, 1, 1_000_000)
        check_range("threshold", self.threshold, 0, 1)
        check_range("max_side", self.max_side, 32, 4096)
        check_range("threads", self.threads, 1, 256)


def build(config: Config) -> "SuperPoint":
    return SuperPoint(config)


class SuperPoint:
    def __init__(self, config: Config) -> None:
        path = find_weights(config)
        self.batch = 1
        self.max_side: int | None = config.max_side
        self.fingerprint = (
            f"superpoint(features={config.features}, threshold={config.threshold}, max_side={config.max_side}, "
            f"weights={fingerprint_file(path, 8)})"
        )
        self._config = config
        self._session = start(build_graph(torch_file.load(path)), config.threads, path.name)

    def extract(self, pictures: Sequence[Picture], scale: float = 1.0) -> Iterator[Features]:
        return extract_each(pictures, scale, "SuperPoint", self._detect)

    def _detect(self, picture: Picture) -> tuple[FloatArray, FloatArray]:
        image = read_grey(picture, self._config.max_side, CELL)
        logits, cells = self._session.run(None, {"image": image[None, None] / np.float32(255)})
        corners = join_cells(logits[0], CELL)
        peaks, scores = choose_peaks(corners, RADIUS, self._config.threshold, rounds=2, border=BORDER)
        order = np.argsort(-scores, kind="stable")[: self._config.features]
        sides = np.array(image.shape[::-1], np.float32)
        # As published: half a pixel beside the middle of a cell, and the corner cells at the ends of the range.
        at_cells = (peaks[order] - (CELL - 1) / 2) / (sides - CELL / 2 - 0.5) * (sides // CELL - 1)
        vectors = l2_normalise(sample_linear(normalise_maps(cells[0]), at_cells.astype(np.float32)))
        return scale_back(unshaped(peaks[order]), image.shape, picture.size), vectors


def find_weights(config: Config) -> Path:
    if config.weights is not None:
        return config.weights
    raise MissingExtra(
        "superpoint needs a weights file, and resight may not bring one",
        expected="the setting `weights` with the path of a state dict",
        actual="no weights",
        fix='encoder = { name = "superpoint", weights = "superpoint_v1.pth" }; or choose xfeat, aliked or disk',
    )


def build_graph(weights: Arrays) -> onnx.ModelProto:
    """From a grey image [B, 1, H, W], 0 to 1, to corner logits [B, 65, h, w] and descriptors [B, 256, h, w]."""
    graph = GraphBuilder(weights, "SuperPoint")
    flow = "image"
    for block in "1234":
        flow = graph.convolve(graph.convolve(flow, f"conv{block}a", activation=RELU), f"conv{block}b", activation=RELU)
        if block != "4":
            flow = graph.add("MaxPool", [flow], kernel_shape=[2, 2], strides=[2, 2])
    logits = graph.convolve(graph.convolve(flow, "convPa", activation=RELU), "convPb")
    cells = graph.convolve(graph.convolve(flow, "convDa", activation=RELU), "convDb")
    return graph.finish({"image": ["batch", 1, "height", "width"]}, [logits, cells])
