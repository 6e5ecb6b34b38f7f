"""Any network in an ONNX file that turns pictures into a feature map, tokens or one vector.

In: pictures. Out: Features with `grid` and `patches`. What the output is, its shape says:

    [B, C, H, W]   a feature map: its cells are the patches
    [B, T, D]      tokens: the last rows × columns are the patches, a patch being `cell` pixels wide; the first of the
                   `prefix` tokens before them is CLS, the others (registers) are left out
    [B, D]         one vector: `cls`, `head` and the only patch of a grid of 1 × 1

Tokens of blocks inside a transformer, and where CLS looks, are the business of onnx_vit.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from resight.encode.backbones import About
from resight.encode.onnx_graph import read_model, start
from resight.encode.preprocess import REACH, Fit, Interpolation, choose_input, choose_size, make_statistics, prepare
from resight.errors import MissingWeights, RecipeError
from resight.files.fingerprint import fingerprint_file
from resight.plugins import check_range
from resight.types import Features, FloatArray, Picture

ABOUT = About("any network", 0, "patch, cell of the feature map, or the image", "an ONNX file of one's own", "its own")
USUAL = 224  # pixels a side, where neither the file nor the settings say


@dataclass(frozen=True)
class Config:
    model: Path | None = None  # the ONNX file
    output: str = ""  # by name; empty: the last one
    prefix: int | None = None  # tokens before the patches; None: as many as are left over
    cell: int | None = None  # pixels a side that a patch stands for; None: found from the number of tokens
    size: int | None = None  # width and height of the input; None: as the file says, or 224
    fit: Fit = "squash"
    interpolation: Interpolation = "bicubic"
    mean: tuple[float, ...] = (0.485, 0.456, 0.406)  # of the training images, 0 to 1: red, green, blue
    deviation: tuple[float, ...] = (0.229, 0.224, 0.225)
    threads: int = 1  # for one picture; pictures are encoded side by side

    def __post_init__(self) -> None:
        check_range("threads", self.threads, 1, 256)
        for name, value, least in (("prefix", self.prefix, 0), ("cell", self.cell, 1), ("size", self.size, 1)):
            if value is not None:
                check_range(name, value, least, 4096)


def build(config: Config) -> "OnnxNetwork":
    return OnnxNetwork(config, find_weights(config))


def find_weights(config: Config) -> Path:
    if config.model is not None:
        if config.model.is_file():
            return config.model
        raise RecipeError(
            f"there is no network {config.model}",
            expected="an ONNX file",
            actual="a folder" if config.model.is_dir() else "no such file",
            fix="check the setting `model`",
        )
    raise MissingWeights(
        "the encoder onnx needs a file",
        expected="the setting model, the path of an ONNX file",
        actual="none",
        fix='encoder = { name = "onnx", model = "FILE" }',
    )


@dataclass(frozen=True)
class Parts:
    """One picture's output, taken apart."""

    patches: FloatArray  # [1, N, D]
    grid: tuple[int, int]  # rows, columns
    cls: FloatArray | None = None  # [1, D]
    head: FloatArray | None = None  # [1, D]


