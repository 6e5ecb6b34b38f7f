"""Batch-hard triplets: each image against the farthest of its class and the nearest of all others in the batch.

    mean over images of max(0, margin + distance to the farthest same − distance to the nearest other)

Hermans et al., In Defense of the Triplet Loss, 2017. Distances are Euclidean, of normalised embeddings. Images without
a second of their class, or without any other class, in the batch are left out; 0 where all are.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from resight.plugins import check_range


@dataclass(frozen=True)
class Config:
    margin: float = 0.3  # by how much the nearest other class must be farther than the farthest same, 0 to 2

    def __post_init__(self) -> None:
        check_range("margin", self.margin, 0, 2)


def build(config: Config) -> "Triplet":
    return Triplet(config)


class Triplet(nn.Module):
    compares = True

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.config = config

    def forward(self, embeddings: Tensor, labels: Tensor) -> Tensor:
        rows = normalize(embeddings)
        distances = (2 - 2 * rows @ rows.T).clamp(min=1e-12).sqrt()  # the root of 0 has no gradient
        alike = labels[:, None] == labels[None]
        same = alike & ~torch.eye(len(rows), dtype=torch.bool, device=rows.device)
        used = same.any(dim=1) & ~alike.all(dim=1)
        farthest = distances.masked_fill(~same, -torch.inf).amax(dim=1)[used]
        nearest = distances.masked_fill(alike, torch.inf).amin(dim=1)[used]
        losses = (self.config.margin + farthest - nearest).clamp(min=0)
        return losses.sum() / max(len(losses), 1) + 0 * rows.sum()  # a gradient of zeros where no triplet is left
