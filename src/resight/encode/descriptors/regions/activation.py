"""Boxes around the parts of a network's attention or activations that stand out.

In: a picture. Out: at most `most` boxes, scored by `resight.encode.regions.box_saliency`. The encoder is any backbone
with a grid, or a network of the catalogue; its map over the patches x_i is

    attention    √ of the attention of the CLS token, for networks that have one (onnx_vit, ViTs of timm, …);
                 the root, because a few patches get most of the attention. Late blocks follow objects best:
                 encoder = { name = "onnx_vit", block = 11 }
    activation   ‖x_i‖: how strongly a patch responds
    standout     ‖x_i − mean x‖: how far a patch differs from the picture as a whole
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from resight.encode import backbones
from resight.encode.descriptors.tokens import require_grid
from resight.encode.regions import USUAL_FINEST, Proposals, box_saliency, space_thresholds
from resight.errors import RecipeError
from resight.plugins import check_range
from resight.types import Choice, Features, FloatArray, Picture

Map = Literal["attention", "activation", "standout"]
USUAL = Choice("efficientnet_lite", {"block": 16})


@dataclass(frozen=True)
class Config:
    encoder: Choice = USUAL  # encoder whose map is used; it needs a grid of patches
    map: Map = "standout"  # attention (of CLS), activation (length of a patch) or standout (difference from the mean)
    thresholds: int = 9  # number of thresholds, spaced evenly over the range of the map
    least: float = 0.003  # smallest part to propose, as a share of the image's area
    most: int = 20  # most boxes per image; those with the best scores stay

    def __post_init__(self) -> None:
        check_range("thresholds", self.thresholds, 1, 100)
        check_range("least", self.least, 0, 1)
        check_range("most", self.most, 1)


def build(config: Config) -> "Activation":
    return Activation(config)


class Activation:
    finest = USUAL_FINEST

    def __init__(self, config: Config) -> None:
        self._backbone = backbones.build(config.encoder.name, **config.encoder.settings)
        self._config = config
        self.fingerprint = (
            f"activation({config.map}, thresholds={config.thresholds}, least={config.least}, most={config.most}, "
            f"{self._backbone.fingerprint})"
        )

    def propose(self, picture: Picture) -> Proposals:
        (features,) = self._backbone.extract([picture])
        require_grid(features, "the region source activation")
        assert features.grid is not None
        values = self._read(features).reshape(features.grid)
        covers = (0, 0, *picture.size) if features.covers is None else features.covers[0].tolist()
        config = self._config
        return box_saliency(values, covers, space_thresholds(config.thresholds), config.least, config.most)

    def _read(self, features: Features) -> FloatArray:
        if self._config.map != "attention":
            return measure_energy(features.patches[0], self._config.map == "standout")
        if features.attention is None:
            raise RecipeError(
                f"the encoder {self._config.encoder.name!r} gives no attention",
                expected="an encoder with a CLS token whose attention can be read, e.g. onnx_vit",
                actual="only patches",
                fix='map = "activation" or "standout", which work with every encoder',
            )
        return np.asarray(np.sqrt(np.maximum(features.attention[0], 0)), np.float32)


def measure_energy(patches: FloatArray, less_mean: bool) -> FloatArray:
    """The length of each patch [N, D] → [N], or of its difference from their mean."""
    rows = np.asarray(patches, np.float32)
    return np.asarray(np.linalg.norm(rows - rows.mean(axis=0) if less_mean else rows, axis=1), np.float32)
