"""A comparison network as a whole: images → one descriptor each.

In: planes [B, 3, H, W] float32, prepared by the backbone's `input`. Out: descriptors [B, dimensions] of unit length. A
head runs the backbone itself, because SOLAR changes and DOLG reads the map in its middle. The network trains as a whole
(the trainer's stage `all`), by the recipe of CiDeR. MapNetwork is its frame, which the networks of ../place share.
"""

from dataclasses import dataclass

import torch
from torch.nn import functional

from resight.encode.networks.cider.backbone import MapBackbone
from resight.encode.networks.landmark.dolg import DolgHead
from resight.encode.networks.landmark.gem import GemHead
from resight.encode.networks.landmark.gem_embedding import Described
from resight.encode.networks.landmark.glam import GlamHead
from resight.encode.networks.landmark.landmark_design import Design, Name
from resight.encode.networks.landmark.resnet_stages import ResNetStages
from resight.encode.networks.landmark.solar import SolarHead
from resight.encode.networks.landmark.visual_tokens import TokenHead
from resight.encode.networks.torch_backbone import Outputs

HEADS: dict[Name, type[torch.nn.Module]] = {
    "gem": GemHead,
    "solar": SolarHead,
    "glam": GlamHead,
    "dolg": DolgHead,
    "token": TokenHead,
}


@dataclass(frozen=True)
class Seen:
    """The network's output for a batch."""

    descriptors: torch.Tensor  # [B, dimensions] of unit length
    maps: torch.Tensor  # [B, D, h, w]
    attention: torch.Tensor | None  # [B, h, w], 0 or more
    cls: torch.Tensor | None = None  # [B, D] of a transformer


class MapNetwork(torch.nn.Module):
    """A backbone and a head that runs it."""

    trunk: MapBackbone
    head: torch.nn.Module

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.see(images).descriptors

    def see(self, images: torch.Tensor) -> Seen:
        one: Described = self.head(self.trunk, images)
        return Seen(functional.normalize(one.vectors, dim=1), one.maps, one.attention, one.cls)

    @property
    def components(self) -> dict[str, torch.nn.Module]:
        """The backbone and the parts of the head, by name."""
        return {"backbone": self.trunk, **dict(self.head.named_children())}


class MapReader:
    """The Network that TorchBackbone runs, around a MapNetwork."""

    def __init__(self, network: MapNetwork) -> None:
        self.network = network
        self.module: torch.nn.Module = network
        self.input = network.trunk.input

    def run(self, planes: torch.Tensor) -> Outputs:
        seen = self.network.see(planes)
        rows, columns = seen.maps.shape[2:]
        attention = None if seen.attention is None else seen.attention.flatten(1)
        return Outputs(
            seen.maps.flatten(2).transpose(1, 2), (rows, columns), seen.cls, attention, head=seen.descriptors
        )


class LandmarkNetwork(MapNetwork):
    def __init__(self, design: Design, backbone: ResNetStages) -> None:
        super().__init__()
        self.design = design
        self.trunk = backbone
        self.head = HEADS[design.design](design, backbone)
