"""The encoders that come with weights: time of an image with the graph optimised or not, in fp32 and int8; loss.

    [RESIGHT_DATA=FOLDER] python benchmarks/encoders.py [--encoders lite2 …] [--rounds 4] [--photos 60] [--json FILE]

Times are CPU time of one thread, the lowest of several rounds in which all versions take turns, without decoding and
resizing. Cosine: each token of the int8 network with the same token in fp32, mean over photographs of the demo that
did not calibrate it. R@1: Gardens Point, night → day ± 2 frames, 32 aggregated tokens an image, late interaction in
fp32 (FOLDER holds `gardenspoint/`; left out without it). int8 is made here, by onnxruntime's quantiser: for the
convolutional networks statically (activations and weights, a scale a channel, ranges from other photographs of the
demo), for the transformer dynamically (its matrix products alone).
"""

import argparse
import json
import logging
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import cv2
import mvtbdata
import numpy as np
import onnx
import onnxruntime
from numpy.typing import NDArray
from onnxruntime import quantization

from resight import kernels
from resight.data import image_files
from resight.data.folder_walk import walk
from resight.data.sets import build as build_set
from resight.encode import torch_file
from resight.encode.backbones import efficientnet_lite, onnx_vit
from resight.encode.descriptors.aggregated import aggregate
from resight.encode.onnx_graph import cut, find_blocks
from resight.encode.preprocess import Statistics, make_statistics, prepare
from resight.types import Dataset, FloatArray, ImageRef

BLOCKS = {"lite0": (12, 256), "lite1": (16, 256), "lite2": (16, 256), "onnx_vit": (6, 224)}  # block and input size
TOKENS, TOLERANCE = 32, 2
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
Versions = dict[str, onnxruntime.InferenceSession]


@dataclass(frozen=True)
class Network:
    name: str
    block: int
    size: int
    model: onnx.ModelProto
    input: str
    statistics: Statistics

    def show(self, ref: ImageRef) -> FloatArray:
        """An image as the network's input [1, 3, size, size]."""
        return prepare(image_files.read(ref, 3 * self.size), self.size, self.size, "squash", self.statistics)[0]


@dataclass(frozen=True)
class Figures:
    encoder: str
    block: int
    size: int
    ms: dict[str, float]  # by version: "fp32, not optimised", …
    cosine: float
    recall: dict[str, float]  # R@1 by precision; empty without the data


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--encoders", nargs="+", choices=BLOCKS, default=list(BLOCKS))
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--photos", type=int, default=60, help="of the demo; every second one calibrates")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    if not ONE_THREAD.items() <= os.environ.items():  # numpy reads them when it is loaded: start again with them set
        os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, **ONE_THREAD})
    cv2.setNumThreads(1)
    logging.getLogger().setLevel(logging.ERROR)  # the quantiser advises on preprocessing that changes nothing here
    root = os.environ.get("RESIGHT_DATA")
    dataset = build_set("gardens_point").load(Path(root) / "gardenspoint") if root else None
    figures = []
    print("| encoder | block, input | ms: off | fp32 | int8 off | int8 | cosine | R@1 fp32 | int8 |")
    print("|---|---|---|---|---|---|---|---|---|")
    for name in options.encoders:
        figures.append(measure(open_network(name), dataset, options.rounds, options.photos))
        print(to_row(figures[-1]), flush=True)
    if options.json:
        options.json.write_text(json.dumps([asdict(each) for each in figures], indent=1) + "\n", encoding="utf-8")


