"""ONNX graphs from the weights of a torch file, without torch.

In: the arrays of a state dict (torch_file.py) and the layers in their order. Out: a graph that onnx_graph.py runs. Each
method adds nodes and returns the name of its result; a batch norm is folded into the convolution before it.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from resight.encode.torch_file import Arrays
from resight.errors import RecipeError

EPSILON = 1e-5  # torch's default for all norms
OPSET, VERSION = 17, 8
SELU, RELU, SIGMOID = "Selu", "Relu", "Sigmoid"


class GraphBuilder:
    def __init__(self, weights: Arrays, network: str) -> None:
        self.weights = weights
        self._network = network
        self._nodes: list[onnx.NodeProto] = []
        self._tensors: list[onnx.TensorProto] = []

    def add(self, kind: str, sources: Sequence[str], **settings: Any) -> str:
        """A node with one result."""
        result = f"{kind}_{len(self._nodes)}"
        self._nodes.append(helper.make_node(kind, list(sources), [result], **settings))
        return result

    def constant(self, values: Any, dtype: Any = np.float32) -> str:
        name = f"constant_{len(self._tensors)}"
        self._tensors.append(numpy_helper.from_array(np.asarray(values, dtype), name))
        return name

    def convolve(
        self,
        source: str,
        name: str,
        norm: str = "",
        activation: str = "",
        stride: int = 1,
        taps_as_channels: bool = False,
    ) -> str:
        """The convolution `name`, padded so that stride 1 keeps the size.

        `taps_as_channels`: the source has [C · side²] channels, one per tap, and the kernel becomes 1 × 1.
        """
        kernel = np.asarray(self.tensor(f"{name}.weight", 4), np.float64)
        bias = np.asarray(self.weights.get(f"{name}.bias", np.zeros(len(kernel))), np.float64)
        if norm:
            kernel, bias = self._fold(kernel, bias, norm)
        if taps_as_channels:
            kernel = kernel.reshape(len(kernel), -1, 1, 1)
        side = kernel.shape[2]
        sources = [source, self.constant(kernel), self.constant(bias)]
        flow = self.add("Conv", sources, kernel_shape=[side] * 2, strides=[stride] * 2, pads=[side // 2] * 4)
        return self.add(activation, [flow]) if activation else flow

    def linear(self, source: str, name: str) -> str:
        """A fully connected layer over the last axis."""
        flow = self.add("MatMul", [source, self.constant(self.tensor(f"{name}.weight", 2).T)])
        return self.add("Add", [flow, self.constant(self.tensor(f"{name}.bias", 1))])

    def pool_average(self, source: str, side: int) -> str:
        return self.add("AveragePool", [source], kernel_shape=[side, side], strides=[side, side])

    def enlarge(self, source: str, times: int, mode: str = "pytorch_half_pixel") -> str:
        """Bilinear; mode "align_corners" lets the corner pixels coincide."""
        scales = self.constant([1, 1, times, times])
        return self.add("Resize", [source, "", scales], mode="linear", coordinate_transformation_mode=mode)

    def tensor(self, name: str, axes: int) -> NDArray[Any]:
        """A tensor of the state dict with so many axes."""
        found = self.weights.get(name)
        if found is None:
            raise self._refuse(f"a tensor {name!r}", f"{len(self.weights)} tensors, none of that name")
        if found.ndim != axes:
            raise self._refuse(f"{name!r} with {axes} axes", f"the shape {found.shape}")
        if not np.isfinite(found).all():
            raise self._refuse(f"finite numbers in {name!r}", "NaN or infinity")
        return found

    def finish(self, inputs: dict[str, Sequence[Any]], outputs: Sequence[str]) -> onnx.ModelProto:
        """The graph from inputs with these shapes (strings: free) to these results."""
        given = [helper.make_tensor_value_info(name, TensorProto.FLOAT, list(shape)) for name, shape in inputs.items()]
        results = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs]
        graph = helper.make_graph(self._nodes, self._network, given, results, self._tensors)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=VERSION)

    def _fold(
        self, kernel: NDArray[np.float64], bias: NDArray[np.float64], norm: str
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """A batch norm over the results of a convolution, as part of it; gain and shift may be missing."""
        mean, variance = (self.tensor(f"{norm}.running_{part}", 1) for part in ("mean", "var"))
        gain = self.weights.get(f"{norm}.weight", np.ones(len(kernel))) / np.sqrt(variance + EPSILON)
        shift = self.weights.get(f"{norm}.bias", np.zeros(len(kernel)))
        return kernel * gain[:, None, None, None], (bias - mean) * gain + shift

    def _refuse(self, expected: str, actual: str) -> RecipeError:
        return RecipeError(
            f"these weights are not those of {self._network}",
            expected=expected,
            actual=actual,
            fix="check the encoder's settings that choose the weights",
        )
