"""Backbone enhancement f^e: every cell of the feature map re-weighted or added to by what the whole map shows.

In and out: [B, D, h, w]. One block behind the backbone, as the paper plugs it in:

    se             x · σ(W₂ ReLU(W₁ mean(x))), W₁ to D / reduction channels   Hu et al., CVPR 2018
    eca            x · σ(conv1d(mean(x))), over neighbouring channels         Wang et al., CVPR 2020
    nonlocal       x + W softmax(θ(x)ᵀ φ(x)) g(x), embedded Gaussian          Wang et al., CVPR 2018
    gather_excite  x · σ(mean of x around the cell), without parameters       Hu et al., NeurIPS 2018
"""

import math
from collections.abc import Callable

import torch
from torch.nn import functional

from resight.encode.networks.cider.design import Enhancement

EXTENT = 8  # cells from the middle to the edge of what gather-excite gathers


def make_enhancement(kind: Enhancement, channels: int, reduction: int) -> torch.nn.Module:
    made: dict[Enhancement, Callable[[], torch.nn.Module]] = {
        "none": torch.nn.Identity,
        "se": lambda: SqueezeExcite(channels, reduction),
        "eca": lambda: EfficientChannelAttention(channels),
        "nonlocal": lambda: NonLocal(channels),
        "gather_excite": GatherExcite,
    }
    return made[kind]()


class SqueezeExcite(torch.nn.Module):
    def __init__(self, channels: int, reduction: int) -> None:
        super().__init__()
        inner = max(channels // reduction, 1)
        self.squeeze = torch.nn.Linear(channels, inner)
        self.excite = torch.nn.Linear(inner, channels)

    def forward(self, maps: torch.Tensor) -> torch.Tensor:
        gates = torch.sigmoid(self.excite(functional.relu(self.squeeze(maps.mean(dim=(2, 3))))))
        return maps * gates[:, :, None, None]


class EfficientChannelAttention(torch.nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        width = int((math.log2(channels) + 1) / 2) | 1  # odd; as the authors choose it, γ = 2 and b = 1
        self.neighbours = torch.nn.Conv1d(1, 1, width, padding=width // 2, bias=False)

    def forward(self, maps: torch.Tensor) -> torch.Tensor:
        gates = torch.sigmoid(self.neighbours(maps.mean(dim=(2, 3))[:, None]))
        return maps * gates[:, 0, :, None, None]


class NonLocal(torch.nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        inner = max(channels // 2, 1)
        self.query = torch.nn.Conv2d(channels, inner, 1)
        self.key = torch.nn.Conv2d(channels, inner, 1)
        self.value = torch.nn.Conv2d(channels, inner, 1)
        self.back = torch.nn.Conv2d(inner, channels, 1, bias=False)
        self.norm = torch.nn.BatchNorm2d(channels)
        torch.nn.init.zeros_(self.norm.weight)  # it starts as the identity, so that a trained backbone stays what it is

    def forward(self, maps: torch.Tensor) -> torch.Tensor:
        queries, keys, values = (part(maps).flatten(2) for part in (self.query, self.key, self.value))
        weights = torch.softmax(queries.transpose(1, 2) @ keys, dim=-1)  # [B, cells, cells]
        gathered = (values @ weights.transpose(1, 2)).reshape(len(maps), -1, *maps.shape[2:])
        added: torch.Tensor = self.norm(self.back(gathered))
        return maps + added


class GatherExcite(torch.nn.Module):
    def forward(self, maps: torch.Tensor) -> torch.Tensor:
        gathered = functional.avg_pool2d(maps, 2 * EXTENT - 1, stride=1, padding=EXTENT - 1, count_include_pad=False)
        return maps * torch.sigmoid(gathered)
