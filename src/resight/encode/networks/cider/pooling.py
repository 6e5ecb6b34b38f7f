"""Spatial pooling f^p: one vector a map, then a fully connected layer.

In: [B, D, h, w]. Out: [B, dimensions], not yet of unit length.

    gem    ((1/N) Σ max(x, 1e-6)^p)^(1/p), each channel by itself, p learnt and 1 or more
           (Radenović et al., TPAMI 2019)
    mean   global average pooling
    max    the largest value of each channel
"""

import torch

from resight.encode.networks.cider.design import Pooling

SMALLEST = 1e-6


class Pool(torch.nn.Module):
    def __init__(self, kind: Pooling, p: float, channels: int, dimensions: int | None) -> None:
        super().__init__()
        self._kind = kind
        self.p = torch.nn.Parameter(torch.tensor(p)) if kind == "gem" else None
        self.project = torch.nn.Identity() if dimensions is None else torch.nn.Linear(channels, dimensions)

    def forward(self, maps: torch.Tensor) -> torch.Tensor:
        vectors: torch.Tensor = self.project(self._pool(maps))
        return vectors

    def _pool(self, maps: torch.Tensor) -> torch.Tensor:
        if self.p is not None:
            return pool_generalised(maps, self.p.clamp(min=1))
        return maps.mean(dim=(2, 3)) if self._kind == "mean" else maps.amax(dim=(2, 3))


def pool_generalised(maps: torch.Tensor, p: torch.Tensor) -> torch.Tensor:
    # In half precision the third power of a large activation overflows.
    powers = maps.float().clamp(min=SMALLEST) ** p.float()
    return (powers.mean(dim=(2, 3)) ** (1 / p.float())).to(maps.dtype)
