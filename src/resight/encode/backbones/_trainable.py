"""Backbones that resight trains (cider, landmark): how their networks are made, and the trained one as a Backbone.

`weights` names a file made by `resight train`, which also holds the design of the network. Without it, `build` makes a
network to train: its weights are random and always the same, those of its backbone come from the makers (`pretrained`)
or from a file (`backbone_weights`). An untrained network refuses to encode unless `untrained` asks for it.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

import torch

from resight.encode.networks.design_header import choose_design, read_design
from resight.encode.networks.torch_backbone import SEED, Input, Outputs, Settings, TorchBackbone
from resight.errors import MissingWeights, RecipeError
from resight.types import Features, Picture

Design = TypeVar("Design")  # a dataclass
Trunk = TypeVar("Trunk", bound=torch.nn.Module)
Network = TypeVar("Network", bound=torch.nn.Module)


@dataclass(frozen=True)
class TrainableSettings(Settings):
    pretrained: bool = False  # start from the makers' weights of the backbone, from the hub or its cache
    backbone_weights: Path | None = None  # start from the backbone's weights in this file, .safetensors or .pth

    @property
    def backbone_source(self) -> Settings:
        """Where the backbone's first weights come from."""
        return Settings(weights=self.backbone_weights, untrained=not self.pretrained and self.backbone_weights is None)

    @property
    def is_trained(self) -> bool:
        return self.untrained or self.pretrained or bool(self.weights or self.backbone_weights)


def check_sources(name: str, settings: TrainableSettings) -> None:
    sources = [settings.weights, settings.backbone_weights, settings.pretrained or None, settings.untrained or None]
    if sum(source is not None for source in sources) > 1 or settings.projection:
        raise RecipeError(
            f"the settings of {name} contradict each other",
            expected="at most one of weights, backbone_weights, pretrained and untrained; no projection",
            actual=f"weights = {settings.weights}, backbone_weights = {settings.backbone_weights}, pretrained = "
            f"{settings.pretrained}, untrained = {settings.untrained}, projection = {settings.projection}",
            fix="keep one of them",
        )


def find_file(name: str, settings: TrainableSettings) -> Path | None:
    """The file that `build` would read; None for random weights."""
    if settings.untrained:
        return None
    path = settings.weights or settings.backbone_weights
    if path is None and not settings.pretrained:
        raise refuse_untrained(name)
    if path is not None and not path.is_file():
        raise MissingWeights(
            f"there are no weights {path}",
            expected="a .safetensors or .pth file",
            actual="no such file",
            fix="check the settings `weights` and `backbone_weights`",
        )
    return path


@dataclass(frozen=True)
class Blueprint(Generic[Design, Trunk, Network]):
    """How a plug-in makes its networks. A Config has all fields of its `design`."""

    design: type[Design]
    key: str  # of the design in the header of a trained file
    make_trunk: Callable[[Design, Settings], Trunk]  # the backbone; Settings name its weights
    assemble: Callable[[Design, Trunk], Network]
    load: Callable[[Network, Path], object]  # fills a network from a file

    def make_network(self, config: TrainableSettings) -> Network:
        """The network on the CPU, ready to train."""
        network = self._make_untrained(config, config.backbone_source)
        if config.weights is not None:
            self.load(network, config.weights)
        return network.train()

    def sketch(self, config: TrainableSettings) -> Network:
        """The network without values, on torch's meta device."""
        with torch.device("meta"):
            return self._make_untrained(config, Settings(untrained=True))

    def _make_untrained(self, config: TrainableSettings, source: Settings) -> Network:
        """The network with random weights, but for its backbone's: `source` names those."""
        kind: Any = self.design
        design: Design = kind(**{field.name: getattr(config, field.name) for field in fields(kind)})
        if config.weights is not None:
            design = choose_design(design, read_design(self.design, self.key, config.weights), config.weights.name)
        trunk = self.make_trunk(design, source)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(SEED)
            return self.assemble(design, trunk)


class Readable(Protocol):
    """The Network that TorchBackbone runs, around a torch module."""

    module: torch.nn.Module
    input: Input

    def run(self, planes: torch.Tensor) -> Outputs: ...


class TrainableBackbone:
    """`network` is the torch module, ready to train."""

    def __init__(self, title: str, reader: Readable, settings: TrainableSettings, name: str) -> None:
        self._backbone = TorchBackbone(reader, replace(settings, block=None), name)  # the design holds the block
        self._is_trained = settings.is_trained
        self._title = title
        self.network = reader.module.requires_grad_(True)
        self.batch, self.max_side = self._backbone.batch, self._backbone.max_side
        self.fingerprint = self._backbone.fingerprint

    def extract(self, pictures: Sequence[Picture], scale: float = 1.0) -> Iterator[Features]:
        if not self._is_trained:
            raise refuse_untrained(self._title)
        return self._backbone.extract(pictures, scale)


def refuse_untrained(title: str) -> MissingWeights:
    return MissingWeights(
        f"this {title} network has not been trained",
        expected="the setting weights, a file made by `resight train`",
        actual="random weights",
        fix="train it, or set pretrained = true (a trained backbone alone) or untrained = true (for tests and timing)",
    )