class OnnxNetwork:
    batch = 1

    def __init__(self, config: Config, path: Path) -> None:
        model = read_model(path)
        self._input, sides = find_input(model.graph, path.name)
        self._output = choose_output(model.graph, config.output)
        self._fixed = any(sides)
        self._size = choose_side(config, sides)
        self._config = config
        self._statistics = make_statistics(config.mean, config.deviation)
        self.max_side: int | None = REACH * self._size
        self._session = start(model, config.threads, path.name)
        self._cell = 1
        self._cell = self._find_cell(self._run(np.zeros((1, 3, self._size, self._size), np.float32)))
        self.fingerprint = (
            f"onnx(output={self._output}, prefix={config.prefix}, cell={self._cell}, size={self._size}, "
            f"fit={config.fit}, interpolation={config.interpolation}, mean={config.mean}, "
            f"deviation={config.deviation}, model={fingerprint_file(path, 8)})"
        )

    def extract(self, pictures: Sequence[Picture], scale: float = 1.0) -> Iterator[Features]:
        if scale != 1 and self._fixed:
            raise refuse_size(f"{self._size} × {self._size}", f"scale {scale:g}")
        config = self._config
        side = choose_size(self._size, scale, self._cell)
        for picture in pictures:
            width, height = choose_input(picture, side, self._cell, config.fit)
            planes, covers = prepare(picture, width, height, config.fit, self._statistics, config.interpolation)
            parts = self._split(self._run(planes), width, height)
            yield Features(
                ids=(picture.ref.id,),
                patches=parts.patches,
                sizes=np.array([picture.size], dtype=np.int32),
                grid=parts.grid,
                cls=parts.cls,
                covers=np.array([covers], dtype=np.float32),
                head=parts.head,
            )

    def _run(self, planes: FloatArray) -> FloatArray:
        try:
            (values,) = self._session.run([self._output], {self._input: planes})
        except Exception as error:  # onnxruntime's own exceptions have no public common class
            raise RecipeError(
                f"this network does not take pictures of {planes.shape[3]} × {planes.shape[2]} pixels",
                expected="an input [batch, 3, height, width] of float32",
                actual=str(error).partition("\n")[0],
                fix="set size to the one that the file was exported with, and fit to squash or crop",
            ) from error
        if values.ndim not in (2, 3, 4) or len(values) != 1:
            raise RecipeError(
                f"the output {self._output!r} is no feature map, tokens or vector",
                expected="[1, C, H, W], [1, T, D] or [1, D]",
                actual=str(list(values.shape)),
                fix="set output to another one",
            )
        return np.ascontiguousarray(values, np.float32)

    def _find_cell(self, values: FloatArray) -> int:
        """Pixels a side of a patch, from what the network gives for its usual input."""
        if self._config.cell is not None or values.ndim == 2:
            return self._config.cell or 1
        if values.ndim == 4:
            return max(self._size // int(values.shape[2]), 1)
        # Without prefix the finest square is meant: CLS and registers, which it leaves over, are few.
        patches = values.shape[1] - (self._config.prefix or 0)
        side = math.isqrt(max(patches, 0))
        if side == 0 or self._size % side or (self._config.prefix is not None and side * side != patches):
            raise self._refuse_grid(values.shape[1], "a square of whole patches")
        return self._size // side

    def _split(self, values: FloatArray, width: int, height: int) -> Parts:
        if values.ndim == 2:
            return Parts(values[:, None], (1, 1), cls=values, head=values)
        if values.ndim == 4:
            rows, columns = values.shape[2:]
            cells = values.reshape(1, values.shape[1], rows * columns).transpose(0, 2, 1)
            return Parts(np.ascontiguousarray(cells), (rows, columns))
        rows, columns = height // self._cell, width // self._cell
        prefix = values.shape[1] - rows * columns
        if prefix < 0 or self._config.prefix not in (None, prefix):
            raise self._refuse_grid(
                values.shape[1], f"{columns} × {rows} patches and {self._config.prefix or 0} others"
            )
        return Parts(values[:, prefix:], (rows, columns), cls=values[:, 0] if prefix else None)

    def _refuse_grid(self, tokens: int, expected: str) -> RecipeError:
        return RecipeError(
            "the tokens of this network lie on no grid",
            expected=expected,
            actual=f"{tokens} tokens, size {self._size}, cell {self._config.cell}, prefix {self._config.prefix}",
            fix="set cell to the pixels a side of a patch and prefix to the number of tokens before the patches",
        )


def find_input(graph: Any, name: str) -> tuple[str, tuple[int, int]]:
    """The graph's input and its fixed height and width, 0 where they are free."""
    weights = {tensor.name for tensor in graph.initializer}
    inputs = [value for value in graph.input if value.name not in weights]
    shape = _list_sides(inputs[0]) if len(inputs) == 1 else []
    if len(shape) != 4 or shape[1] not in (0, 3):
        raise RecipeError(
            f"{name} does not take pictures",
            expected="one input [batch, 3, height, width]",
            actual=", ".join(_write(value) for value in inputs) or "no input",
            fix="export the network with one input of RGB planes",
        )
    return inputs[0].name, (shape[2], shape[3])


def choose_output(graph: Any, name: str) -> str:
    names = [value.name for value in graph.output]
    if (name and name not in names) or not names:
        raise RecipeError(
            f"the network has no output {name!r}",
            expected=f"one of {', '.join(_write(value) for value in graph.output)}",
            actual=repr(name),
            fix="choose one of them, or leave output out for the last",
        )
    return name or str(names[-1])


def choose_side(config: Config, sides: tuple[int, int]) -> int:
    height, width = sides
    size = config.size or height or width or USUAL
    if any(side not in (0, size) for side in sides) or (any(sides) and config.fit == "keep"):
        raise refuse_size(f"{width or size} × {height or size}", f"size {size}, fit {config.fit!r}")
    return size


def refuse_size(fixed: str, asked: str) -> RecipeError:
    return RecipeError(
        "this network takes pictures of one size only",
        expected=f"{fixed} pixels, a square; fit squash or crop, scale 1",
        actual=asked,
        fix="leave size, fit and scale as they are, or export the network with free height and width",
    )


def _list_sides(value: Any) -> list[int]:
    return [side.dim_value for side in value.type.tensor_type.shape.dim]


def _write(value: Any) -> str:
    return f"{value.name} [{', '.join(str(side or '?') for side in _list_sides(value))}]"
