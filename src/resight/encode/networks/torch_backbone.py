"""Pictures through a network of torch, in batches of one shape.

In: a Network (made by the backbones timm, transformers and cider) and its Settings. Out: Features, one picture each, in
the order of the pictures. On a CPU several threads may run batches side by side; on another device they queue.

A `ForwardHook` holds the input or output of a module inside a network: how attention is read from networks that do not
return it, because the softmax of a block ends in a module or a value of its own.
"""

import contextlib
import hashlib
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np
import torch

from resight.encode.preprocess import REACH, Fit, Interpolation, choose_input, choose_size, make_statistics, prepare
from resight.errors import RecipeError
from resight.plugins import check_range
from resight.types import Box, Features, FloatArray, Picture

Device = Literal["auto", "cpu", "cuda", "mps"]
Precision = Literal["fp32", "bf16", "fp16"]
PRECISIONS = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
SEED = 0  # of untrained weights


@dataclass(frozen=True)
class Settings:
    """Of every network on torch; None leaves a setting as the network's makers have it."""

    weights: Path | None = None  # checkpoint of your own, .safetensors or .pth; None: the makers' weights, from the hub
    untrained: bool = False  # use random weights, always the same: for tests and timing
    block: int | None = None  # block whose tokens or feature map to use, from 0; None: the last, after the final norm
    projection: bool = False  # use the vector after the last linear layer as head (CLIP: the space shared with texts)
    attention: bool = True  # also compute the attention of CLS in the block, which is slower
    size: int | None = None  # input side in pixels; with fit = "keep", of a square of equal area; None: as in training
    fit: Fit = "squash"  # squash: distort to a square; crop: show the central square; keep: keep the proportions
    share: float | None = None  # fit = "crop": share of the central square's side to show, 0.05 to 1; None: as trained
    interpolation: Interpolation | None = None  # how to resize pictures: area, bilinear, bicubic; None: as in training
    mean: tuple[float, ...] | None = None  # mean colour to subtract: red, green, blue, 0 to 1; None: as in training
    deviation: tuple[float, ...] | None = None  # deviation of colours to divide by, 0 to 1; None: as in training
    device: Device = "auto"  # where the network runs; auto: cuda, else mps, else cpu
    precision: Precision = "fp32"  # floating-point format that the network computes in
    compile: bool = False  # compile the network with torch.compile: slow to start, faster afterwards
    threads: int = 1  # CPU threads per batch; sets torch's number for the whole process
    batch: int | None = None  # pictures per forward pass; None: 1 on a CPU, 32 elsewhere

    def __post_init__(self) -> None:
        check_range("threads", self.threads, 1, 256)
        if self.share is not None:
            check_range("share", self.share, 0.05, 1)
        if self.size is not None:
            check_range("size", self.size, 8, 4096)
        if self.batch is not None:
            check_range("batch", self.batch, 1, 4096)
        if self.weights is not None and self.untrained:
            raise RecipeError(
                "weights and untrained contradict each other",
                expected="either weights or untrained",
                actual=f"weights = {self.weights}, untrained = true",
                fix="drop one of them",
            )
        if self.mean is not None or self.deviation is not None:
            make_statistics(self.mean or (0, 0, 0), self.deviation or (1, 1, 1))  # raises where they make no sense


@dataclass(frozen=True)
class Outputs:
    """The output of a network for a batch."""

    patches: torch.Tensor  # [B, rows × columns, D]
    grid: tuple[int, int]  # rows, columns
    cls: torch.Tensor | None = None  # [B, D]
    attention: torch.Tensor | None = None  # [B, rows × columns] of CLS, mean over heads
    head: torch.Tensor | None = None  # [B, P]


@dataclass(frozen=True)
class Input:
    """The pictures that a network was trained with."""

    size: int
    mean: tuple[float, ...]
    deviation: tuple[float, ...]
    interpolation: Interpolation
    cell: int  # pixels per side of a patch or a cell of the feature map
    fixed: bool = False  # no other size than `size`
    whole: bool = False  # cells must tile the input: patches, not a feature map
    share: float = 1.0  # of the largest centred square, with fit = "crop"
    least: int = 1  # pixels per side below which no feature map is left


class Network(Protocol):
    module: torch.nn.Module
    input: Input

    def run(self, planes: torch.Tensor) -> Outputs:
        """Run planes [B, 3, H, W]. Several threads call it at once, without gradients."""
        ...


