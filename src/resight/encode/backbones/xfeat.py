"""XFeat: learnt key points and descriptors that are quick on a CPU; the package holds the weights.

In: pictures. Out: Features with `points` [1, N, 4], of which size and angle are NaN (unknown), and `patches` [1, N, 64]
float32 of unit length, strongest first. `sparse` finds corners to the pixel; `semi_dense` takes the most reliable cells
of 8 pixels at two scales, which also cover surfaces without corners. The weights are the authors', with 16 bits for the
kernels (benchmarks/pack_xfeat.py); the module makes an ONNX graph of them. Descriptors stand only small turns: put SIFT
beside it for things that lie at any angle.
Potje, Cadar, Araujo, Martins, Nascimento: XFeat, CVPR 2024.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import onnx

from resight.encode import torch_file
from resight.encode.backbones import About
from resight.encode.backbones._key_points import extract_each, fit_stride, read_grey, scale_back
from resight.encode.backbones._score_maps import (
    choose_peaks,
    join_cells,
    normalise_maps,
    sample_cubic,
    sample_linear,
    unshaped,
)
from resight.encode.graph_builder import RELU, SIGMOID, GraphBuilder
from resight.encode.onnx_graph import start
from resight.encode.torch_file import Arrays
from resight.files.fingerprint import fingerprint_file
from resight.plugins import check_range
from resight.types import Features, FloatArray, Picture
from resight.vectors import l2_normalise

DIMENSIONS = 64
ABOUT = About("local features", DIMENSIONS, "key point", "in the package", "Apache-2.0")
SHIPPED = Path(__file__).with_name("xfeat.npz")
CELL, STRIDE = 8, 32  # pixels of a descriptor; sides must be multiples of STRIDE
RADIUS = 2  # pixels around a key point without another
SCALES = ((0.6, 0.2), (1.3, 0.8))  # of the picture in semi_dense, and its share of the key points


@dataclass(frozen=True)
class Config:
    mode: Literal["sparse", "semi_dense"] = "sparse"  # sparse: corners; semi_dense: reliable cells at two scales
    features: int = 1000  # most key points per image; the strongest stay
    threshold: float = 0.05  # score that a corner needs (sparse)
    max_side: int = 800  # pixels; an image with a longer side is reduced to this before detection
    threads: int = 1  # CPU threads per picture; several pictures are encoded in parallel
    weights: Path | None = None  # checkpoint of your own (a state dict); None: the authors', which the package holds

    def __post_init__(self) -> None:
        check_range("features", self.features, 1, 1_000_000)
        check_range("threshold", self.threshold, 0, 1)
        check_range("max_side", self.max_side, STRIDE, 4096)
        check_range("threads", self.threads, 1, 256)


def build(config: Config) -> "XFeat":
    return XFeat(config)


class XFeat:
    def __init__(self, config: Config) -> None:
        path = config.weights or SHIPPED
        self.batch = 1
        self.max_side: int | None = config.max_side
        self.fingerprint = (
            f"xfeat({config.mode}, features={config.features}, threshold={config.threshold}, "
            f"max_side={config.max_side}, weights={fingerprint_file(path, 8)})"
        )
        self._config = config
        self._session = start(build_graph(load(path)), config.threads, path.name)

    def extract(self, pictures: Sequence[Picture], scale: float = 1.0) -> Iterator[Features]:
        detect = self._detect if self._config.mode == "sparse" else self._choose_cells
        return extract_each(pictures, scale, "XFeat", detect)

    def _detect(self, picture: Picture) -> tuple[FloatArray, FloatArray]:
        """Corners, with the descriptor interpolated between cells."""
        image = read_grey(picture, self._config.max_side, STRIDE)
        cells, logits, reliability = self._run(image)
        corners = join_cells(logits, CELL)
        peaks, scores = choose_peaks(corners, RADIUS, self._config.threshold)
        height, width = image.shape
        at_cells = (peaks * np.array([cells.shape[2] / (width - 1), cells.shape[1] / (height - 1)]) - 0.5).astype(
            np.float32
        )
        scores = scores * sample_linear(reliability, at_cells)[:, 0]
        order = np.argsort(-scores, kind="stable")[: self._config.features]
        order = order[scores[order] > 0]
        vectors = l2_normalise(sample_cubic(normalise_maps(cells), at_cells[order]))
        return scale_back(unshaped(peaks[order]), image.shape, picture.size), vectors

    def _choose_cells(self, picture: Picture) -> tuple[FloatArray, FloatArray]:
        """The most reliable cells of two scales."""
        image = read_grey(picture, self._config.max_side, STRIDE)
        points, vectors = [], []
        for size, share in SCALES:
            part = fit_stride(image, STRIDE, size)
            cells, _, reliability = self._run(part)
            most = max(int(self._config.features * share), 1)
            order = np.argsort(-reliability.ravel(), kind="stable")[:most]
            rows, columns = np.divmod(order, cells.shape[2])
            centres = (np.column_stack([columns, rows]) * CELL + (CELL - 1) / 2).astype(np.float32)
            points.append(scale_back(unshaped(centres), part.shape, picture.size))
            vectors.append(l2_normalise(np.ascontiguousarray(cells.reshape(len(cells), -1).T[order])))
        return np.concatenate(points), np.concatenate(vectors)

    def _run(self, image: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Descriptors [64, h, w], corner logits [65, h, w] and reliability [1, h, w] of the cells."""
        cells, logits, reliability = self._session.run(None, {"image": normalise(image)[None, None]})
        return cells[0], logits[0], reliability[0]


