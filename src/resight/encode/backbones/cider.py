"""CiDeR: finds the object of interest in a picture and describes it in one pass; it needs no boxes to learn from.

In: pictures. Out: Features with `grid`; `patches` are the cells after the selective context, `attention` is the map of
the attentional localisation in 0..1, `head` the network's descriptor (descriptor = { name = "pooled", pooling =
"head" }). Song et al., CVPR 2024. The parts are modules of resight.encode.networks.cider, and the network's settings
are those of its `design.py`.

`weights` names a file made by `resight train`, which also holds the design of the network; `_trainable.py` says where
weights come from without it. `network` is the torch module.
"""

from dataclasses import dataclass
from pathlib import Path

import torch

from resight.encode.backbones import About
from resight.encode.backbones._trainable import (
    Blueprint,
    TrainableBackbone,
    TrainableSettings,
    check_sources,
    find_file,
)
from resight.encode.named_networks import Cost
from resight.encode.networks.checkpoint_loader import load_weights
from resight.encode.networks.cider.backbone import make_map_backbone
from resight.encode.networks.cider.design import KEY, Design
from resight.encode.networks.cider.network import CiderNetwork, count_costs
from resight.encode.networks.torch_backbone import Outputs, Settings

TITLE = "CiDeR"
ABOUT = About(
    "CiDeR: detection and description in one network",
    2048,
    "cell of the feature map",
    "a file of your own, from `resight train`",
    "that of the training images",
    7 * 7,
)


@dataclass(frozen=True)
class Config(Design, TrainableSettings):
    def __post_init__(self) -> None:
        Settings.__post_init__(self)
        Design.__post_init__(self)
        check_sources("cider", self)


BLUEPRINT = Blueprint(Design, KEY, make_map_backbone, CiderNetwork, load_weights)


def build(config: Config) -> TrainableBackbone:
    network = make_network(config)
    return TrainableBackbone(TITLE, Reader(network), config, f"cider {network.design}")


def make_network(config: Config) -> CiderNetwork:
    """The network on the CPU, ready to train."""
    return BLUEPRINT.make_network(config)


def find_weights(config: Config) -> Path | None:
    """The file that `build` would read; None for random weights."""
    return find_file(TITLE, config)


def sketch(config: Config) -> "Reader":
    """The network without values, on torch's meta device."""
    return Reader(BLUEPRINT.sketch(config))


def count_parts(config: Config) -> list[Cost]:
    reader = sketch(config)
    return count_costs(reader.network, config.size or reader.input.size)


class Reader:
    """The Network that TorchBackbone runs."""

    def __init__(self, network: CiderNetwork) -> None:
        self.network = network
        self.module: torch.nn.Module = network
        self.input = network.trunk.input

    def run(self, planes: torch.Tensor) -> Outputs:
        seen = self.network.see(planes)
        rows, columns = seen.attention.shape[1:]
        patches = seen.maps.flatten(2).transpose(1, 2)
        return Outputs(patches, (rows, columns), attention=seen.attention.flatten(1), head=seen.descriptors)
