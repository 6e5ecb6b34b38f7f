"""A ResNet that can be run in two halves, so that a head reads or changes the map between them.

In: planes [B, 3, H, W]. Out: the lower half ends with stage conv4 (a cell per 16 pixels), the upper half is conv5 (a
cell per 32 pixels); both together are the whole network.
"""

from typing import Any, Literal

import torch

from resight.encode.networks import timm_network
from resight.encode.networks.cider.backbone import TimmMapBackbone
from resight.encode.networks.torch_backbone import Settings
from resight.errors import RecipeError

LAYERS = ("conv1", "bn1", "act1", "maxpool", "layer1", "layer2", "layer3", "layer4")
Half = Literal["both", "lower", "upper"]


def make_stages(backbone: str, source: Settings) -> "ResNetStages":
    """`source` names the weights: a file, those of the network's makers, or `untrained`."""
    return ResNetStages(timm_network.load_model(backbone, source), backbone)


class ResNetStages(TimmMapBackbone):
    def __init__(self, model: Any, name: str) -> None:
        if not all(hasattr(model, layer) for layer in LAYERS):
            raise RecipeError(
                f"{name} has no stages conv4 and conv5",
                expected="a ResNet of timm, such as resnet101.tv_in1k",
                actual=f"{name}, a {type(model).__name__}",
                fix="choose a ResNet; the encoder cider takes any backbone",
            )
        super().__init__(model, None)
        self.lower_channels = int(model.feature_info[-2]["num_chs"])

    def forward(self, values: torch.Tensor, half: Half = "both") -> torch.Tensor:
        """`values` are planes, or for the upper half the map of the lower one."""
        layers = {"both": LAYERS, "lower": LAYERS[:-1], "upper": LAYERS[-1:]}[half]
        for layer in layers:
            values = getattr(self.model, layer)(values)
        return values
