"""CosFace: cross-entropy of scale · cos(angle to the centres), with the margin taken off the true cosine.

    logit_true = scale · (cos θ − margin)         logit_other = scale · cos θ

Wang et al., CVPR 2018.
"""

from dataclasses import dataclass

from torch import Tensor, nn
from torch.nn.functional import cross_entropy, normalize, one_hot

from resight.plugins import check_range
from resight.train.losses.arcface import draw_centres


@dataclass(frozen=True)
class Config:
    classes: int  # number of classes; training sets it
    dimensions: int  # dimensions of the embeddings; training sets it
    margin: float = 0.3  # margin subtracted from the cosine of the true class, 0 to 2
    scale: float = 30.0  # factor on the cosines before the softmax (an inverse temperature)
    seed: int = 0  # random seed of the initial class centres

    def __post_init__(self) -> None:
        check_range("margin", self.margin, 0, 2)
        check_range("scale", self.scale, 1e-6)


def build(config: Config) -> "CosFace":
    return CosFace(config)


class CosFace(nn.Module):
    compares = False

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.config = config
        self.centres = nn.Parameter(draw_centres(config.classes, config.dimensions, config.seed))

    def forward(self, embeddings: Tensor, labels: Tensor) -> Tensor:
        cosines = normalize(embeddings) @ normalize(self.centres).T
        taken = self.config.margin * one_hot(labels, self.config.classes)
        return cross_entropy(self.config.scale * (cosines - taken), labels)
