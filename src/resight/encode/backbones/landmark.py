"""Networks that CiDeR's tables compare it with, in the same frame: GeM of Yokoo et al., SOLAR, GLAM, DOLG and Token.

In: pictures. Out: Features with `grid`; `patches` are the cells that the network pools, `head` is its descriptor
(descriptor = { name = "pooled", pooling = "head" }), `attention` the network's own weight of each cell: solar, dolg.
The backbone is a ResNet of timm. `design` selects the network; resight.encode.networks.landmark holds one per file.

    encoder = { name = "landmark", design = "solar", backbone = "resnet101.tv_in1k", pretrained = true }

`weights` names a file made by `resight train`, which also holds the design of the network, or one that the authors'
code has saved (published_layouts.py). `_trainable.py` says where weights come from without it. `network` is the torch
module.
"""

from dataclasses import dataclass
from pathlib import Path

from resight.encode.backbones import About
from resight.encode.backbones._trainable import (
    Blueprint,
    TrainableBackbone,
    TrainableSettings,
    check_sources,
    find_file,
)
from resight.encode.named_networks import Cost
from resight.encode.networks.flops import count_costs
from resight.encode.networks.landmark.landmark_design import KEY, Design
from resight.encode.networks.landmark.landmark_network import LandmarkNetwork, MapReader
from resight.encode.networks.landmark.published_layouts import load_landmark_weights
from resight.encode.networks.landmark.resnet_stages import ResNetStages, make_stages
from resight.encode.networks.torch_backbone import Settings
from resight.errors import RecipeError

TITLE = "landmark"
ABOUT = About(
    "landmark networks: GeM, SOLAR, GLAM, DOLG, Token",
    2048,
    "cell of the feature map",
    "a file of your own, from `resight train` or the authors' code",
    "that of the training images",
    7 * 7,
)


@dataclass(frozen=True)
class Config(Design, TrainableSettings):
    def __post_init__(self) -> None:
        Settings.__post_init__(self)
        Design.__post_init__(self)
        check_sources(TITLE, self)
        if self.block is not None:
            raise RecipeError(
                "a landmark network has no other block",
                expected="no block: the heads read conv4 and conv5",
                actual=f"block = {self.block}",
                fix="leave it out",
            )


def make_trunk(design: Design, source: Settings) -> ResNetStages:
    return make_stages(design.backbone, source)


BLUEPRINT = Blueprint(Design, KEY, make_trunk, LandmarkNetwork, load_landmark_weights)


def build(config: Config) -> TrainableBackbone:
    network = make_network(config)
    return TrainableBackbone(TITLE, MapReader(network), config, f"landmark {network.design}")


def make_network(config: Config) -> LandmarkNetwork:
    """The network on the CPU, ready to train."""
    return BLUEPRINT.make_network(config)


def find_weights(config: Config) -> Path | None:
    """The file that `build` would read; None for random weights."""
    return find_file(TITLE, config)


def sketch(config: Config) -> MapReader:
    """The network without values, on torch's meta device."""
    return MapReader(BLUEPRINT.sketch(config))


def count_parts(config: Config) -> list[Cost]:
    network = BLUEPRINT.sketch(config)
    return count_costs(network, network.components, config.size or network.trunk.input.size)
