"""ArcFace: cross-entropy of scale · cos(angle to the centres), the angle to the true one widened by a margin.

    logit_true = scale · cos(θ + margin)          logit_other = scale · cos θ

Deng et al., CVPR 2019. Beyond θ + margin = π, cos θ − margin · sin(margin) replaces it and keeps falling, so that
the loss never rewards a worse angle. CiDeR uses a margin of 0.3 and does not state its scale.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, normalize

from resight.plugins import check_range


@dataclass(frozen=True)
class Config:
    classes: int  # number of classes; training sets it
    dimensions: int  # dimensions of the embeddings; training sets it
    margin: float = 0.3  # margin added to the angle of the true class, in radians, 0 to π
    scale: float = 30.0  # factor on the cosines before the softmax (an inverse temperature)
    seed: int = 0  # random seed of the initial class centres

    def __post_init__(self) -> None:
        check_range("margin", self.margin, 0, math.pi)
        check_range("scale", self.scale, 1e-6)


def build(config: Config) -> "ArcFace":
    return ArcFace(config)


class ArcFace(nn.Module):
    compares = False

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.config = config
        self.centres = nn.Parameter(draw_centres(config.classes, config.dimensions, config.seed))

    def forward(self, embeddings: Tensor, labels: Tensor) -> Tensor:
        cosines = normalize(embeddings) @ normalize(self.centres).T
        return cross_entropy(self.config.scale * widen(cosines, labels, self.config.margin), labels)


def widen(cosines: Tensor, labels: Tensor, margin: float) -> Tensor:
    """Cosines [B, C] with the margin added to the angle of the true class."""
    true = cosines.gather(1, labels[:, None])
    sines = (1 - true * true).clamp(min=1e-12).sqrt()  # the root of 0 has no gradient
    wider = true * math.cos(margin) - sines * math.sin(margin)
    beyond = true < math.cos(math.pi - margin)
    return cosines.scatter(1, labels[:, None], torch.where(beyond, true - margin * math.sin(margin), wider))


def draw_centres(rows: int, dimensions: int, seed: int) -> Tensor:
    return torch.randn(rows, dimensions, generator=torch.Generator().manual_seed(seed)) / math.sqrt(dimensions)
