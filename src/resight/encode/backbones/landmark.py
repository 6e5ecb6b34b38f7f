"""Networks that CiDeR's tables compare it with, in the same frame: GeM of Yokoo et al., SOLAR, GLAM, DOLG and Token.

In: pictures. Out: Features with `grid`; `patches` are the cells that the network pools, `head` is its descriptor
(descriptor = { name = "pooled", pooling = "head" }), `attention` the network's own weight of each cell: solar, dolg.
The backbone is a ResNet of timm. `design` selects the network; resight.encode.networks.landmark holds one per file.

    encoder = { name = "landmark", design = "solar", backbone = "resnet101.tv_in1k", pretrained = true }

`weights` names a file made by `resight train`, which also holds the design of the network, or one that the authors'
code has saved (published_layouts.py). `_trainable.py` says where weights come from without it. `network` is the torch
module.
"""

import dataclasses
from dataclasses import dataclass
from pathlib import Path

import torch

from resight.encode.backbones import About
from resight.encode.backbones._trainable import TrainableBackbone, TrainableSettings, check_sources, find_file
from resight.encode.named_networks import Cost
from resight.encode.networks.design_header import choose_design, read_design
from resight.encode.networks.flops import count_costs
from resight.encode.networks.landmark.landmark_design import KEY, Design
from resight.encode.networks.landmark.landmark_network import LandmarkNetwork
from resight.encode.networks.landmark.published_layouts import load_landmark_weights
from resight.encode.networks.landmark.resnet_stages import make_stages
from resight.encode.networks.torch_backbone import SEED, Outputs, Settings
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

    @property
    def network_design(self) -> Design:
        return Design(**{field.name: getattr(self, field.name) for field in dataclasses.fields(Design)})


def build(config: Config) -> TrainableBackbone:
    network = make_network(config)
    return TrainableBackbone(TITLE, Reader(network), config, f"landmark {network.design}")


def make_network(config: Config) -> LandmarkNetwork:
    """The network on the CPU, ready to train."""
    network = make_untrained(config, config.backbone_source)
    if config.weights is not None:
        load_landmark_weights(network, config.weights)
    return network.train()


def make_untrained(config: Config, source: Settings) -> LandmarkNetwork:
    """The network with random weights, but for its backbone's: `source` names those."""
    design = config.network_design
    if config.weights is not None:
        design = choose_design(design, read_design(Design, KEY, config.weights), config.weights.name)
    backbone = make_stages(design.backbone, source)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(SEED)
        return LandmarkNetwork(design, backbone)


def find_weights(config: Config) -> Path | None:
    """The file that `build` would read; None for random weights."""
    return find_file(TITLE, config)


def sketch(config: Config) -> "Reader":
    """The network without values, on torch's meta device."""
    with torch.device("meta"):
        return Reader(make_untrained(config, Settings(untrained=True)))


def count_parts(config: Config) -> list[Cost]:
    network = sketch(config).network
    return count_costs(network, network.components, config.size or network.trunk.input.size)


class Reader:
    """The Network that TorchBackbone runs."""

    def __init__(self, network: LandmarkNetwork) -> None:
        self.network = network
        self.module: torch.nn.Module = network
        self.input = network.trunk.input

    def run(self, planes: torch.Tensor) -> Outputs:
        seen = self.network.see(planes)
        rows, columns = seen.maps.shape[2:]
        attention = None if seen.attention is None else seen.attention.flatten(1)
        return Outputs(
            seen.maps.flatten(2).transpose(1, 2), (rows, columns), attention=attention, head=seen.descriptors
        )
