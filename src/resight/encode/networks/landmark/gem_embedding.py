"""The parts that the heads of several landmark networks share.

`GeM`, maps [B, D, h, w] → [B, D], by the formula of cider/blocks.py; its exponent is fixed or learnt.

`Embedding`, vectors [B, D] → [B, dimensions]: dropout, fully connected layer, batch norm. The norm needs two images or
more at once in training, unless the trainer freezes batch norms.

A `Described` is a head's answer for a batch.
"""

from dataclasses import dataclass

import torch

from resight.encode.networks.cider.blocks import pool_generalised


@dataclass(frozen=True)
class Described:
    vectors: torch.Tensor  # [B, dimensions], not yet of unit length
    maps: torch.Tensor  # [B, D, h, w], the cells that the head pools
    attention: torch.Tensor | None = None  # [B, h, w], 0 or more; None: the network weighs its cells by none
    cls: torch.Tensor | None = None  # [B, D] of a transformer


class GeM(torch.nn.Module):
    p: torch.Tensor

    def __init__(self, p: float, learnt: bool) -> None:
        super().__init__()
        if learnt:
            self.p = torch.nn.Parameter(torch.tensor(p))
        else:
            self.register_buffer("p", torch.tensor(p), persistent=False)  # the design holds it

    def forward(self, maps: torch.Tensor) -> torch.Tensor:
        return pool_generalised(maps, self.p.clamp(min=1))


class Embedding(torch.nn.Module):
    def __init__(self, channels: int, dimensions: int, dropout: float) -> None:
        super().__init__()
        self.drop = torch.nn.Dropout(dropout)
        self.project = torch.nn.Linear(channels, dimensions)
        self.norm = torch.nn.BatchNorm1d(dimensions)

    def forward(self, vectors: torch.Tensor) -> torch.Tensor:
        normed: torch.Tensor = self.norm(self.project(self.drop(vectors)))
        return normed