def load(path: Path) -> Arrays:
    """The arrays of a state dict, or of the packed one; of neither is anything run."""
    if path != SHIPPED:
        return torch_file.load(path)
    with np.load(path, allow_pickle=False) as packed:
        return {name: packed[name].astype(np.float32) for name in packed.files}


def normalise(image: FloatArray) -> FloatArray:
    """Mean 0 and variance 1, as the network's first layer does; colours go to 255."""
    scaled = image / np.float32(255)
    return np.asarray((scaled - scaled.mean()) / np.sqrt(scaled.var() + 1e-5), np.float32)


def build_graph(weights: Arrays) -> onnx.ModelProto:
    """From a normalised grey image [B, 1, H, W] to descriptors, corner logits and reliability of its cells."""
    graph = GraphBuilder(weights, "XFeat")

    def layers(flow: str, block: str, *strides: int) -> str:
        for number, stride in enumerate(strides):
            name = f"{block}.{number}.layer"
            flow = graph.convolve(flow, f"{name}.0", f"{name}.1", RELU, stride)
        return flow

    skip = graph.convolve(graph.pool_average("image", 4), "skip1.1")
    quarter = layers(graph.add("Add", [layers("image", "block1", 1, 2, 1, 2), skip]), "block2", 1, 1)
    eighth = layers(quarter, "block3", 2, 1, 1)
    sixteenth = layers(eighth, "block4", 2, 1, 1)
    last = layers(sixteenth, "block5", 2, 1, 1, 1)
    pyramid = graph.add("Sum", [eighth, graph.enlarge(sixteenth, 2), graph.enlarge(last, 4)])
    cells = graph.convolve(layers(pyramid, "block_fusion", 1, 1), "block_fusion.2")
    reliability = graph.convolve(layers(cells, "heatmap_head", 1, 1), "heatmap_head.2", activation=SIGMOID)
    pixels = graph.add("SpaceToDepth", ["image"], blocksize=CELL)
    logits = graph.convolve(layers(pixels, "keypoint_head", 1, 1, 1), "keypoint_head.3")
    return graph.finish({"image": ["batch", 1, "height", "width"]}, [cells, logits, reliability])
