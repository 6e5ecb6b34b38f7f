"""DOLG: the part of the local features that the global vector does not have yet, and that vector, side by side.

In: images. Out: vectors, the ResNet's last map, and the attention of the local branch, averaged over its cells.

    f_g = W_g GeM(F_5) + b_g                                  F_5: map of conv5; c_4 channels, those of conv4
    L   = BN(conv1x1(M(F_4)))                                 M: the dilated convolutions below
    f_l(cell) = softplus(conv1x1(ReLU(L))) · L / |L|
    f_o(cell) = f_l − (f_l · f_g / |f_g|²) f_g                the component orthogonal to f_g
    v = W [f_g, mean over cells of f_o] + b

    M(F) = ReLU(conv1x1([mean of F, conv1x1(F), conv3x3 dilated by 6, 12, 18 (F)])), each branch with 512 channels

Yang et al., DOLG: Single-Stage Image Retrieval with Deep Orthogonal Fusion of Local and Global Features, ICCV 2021.
Readings: the authors' code, which concatenates after pooling (in the paper f_g is laid over every cell and then
averaged, which is the same). The code makes M optional and leaves it out at first; the paper has it. `atrous = false`
leaves it out. c_4 channels inside M's output and the attention, as both have for a ResNet101 (1024).
"""

import torch
from torch.nn import functional

from resight.encode.networks.landmark.gem_embedding import Described, GeM
from resight.encode.networks.landmark.landmark_design import Design
from resight.encode.networks.landmark.resnet_stages import ResNetStages

DILATIONS = (6, 12, 18)


class DolgHead(torch.nn.Module):
    def __init__(self, design: Design, backbone: ResNetStages) -> None:
        super().__init__()
        channels = backbone.lower_channels
        self.local = LocalBranch(channels, design.atrous)
        self.pool = GeM(design.p, learnt=True)
        self.reduce = torch.nn.Linear(backbone.channels, channels)
        self.project = torch.nn.Linear(2 * channels, design.dimensions)
        self._dropout = design.drop_share

    def forward(self, backbone: ResNetStages, images: torch.Tensor) -> Described:
        lower = backbone(images, "lower")
        maps = backbone(lower, "upper")
        features, scores = self.local(lower)
        vectors = self.reduce(self.pool(maps))
        orthogonal = remove_projection(features, vectors).mean(dim=(2, 3))
        fused = torch.cat([vectors, orthogonal], dim=1)
        attention = functional.adaptive_avg_pool2d(scores, maps.shape[2:])[:, 0]
        return Described(self.project(functional.dropout(fused, self._dropout, self.training)), maps, attention)


class LocalBranch(torch.nn.Module):
    def __init__(self, channels: int, atrous: bool) -> None:
        super().__init__()
        self.context = AtrousContext(channels) if atrous else torch.nn.Identity()
        self.reduce = torch.nn.Conv2d(channels, channels, 1)
        self.norm = torch.nn.BatchNorm2d(channels)
        self.score = torch.nn.Conv2d(channels, 1, 1)

    def forward(self, maps: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Local features [B, c, h, w] and the attention of each cell [B, 1, h, w]."""
        features = self.norm(self.reduce(self.context(maps)))
        scores = functional.softplus(self.score(functional.relu(features)))
        return scores * functional.normalize(features, dim=1), scores


class AtrousContext(torch.nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        width = channels // 2  # 512 of a ResNet101
        self.whole = torch.nn.Conv2d(channels, width, 1)
        self.point = torch.nn.Conv2d(channels, width, 1)
        self.dilated = torch.nn.ModuleList(
            torch.nn.Conv2d(channels, width, 3, padding=rate, dilation=rate) for rate in DILATIONS
        )
        self.join = torch.nn.Conv2d(width * (len(DILATIONS) + 2), channels, 1)

    def forward(self, maps: torch.Tensor) -> torch.Tensor:
        whole = functional.relu(self.whole(maps.mean(dim=(2, 3), keepdim=True))).expand(-1, -1, *maps.shape[2:])
        branches = [whole, self.point(maps), *(branch(maps) for branch in self.dilated)]
        return functional.relu(self.join(torch.cat(branches, dim=1)))


def remove_projection(features: torch.Tensor, vectors: torch.Tensor) -> torch.Tensor:
    """Features [B, c, h, w] without their component along vectors [B, c]."""
    directions = functional.normalize(vectors, dim=1)[:, :, None, None]
    return features - (features * directions).sum(dim=1, keepdim=True) * directions
