"""Any network in an ONNX file that turns pictures into a feature map, tokens or one vector.

In: pictures. Out: Features with `grid` and `patches`. The shape of the network's output decides what it is:

    [B, C, H, W]   a feature map: its cells are the patches
    [B, T, D]      tokens: the last rows × columns are the patches, each `cell` pixels wide; the first of the `prefix`
                   tokens before them is CLS, the others (registers) are dropped
    [B, D]         one vector: `cls`, `head` and the only patch of a grid of 1 × 1

The backbone onnx_vit gives tokens of inner blocks of a transformer, and the attention of CLS.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from resight.encode.backbones import About
from resight.encode.onnx_graph import choose_output, find_input, read_model, start
from resight.encode.preprocess import REACH, Fit, Interpolation, choose_input, choose_size, make_statistics, prepare
from resight.errors import MissingWeights, RecipeError
from resight.files.fingerprint import fingerprint_file
from resight.plugins import check_range
from resight.types import Features, FloatArray, Picture

ABOUT = About("any network", 0, "patch, cell of the feature map, or the image", "an ONNX file of your own", "its own")
USUAL = 224  # pixels per side, where neither the file nor the settings have a size


@dataclass(frozen=True)
class Config:
    model: Path | None = None  # path of the ONNX file (required)
    output: str = ""  # name of the output to use; empty: the last one
    prefix: int | None = None  # tokens before the patches, such as CLS and registers; None: all that are not patches
    cell: int | None = None  # pixels per side of a patch; None: from the number of tokens
    size: int | None = None  # input side in pixels; None: the file's, else 224
    fit: Fit = "squash"  # squash: distort to a square; crop: show the central square; keep: keep the proportions
    interpolation: Interpolation = "bicubic"  # how pictures are resized: area (OpenCV), bilinear or bicubic (Pillow)
    mean: tuple[float, ...] = (0.485, 0.456, 0.406)  # mean colour of the training images: red, green, blue, 0 to 1
    deviation: tuple[float, ...] = (0.229, 0.224, 0.225)  # standard deviation of the training images' colours, 0 to 1
    threads: int = 1  # CPU threads per picture; several pictures are encoded in parallel

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
    """The parts of one picture's output."""

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
        except Exception as error:  # onnxruntime's exceptions have no public common class
            raise RecipeError(
                f"this network does not take pictures of {planes.shape[3]} × {planes.shape[2]} pixels",
                expected="an input [batch, 3, height, width] of float32",
                actual=str(error).partition("\n")[0],
                fix="set size to that of the export, and fit to squash or crop",
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
        """Pixels per side of a patch, from the network's output for its usual input."""
        if self._config.cell is not None or values.ndim == 2:
            return self._config.cell or 1
        if values.ndim == 4:
            return max(self._size // int(values.shape[2]), 1)
        # Without `prefix` take the finest square: few tokens are CLS or registers.
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
            fix="set cell to the pixels per side of a patch and prefix to the number of tokens before the patches",
        )


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
