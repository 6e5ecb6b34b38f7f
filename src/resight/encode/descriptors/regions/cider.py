"""Boxes of the objects that a CiDeR network has learnt to find: the connected parts of its masks.

In: a picture. Out: at most `most` boxes, each scored by the share of all attention inside it. The masks are those of
the network at its own thresholds τ_i, without any background:

    regions = { name = "cider", encoder = { name = "cider", weights = "trained.safetensors" } }
"""

from dataclasses import dataclass

from resight.encode import backbones
from resight.encode.networks.cider.localisation import LEAST, MOST, box_attention
from resight.encode.networks.cider.network import CiderNetwork
from resight.encode.regions import USUAL_FINEST, Proposals
from resight.errors import RecipeError
from resight.plugins import check_range
from resight.types import Choice, Picture

USUAL = Choice("cider")


@dataclass(frozen=True)
class Config:
    encoder: Choice = USUAL  # a trained CiDeR network, e.g. { name = "cider", weights = "trained.safetensors" }
    least: float = LEAST  # smallest part to propose, as a share of the image's area
    most: int = MOST  # most boxes per image; those with the best scores stay

    def __post_init__(self) -> None:
        check_range("least", self.least, 0, 1)
        check_range("most", self.most, 1)


def build(config: Config) -> "CiderRegions":
    return CiderRegions(config)


class CiderRegions:
    finest = USUAL_FINEST

    def __init__(self, config: Config) -> None:
        self._backbone = backbones.build(config.encoder.name, **config.encoder.settings)
        network = getattr(self._backbone, "network", None)
        if not isinstance(network, CiderNetwork) or network.design.localisation == "none":
            raise RecipeError(
                "this encoder has no localisation",
                expected="an encoder cider whose localisation is masks or attention",
                actual=config.encoder.name,
                fix='the region source activation takes any encoder: regions = { name = "activation", … }',
            )
        self._thresholds = network.design.spaced_thresholds
        self._config = config
        self.fingerprint = f"cider(least={config.least}, most={config.most}, {self._backbone.fingerprint})"

    def propose(self, picture: Picture) -> Proposals:
        (features,) = self._backbone.extract([picture])
        assert features.attention is not None and features.grid is not None and features.covers is not None
        heat = features.attention[0].reshape(features.grid)
        return box_attention(heat, self._thresholds, features.covers[0].tolist(), self._config.least, self._config.most)