def measure(network: Network, dataset: Dataset | None, rounds: int, count: int) -> Figures:
    photos = [ref for ref in walk(Path(mvtbdata.__file__).parent / "images") if isinstance(ref, ImageRef)]
    shown = [network.show(ref) for ref in photos[:: max(len(photos) // count, 1)][:count]]
    calibrating, trying = shown[::2], shown[1::2]
    int8 = quantise(network, calibrating)
    plain, small = start(network.model.SerializeToString()), start(int8)
    versions = {
        "fp32, not optimised": start(network.model.SerializeToString(), optimise=False),
        "fp32": plain,
        "int8, not optimised": start(int8, optimise=False),
        "int8": small,
    }
    cosines = [compare(*(read_tokens(s, network, planes)[0] for s in (plain, small))) for planes in trying]
    recall = {}
    if dataset is not None:
        recall = {label: find_places(versions[label], network, dataset) for label in ("fp32", "int8")}
    times = time_versions(versions, network, trying[:6], rounds)
    return Figures(network.name, network.block, network.size, times, float(np.mean(cosines)), recall)


def time_versions(versions: Versions, network: Network, inputs: Sequence[FloatArray], rounds: int) -> dict[str, float]:
    """Milliseconds of CPU time; the versions take turns, so that whatever else runs here slows all alike."""
    times: dict[str, list[float]] = {label: [] for label in versions}
    for _ in range(rounds):
        for planes in inputs:
            for label, session in versions.items():
                started = time.process_time()
                session.run(None, {network.input: planes})
                times[label].append(time.process_time() - started)
    return {label: 1000 * min(taken) for label, taken in times.items()}


def find_places(session: onnxruntime.InferenceSession, network: Network, dataset: Dataset) -> float:
    """R@1 of frames by night among those by day."""

    def encode(refs: Sequence[ImageRef]) -> Iterator[NDArray[Any]]:
        for ref in refs:
            yield aggregate(*read_tokens(session, network, network.show(ref)), k=TOKENS)[0]

    rows = list(encode(dataset.database))
    packed = kernels.pack(np.concatenate(rows), np.cumsum([0, *map(len, rows)]), kind="fp32")
    best = [int(packed.scores(query).argmax()) for query in encode(dataset.queries)]
    right = [
        dataset.database[found].id in dataset.judgements[query.id].grades
        for query, found in zip(dataset.queries, best, strict=True)
    ]
    return float(np.mean(right))


def read_tokens(
    session: onnxruntime.InferenceSession, network: Network, planes: FloatArray
) -> tuple[FloatArray, FloatArray | None]:
    """Tokens [N, D] and, of the transformer, attention [N]."""
    first, *rest = session.run(None, {network.input: planes})
    if network.name != "onnx_vit":
        return first[0].reshape(first.shape[1], -1).T.copy(), None
    return first[0, 1:], rest[0][0, :, 1:].mean(axis=0)


def compare(one: FloatArray, other: FloatArray) -> float:
    lengths = np.linalg.norm(one, axis=1) * np.linalg.norm(other, axis=1)
    return float(((one * other).sum(axis=1) / lengths).mean())


def open_network(name: str) -> Network:
    block, size = BLOCKS[name]
    if name == "onnx_vit":
        config = onnx_vit.Config()
        model = onnx.load(onnx_vit.find_weights(config))
        blocks = find_blocks(model.graph, name)
        statistics = make_statistics(config.mean, config.deviation)
        return Network(name, block, size, cut(model, blocks, block), blocks.input, statistics)
    path = efficientnet_lite.find_weights(efficientnet_lite.Config(variant=name))  # type: ignore[arg-type]
    model = efficientnet_lite.build_graph(torch_file.load(path), name, block)
    return Network(name, block, size, model, "image", efficientnet_lite.STATISTICS)


def quantise(network: Network, calibrating: Sequence[FloatArray]) -> bytes:
    def write(source: Path, target: Path) -> None:
        if network.name == "onnx_vit":
            quantization.quantize_dynamic(
                source,
                target,
                op_types_to_quantize=["MatMul"],
                per_channel=True,
                extra_options={"MatMulConstBOnly": True},
            )
            return
        quantization.quantize_static(
            source,
            target,
            Calibration(network.input, calibrating),
            per_channel=True,
            reduce_range=True,  # 7-bit weights: processors without VNNI add two products in 16 bits
            activation_type=quantization.QuantType.QUInt8,
            weight_type=quantization.QuantType.QInt8,
        )

    return through_files(network.model, write)


class Calibration(quantization.CalibrationDataReader):  # type: ignore[misc]
    def __init__(self, name: str, inputs: Sequence[FloatArray]) -> None:
        self._rest = iter([{name: planes} for planes in inputs])

    def get_next(self) -> dict[str, FloatArray] | None:
        return next(self._rest, None)


def through_files(model: onnx.ModelProto, write: Callable[[Path, Path], None]) -> bytes:
    with tempfile.TemporaryDirectory() as scratch:
        source, target = Path(scratch) / "fp32.onnx", Path(scratch) / "int8.onnx"
        onnx.save(model, source)
        write(source, target)
        return target.read_bytes()


def start(model: bytes, optimise: bool = True) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    level = onnxruntime.GraphOptimizationLevel
    options.graph_optimization_level = level.ORT_ENABLE_ALL if optimise else level.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def to_row(figures: Figures) -> str:
    times = [f"{value:.1f}" for value in figures.ms.values()]
    recall = [f"{figures.recall[label]:.3f}" if figures.recall else "–" for label in ("fp32", "int8")]
    place = f"{figures.block}, {figures.size} px"
    return "| " + " | ".join([figures.encoder, place, *times, f"{figures.cosine:.3f}", *recall]) + " |"


if __name__ == "__main__":
    main()
