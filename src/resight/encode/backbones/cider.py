"""CiDeR: finds the object of interest in a picture and describes it in one pass; it needs no boxes to learn from.

In: pictures. Out: Features with `grid`; `patches` are the cells after the selective context, `attention` is the map of
the attentional localisation in 0..1, `head` the network's descriptor (descriptor = { name = "pooled", pooling =
"head" }). Song et al., CVPR 2024. The parts are modules of resight.encode.networks.cider, and the network's settings
are those of its `design.py`.

`weights` names a file made by `resight train`, which also holds the design of the network. Without it, `build` makes a
network to train: its weights are random and always the same, those of its backbone come from the makers (`pretrained`)
or from a file (`backbone_weights`). An untrained network refuses to encode unless `untrained` asks for it. `network` is
the torch module.
"""

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from resight.encode.backbones import About
from resight.encode.named_networks import Cost
from resight.encode.networks.checkpoint_loader import load_weights
from resight.encode.networks.cider.backbone import make_map_backbone
from resight.encode.networks.cider.design import Design, choose_design, read_design
from resight.encode.networks.cider.network import CiderNetwork, count_costs
from resight.encode.networks.torch_backbone import SEED, Outputs, Settings, TorchBackbone
from resight.errors import MissingWeights, RecipeError
from resight.types import Features, Picture

ABOUT = About(
    "CiDeR: detection and description in one network",
    2048,
    "cell of the feature map",
    "a file of your own, from `resight train`",
    "that of the training images",
    7 * 7,
)


@dataclass(frozen=True)
class Config(Design, Settings):
    pretrained: bool = False  # start from the makers' weights of the backbone, from the hub or its cache
    backbone_weights: Path | None = None  # start from the backbone's weights in this file, .safetensors or .pth

    def __post_init__(self) -> None:
        Settings.__post_init__(self)
        Design.__post_init__(self)
        sources = [self.weights, self.backbone_weights, self.pretrained or None, self.untrained or None]
        if sum(source is not None for source in sources) > 1 or self.projection:
            raise RecipeError(
                "the settings of cider contradict each other",
                expected="at most one of weights, backbone_weights, pretrained and untrained; no projection",
                actual=f"weights = {self.weights}, backbone_weights = {self.backbone_weights}, pretrained = "
                f"{self.pretrained}, untrained = {self.untrained}, projection = {self.projection}",
                fix="keep one of them",
            )

    @property
    def design(self) -> Design:
        return Design(**{field.name: getattr(self, field.name) for field in dataclasses.fields(Design)})


def build(config: Config) -> "Cider":
    return Cider(make_network(config), config)


def make_network(config: Config) -> CiderNetwork:
    """The network on the CPU, ready to train."""
    design = config.design
    if config.weights is not None:
        design = choose_design(design, read_design(config.weights), config.weights.name)
    source = Settings(
        weights=config.backbone_weights, untrained=not config.pretrained and config.backbone_weights is None
    )
    backbone = make_map_backbone(design, source)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(SEED)
        network = CiderNetwork(design, backbone)
    if config.weights is not None:
        load_weights(network, config.weights)
    return network.train()


def find_weights(config: Config) -> Path | None:
    """The file that `build` would read; None for random weights."""
    if config.untrained:
        return None
    path = config.weights or config.backbone_weights
    if path is None and not config.pretrained:
        raise refuse_untrained()
    if path is not None and not path.is_file():
        raise MissingWeights(
            f"there are no weights {path}",
            expected="a .safetensors or .pth file",
            actual="no such file",
            fix="check the settings `weights` and `backbone_weights`",
        )
    return path


def count_parts(config: Config) -> list[Cost]:
    network = make_network(config)
    return count_costs(network, config.size or network.trunk.input.size)


class Cider:
    def __init__(self, network: CiderNetwork, config: Config) -> None:
        settings = replace(config, block=None)  # the design holds it
        self._backbone = TorchBackbone(Reader(network), settings, f"cider {network.design}")
        self._is_trained = config.untrained or config.pretrained or bool(config.weights or config.backbone_weights)
        self.network = network.requires_grad_(True)
        self.batch, self.max_side = self._backbone.batch, self._backbone.max_side
        self.fingerprint = self._backbone.fingerprint

    def extract(self, pictures: Sequence[Picture], scale: float = 1.0) -> Iterator[Features]:
        if not self._is_trained:
            raise refuse_untrained()
        return self._backbone.extract(pictures, scale)


class Reader:
    """The Network that TorchBackbone runs."""

    def __init__(self, network: CiderNetwork) -> None:
        self.module: torch.nn.Module = network
        self.input = network.trunk.input
        self._see = network.see

    def run(self, planes: torch.Tensor) -> Outputs:
        seen = self._see(planes)
        rows, columns = seen.attention.shape[1:]
        patches = seen.maps.flatten(2).transpose(1, 2)
        return Outputs(patches, (rows, columns), attention=seen.attention.flatten(1), head=seen.descriptors)


def refuse_untrained() -> MissingWeights:
    return MissingWeights(
        "this CiDeR network has not been trained",
        expected="the setting weights, a file made by `resight train`",
        actual="random weights",
        fix="train it, or set pretrained = true (a trained backbone alone) or untrained = true (for tests and timing)",
    )
