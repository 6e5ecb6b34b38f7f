"""SOLAR: every cell gathers from all others before pooling, after conv4 and again after conv5.

In: images. Out: vectors, the map after the second block, and the mean attention that a cell receives in it (each
image's sums to 1).

Second-order attention of a map f [D, N], N cells, with channels d = D/4 after conv4 and D/2 after conv5:

    q = ReLU(BN(W_q f)),  k = ReLU(BN(W_k f)),  v = W_v f        1 × 1 convolutions to d channels
    A = softmax(qᵀ k / √d)                                       over the cells k, [N, N]
    f' = f + W_o (v Aᵀ)                                          back to D channels

    descriptor = W L2(GeM(f')) + b                               the whitening, a layer learnt with the rest

Ng et al., SOLAR: Second-Order Loss and Attention for Image Retrieval, ECCV 2020. The paper omits norms, ReLU and
channels for brevity and refers to its code; these are the code's. W_o starts at 0, so that a block starts as the
identity. The second half of SOLAR, its loss on distances within a batch, is not part of the network: CiDeR's tables
train every network by ArcFace.
"""

import torch
from torch.nn import functional

from resight.encode.networks.landmark.gem_embedding import Described, GeM
from resight.encode.networks.landmark.landmark_design import Design
from resight.encode.networks.landmark.resnet_stages import ResNetStages


class SolarHead(torch.nn.Module):
    def __init__(self, design: Design, backbone: ResNetStages) -> None:
        super().__init__()
        self.attention4 = SecondOrderAttention(backbone.lower_channels, 4)
        self.attention5 = SecondOrderAttention(backbone.channels, 2)
        self.pool = GeM(design.p, learnt=True)
        self.whiten = torch.nn.Linear(backbone.channels, design.dimensions)
        self._dropout = design.drop_share

    def forward(self, backbone: ResNetStages, images: torch.Tensor) -> Described:
        lower, _ = self.attention4(backbone(images, "lower"))
        maps, attention = self.attention5(backbone(lower, "upper"))
        pooled = functional.normalize(self.pool(maps), dim=1)
        vectors = self.whiten(functional.dropout(pooled, self._dropout, self.training))
        return Described(vectors, maps, attention)


class SecondOrderAttention(torch.nn.Module):
    def __init__(self, channels: int, reduction: int) -> None:
        super().__init__()
        inner = channels // reduction
        self.query = convolve_point(channels, inner)
        self.key = convolve_point(channels, inner)
        self.value = torch.nn.Conv2d(channels, inner, 1)
        self.back = torch.nn.Conv2d(inner, channels, 1)
        for start in self.back.parameters():
            torch.nn.init.zeros_(start)

    def forward(self, maps: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """The new maps [B, D, h, w] and the attention that each cell receives [B, h, w]."""
        queries, keys, values = (part(maps).flatten(2) for part in (self.query, self.key, self.value))
        weights = torch.softmax(queries.transpose(1, 2) @ keys / queries.shape[1] ** 0.5, dim=-1)  # [B, N, N]
        gathered = (values @ weights.transpose(1, 2)).reshape(len(maps), -1, *maps.shape[2:])
        return maps + self.back(gathered), weights.mean(dim=1).reshape(len(maps), *maps.shape[2:])


def convolve_point(channels: int, outputs: int) -> torch.nn.Sequential:
    return torch.nn.Sequential(torch.nn.Conv2d(channels, outputs, 1), torch.nn.BatchNorm2d(outputs), torch.nn.ReLU())
