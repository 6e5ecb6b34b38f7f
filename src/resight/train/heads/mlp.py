"""A projection and a layer beside it: y = L2((x - mean) skip + max(0, (x - mean) hidden + shift) output).

`output` starts at zero, so that the layer gains influence as it learns.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from resight.plugins import check_range
from resight.train.heads import Head
from resight.types import FloatArray


@dataclass(frozen=True)
class Config:
    dimensions: int = 128  # dimensions of the output, at most those of the input
    hidden: int = 512  # units of the hidden layer

    def __post_init__(self) -> None:
        check_range("dimensions", self.dimensions, 1, 65_536)
        check_range("hidden", self.hidden, 1, 65_536)


def build(config: Config, mean: FloatArray, directions: FloatArray) -> "Mlp":
    return Mlp(mean, directions, config.hidden)


class Mlp(Head):
    def __init__(self, mean: FloatArray, directions: FloatArray, hidden: int) -> None:
        super().__init__(mean, directions)
        width, dimensions = directions.shape
        self.hidden = nn.Parameter(torch.randn(width, hidden) * (2 / width) ** 0.5)
        self.shift = nn.Parameter(torch.zeros(hidden))
        self.output = nn.Parameter(torch.zeros(hidden, dimensions))

    def project(self, rows: Tensor) -> Tensor:
        return super().project(rows) + torch.relu(rows @ self.hidden + self.shift) @ self.output
