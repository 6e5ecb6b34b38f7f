"""Networks of one vector per image with their authors' weights: for copies, for places and for landmarks.

In: pictures. Out: Features with `grid`; `patches` are the cells that the network's head reads, `head` is its descriptor
(descriptor = { name = "pooled", pooling = "head" }); `attention` of boq, salad, megaloc and delg; `cls` of salad and
megaloc. delg's patches are its local features.

    encoder = { name = "place", model = "megaloc" }                              or simply encoder = "megaloc"
    encoder = { name = "place", model = "cosplace", weights = "ResNet18_512_cosplace.pth" }

Weights are downloaded once, where the authors publish them at an address (networks/releases.py), and cached; or
they come from `weights`, a file that the authors published or their code saved. Backbone and sizes are those of the
file. A file may be a .safetensors, or a pickle of tensors, which is read with torch's weights_only; of a TorchScript
file resight reads the tensors, by a reader that runs nothing in it.
"""

from dataclasses import dataclass
from pathlib import Path

import torch

from resight.encode.backbones import About
from resight.encode.named_networks import Cost
from resight.encode.networks import releases
from resight.encode.networks.flops import count_costs
from resight.encode.networks.landmark.landmark_network import MapReader
from resight.encode.networks.place.place_design import BACKBONES, Name, choose_design
from resight.encode.networks.place.place_layouts import load_network
from resight.encode.networks.place.place_network import PlaceNetwork, make_network
from resight.encode.networks.torch_backbone import Settings, TorchBackbone
from resight.errors import MissingWeights, RecipeError

ABOUT = About(
    "networks for places, copies, landmarks",
    0,
    "patch, or cell of the feature map",
    "their authors' pages, or a file of your own",
    "each network's own",
)


@dataclass(frozen=True)
class Config(Settings):
    model: Name = "megaloc"  # sscd, cosplace, eigenplaces, mixvpr, boq, salad, megaloc, delg or superglobal
    release: str | None = None  # file of the authors' release to download, by name; None: the usual one
    backbone: str | None = None  # backbone of random weights, and what a file must have; None: any

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.block is not None or self.projection:
            raise RecipeError(
                "a place network has no other block or projection",
                expected="neither block nor projection: the head reads certain layers",
                actual=f"block = {self.block}, projection = {self.projection}",
                fix="leave them out; timm and transformers have both settings",
            )
        if self.release is not None:
            releases.check_file(self.release)
        if self.backbone is not None and self.backbone not in BACKBONES[self.model]:
            raise RecipeError(
                f"{self.model} does not run on {self.backbone}",
                expected=f"backbone one of {', '.join(BACKBONES[self.model])}",
                actual=repr(self.backbone),
                fix="leave it out: a weights file knows its backbone",
            )


def build(config: Config) -> TorchBackbone:
    return TorchBackbone(MapReader(load(config)), config, f"place {config.model}")


def load(config: Config) -> PlaceNetwork:
    if config.untrained:
        return make_network(choose_design(config.model, config.backbone))
    network = load_network(config.model, config.weights or releases.fetch(config.model, config.release))
    if config.backbone not in (None, network.design.backbone):
        raise RecipeError(
            f"the weights of {config.model} have another backbone",
            expected=f"backbone = {network.design.backbone!r}",
            actual=repr(config.backbone),
            fix="leave the setting out: the file knows its backbone",
        )
    return network


def find_weights(config: Config) -> Path | None:
    """The file that `build` would read, found without a network; None for random weights."""
    if config.untrained:
        return None
    if config.weights is None:
        found = releases.find(config.model, config.release)
        if found is None:
            raise releases.refuse_absent(config.model, config.release)
        return found
    if not config.weights.is_file():
        raise MissingWeights(
            f"there are no weights {config.weights}",
            expected=f"a file of {config.model}: {releases.describe(config.model, config.release)}",
            actual="no such file",
            fix="check the setting `weights`",
        )
    return config.weights


def count_parts(config: Config) -> list[Cost]:
    with torch.device("meta"):
        network = make_network(choose_design(config.model, config.backbone))
    return count_costs(network, network.components, config.size or network.trunk.input.size)