class TorchBackbone:
    def __init__(self, network: Network, settings: Settings, name: str) -> None:
        self._settings = settings
        self._input = apply_settings(network.input, settings, name)
        self._device = choose_device(settings)
        self._type = PRECISIONS[settings.precision]
        if self._device.type == "cpu":
            torch.set_num_threads(settings.threads)
        self.batch = settings.batch or (1 if self._device.type == "cpu" else 32)
        self.max_side: int | None = REACH * self._input.size
        self.fingerprint = (
            f"{name} (block={settings.block}, projection={settings.projection}, size={self._input.size}, "
            f"fit={settings.fit}, share={self._input.share:g}, interpolation={self._input.interpolation}, "
            f"mean={self._input.mean}, deviation={self._input.deviation}, precision={settings.precision}, "
            f"weights={hash_weights(network.module)})"
        )
        network.module.eval().requires_grad_(False).to(self._device, self._type)
        if settings.compile:
            # torch reuses code compiled for one network for others of its class. Without this setting it would also
            # reuse it where a ForwardHook sits on another module, and that hook would stay empty.
            torch._dynamo.config.skip_nnmodule_hook_guards = False
            network.module.compile()
        self._network = network
        # A second batch on an accelerator would take memory and save no time.
        self._queue = contextlib.nullcontext() if self._device.type == "cpu" else threading.Lock()

    def extract(self, pictures: Sequence[Picture], scale: float = 1.0) -> Iterator[Features]:
        shown = [self._show(picture, scale) for picture in pictures]
        results: dict[int, Features] = {}
        for members in group_by_shape([planes.shape for planes, _ in shown], self.batch):
            outputs = self._run(np.concatenate([shown[member][0] for member in members]))
            for row, member in enumerate(members):
                results[member] = make_features(pictures[member], outputs, row, shown[member][1])
        for number in range(len(pictures)):
            yield results.pop(number)

    def _show(self, picture: Picture, scale: float) -> tuple[FloatArray, Box]:
        given, settings = self._input, self._settings
        if scale != 1 and given.fixed:
            raise refuse_size(given, f"scale {scale:g}")
        side = choose_size(given.size, scale, given.cell)
        width, height = choose_input(picture, side, given.cell, settings.fit)
        width, height = max(width, given.least), max(height, given.least)
        statistics = make_statistics(given.mean, given.deviation)
        return prepare(picture, width, height, settings.fit, statistics, given.interpolation, given.share)

    def _run(self, planes: FloatArray) -> Outputs:
        with self._queue, torch.inference_mode():
            return self._network.run(torch.from_numpy(planes).to(self._device, self._type))


def apply_settings(given: Input, settings: Settings, name: str) -> Input:
    """The network's own input, changed by the settings."""
    size = settings.size or given.size
    if given.fixed and (size != given.size or settings.fit == "keep"):
        raise refuse_size(given, f"size {size}, fit {settings.fit!r}")
    least = max(given.cell, given.least)
    if (given.whole and size % given.cell) or size < least:
        raise RecipeError(
            f"{name}: {size} pixels are not whole cells",
            expected=f"a size that is a multiple of {given.cell}, {least} or more",
            actual=str(size),
            fix=f"e.g. {max(round(size / given.cell) * given.cell, least)}",
        )
    return replace(
        given,
        size=size,
        mean=settings.mean or given.mean,
        deviation=settings.deviation or given.deviation,
        interpolation=settings.interpolation or given.interpolation,
        share=given.share if settings.share is None else settings.share,
    )


def refuse_size(given: Input, asked: str) -> RecipeError:
    return RecipeError(
        "this network takes pictures of one size only",
        expected=f"{given.size} × {given.size} pixels, fit squash or crop, scale 1",
        actual=asked,
        fix="leave it out, or choose a network whose position embedding can be interpolated",
    )


def choose_device(settings: Settings) -> torch.device:
    if settings.device == "auto":
        found = "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"
        return torch.device(found)
    there = {"cpu": True, "cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if not there[settings.device]:
        raise RecipeError(
            f"there is no {settings.device} device here",
            expected="a device that torch can use",
            actual=f"device = {settings.device!r}",
            fix="device = 'auto' takes the best available one",
        )
    return torch.device(settings.device)


def group_by_shape(shapes: Sequence[tuple[int, ...]], most: int) -> list[list[int]]:
    """Groups of the numbers of pictures with one shape, at most `most` per group."""
    groups: dict[tuple[int, ...], list[int]] = {}
    for number, shape in enumerate(shapes):
        groups.setdefault(shape, []).append(number)
    return [members[at : at + most] for members in groups.values() for at in range(0, len(members), most)]


def make_features(picture: Picture, outputs: Outputs, row: int, covers: Box) -> Features:
    def pick(tensor: torch.Tensor | None) -> FloatArray | None:
        return None if tensor is None else tensor[row : row + 1].float().contiguous().cpu().numpy()

    return Features(
        ids=(picture.ref.id,),
        patches=outputs.patches[row : row + 1].float().contiguous().cpu().numpy(),
        sizes=np.array([picture.size], dtype=np.int32),
        grid=outputs.grid,
        cls=pick(outputs.cls),
        attention=pick(outputs.attention),
        covers=np.array([covers], dtype=np.float32),
        head=pick(outputs.head),
    )


def hash_weights(module: torch.nn.Module) -> str:
    """A hash of names and values: equal for equal weights, whatever file they came from."""
    digest = hashlib.blake2b(digest_size=4)
    for name, tensor in sorted(module.state_dict().items()):
        digest.update(name.encode())
        digest.update(memoryview(tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy()))
    return digest.hexdigest()


class ForwardHook:
    """Holds the tensor that passed into or out of a module in this thread's latest run of the network."""

    def __init__(self, module: torch.nn.Module, side: Literal["input", "output"]) -> None:
        self._held = threading.local()
        if side == "input":
            module.register_forward_pre_hook(self._store_input)
        else:
            module.register_forward_hook(self._store_output)

    def __deepcopy__(self, _memo: dict[int, Any]) -> "ForwardHook":
        """An empty hook for a copied network, whose modules call it."""
        copied = object.__new__(type(self))
        copied._held = threading.local()
        return copied

    def take(self) -> Any:
        """The held value, which is released."""
        value = getattr(self._held, "value", None)
        self._held.value = None
        return value

    def _store_input(self, _module: torch.nn.Module, inputs: tuple[Any, ...]) -> None:
        self._held.value = inputs[0]

    def _store_output(self, _module: torch.nn.Module, _inputs: tuple[Any, ...], output: Any) -> None:
        self._held.value = output
