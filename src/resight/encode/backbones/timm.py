"""Any network of timm, by its name: vision transformers and convolutional networks.

In: pictures. Out: Features with `grid` and `patches`; of a transformer with a CLS token also `cls` and `attention`
(that of CLS in the last block or in `block`, mean over heads; it sums to less than 1 where CLS and registers take a
share); `head` is the network's own vector. Size, mean, deviation, interpolation and the share of a crop are those of
the weights unless set. Other sizes, square or not, work for convolutional networks and wherever timm interpolates the
position embedding.

Weights come from the Hugging Face hub, once, and are cached; from `weights`, a checkpoint of your own in timm's naming
(its position embedding may have another grid); or are random (`untrained`). `projection = true` gives the vector after
the last linear layer; it is refused where that layer is a classifier of ImageNet's classes. With `block` the network
ends there and has no `head`.
"""

from dataclasses import dataclass, replace
from pathlib import Path

import torch

from resight.encode.backbones import About
from resight.encode.networks import timm_network
from resight.encode.networks.timm_network import TimmNetwork
from resight.encode.networks.torch_backbone import Settings, TorchBackbone
from resight.encode.networks.weight_files import refuse_absent
from resight.errors import RecipeError

ABOUT = About(
    "networks of timm",
    384,
    "patch of the image, or cell of the feature map",
    "Hugging Face hub, or a checkpoint of your own",
    "Apache-2.0 (DINOv2, the default); others differ",
    37 * 37,
)


@dataclass(frozen=True)
class Config(Settings):
    model: str = "vit_small_patch14_dinov2.lvd142m"  # name in timm, with or without the tag of its weights

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.block is not None and self.projection:
            raise RecipeError(
                "a block in the middle has no projection",
                expected="either block or projection",
                actual=f"block = {self.block}, projection = true",
                fix="drop one of them",
            )


def build(config: Config) -> TorchBackbone:
    model = timm_network.load_model(config.model, config)
    return TorchBackbone(TimmNetwork(model, config), config, f"timm {config.model}")


def sketch(config: Config) -> TimmNetwork:
    """The network without values, on torch's meta device."""
    with torch.device("meta"):
        model = timm_network.load_model(config.model, replace(config, weights=None, untrained=True))
        return TimmNetwork(model, replace(config, attention=False))


def find_weights(config: Config) -> Path | None:
    """The file that `build` would read, found without the hub; None where it needs none."""
    timm_network.check_name(config.model)
    if config.untrained:
        return None
    path = config.weights if config.weights is not None else timm_network.find_file(config.model)
    if path is None or not path.is_file():
        raise refuse_absent(config.model, "neither" if path is None else f"no file {path}")
    return path
