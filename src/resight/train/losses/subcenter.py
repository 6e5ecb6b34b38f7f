"""Sub-centre ArcFace: each class has several centres and the nearest one counts, so that mislabelled or rare images
gather at a centre of their own.

Deng et al., Sub-center ArcFace, ECCV 2020. With one centre per class it is ArcFace.
"""

import math
from dataclasses import dataclass

from torch import Tensor, nn
from torch.nn.functional import cross_entropy, normalize

from resight.plugins import check_range
from resight.train.losses.arcface import draw_centres, widen


@dataclass(frozen=True)
class Config:
    classes: int  # number of classes; training sets it
    dimensions: int  # dimensions of the embeddings; training sets it
    centres: int = 3  # centres per class; 1 is ArcFace
    margin: float = 0.3  # margin added to the angle of the true class, in radians, 0 to π
    scale: float = 30.0  # factor on the cosines before the softmax (an inverse temperature)
    seed: int = 0  # random seed of the initial class centres

    def __post_init__(self) -> None:
        check_range("centres", self.centres, 1)
        check_range("margin", self.margin, 0, math.pi)
        check_range("scale", self.scale, 1e-6)


def build(config: Config) -> "SubCentre":
    return SubCentre(config)


class SubCentre(nn.Module):
    compares = False

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.config = config
        self.centres = nn.Parameter(draw_centres(config.classes * config.centres, config.dimensions, config.seed))

    def forward(self, embeddings: Tensor, labels: Tensor) -> Tensor:
        cosines = normalize(embeddings) @ normalize(self.centres).T
        nearest = cosines.view(len(embeddings), self.config.classes, self.config.centres).amax(dim=2)
        return cross_entropy(self.config.scale * widen(nearest, labels, self.config.margin), labels)
