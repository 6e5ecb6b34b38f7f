"""The baseline of GLDv2's winners: GeM, a fully connected layer and batch norm.

    v = BN(W GeM(F) + b),   GeM(F)_c = ((1/N) Σ F_c^p)^(1/p),  p = 3 and fixed

In: images. Out: vectors and the ResNet's last map F. Yokoo et al., Two-stage Discriminative Re-ranking for Large-scale
Landmark Retrieval, CVPRW 2020. They train it by ArcFace with 512 dimensions. Their code draws W by Xavier's normal
rule and starts b at 0, as here.
"""

import torch

from resight.encode.networks.landmark.gem_embedding import Described, Embedding, GeM
from resight.encode.networks.landmark.landmark_design import Design
from resight.encode.networks.landmark.resnet_stages import ResNetStages


class GemHead(torch.nn.Module):
    def __init__(self, design: Design, backbone: ResNetStages) -> None:
        super().__init__()
        self.pool = GeM(design.p, learnt=False)
        self.embed = Embedding(backbone.channels, design.dimensions, design.drop_share)
        torch.nn.init.xavier_normal_(self.embed.project.weight)
        torch.nn.init.zeros_(self.embed.project.bias)

    def forward(self, backbone: ResNetStages, images: torch.Tensor) -> Described:
        maps = backbone(images)
        return Described(self.embed(self.pool(maps)), maps)
