"""GLAM: four attentions over the ResNet's last map, local and global, over channels and over space.

In: images. Out: vectors and the fused map. For a map F of c channels and N cells, c' = `width`:

local     A_c = σ(conv1d(mean F))                             over 3 neighbouring channels, as ECA-Net; [c]
          F' = conv1x1(F), to c'
          A_s = conv1x1([conv1x1(F'), conv3x3 dilated by 1, 2, 3 (F')])     from 4c' channels to one; [N]
          F_c = F ⊙ A_c + F                                   (1)
          F^l = F_c ⊙ A_s + F_c                               (2)
global    Q_c, K_c = σ(conv1d(mean F))                        one convolution each; [c]
          A_c = softmax(K_cᵀ Q_c),  G_c = F A_c               (3)  [c, c]
          A_s = softmax(K_sᵀ Q_s),  G_s = conv1x1(V_s A_s)    (4)  [N, N]; Q_s, K_s, V_s by conv1x1 to c'
          F_c = F ⊙ G_c                                       (5)
          F^g = F_c ⊙ G_s + F_c                               (6)
fusion    F^gl = w_l F^l + w_g F^g + w F                      (7)  w: softmax of three learnt numbers
          v = BN(W GeM(F^gl) + b)

Song et al., All the Attention You Need: Global-Local, Spatial-Channel Attention for Image Retrieval, WACV 2022. No code
of the authors is known, so that no checkpoint can be compared. Readings of resight, where the equations leave room: a
column of a global A sums to 1, so that every channel or cell of F A is a weighted mean; a local A_s has no activation;
convolutions over space have biases and no norm, those over channels neither; c' = 512, and no dropout before W.
"""

import torch

from resight.encode.networks.landmark.gem_embedding import Described, Embedding, GeM
from resight.encode.networks.landmark.landmark_design import Design
from resight.encode.networks.landmark.resnet_stages import ResNetStages

NEIGHBOURS = 3  # channels that a convolution over channels sees
DILATIONS = (1, 2, 3)  # 3 × 3 convolutions that see 3, 5 and 7 cells


class GlamHead(torch.nn.Module):
    def __init__(self, design: Design, backbone: ResNetStages) -> None:
        super().__init__()
        self.attention = GlobalLocalAttention(backbone.channels, design.width)
        self.pool = GeM(design.p, learnt=True)
        self.embed = Embedding(backbone.channels, design.dimensions, design.drop_share)

    def forward(self, backbone: ResNetStages, images: torch.Tensor) -> Described:
        maps = self.attention(backbone(images))
        return Described(self.embed(self.pool(maps)), maps)


class GlobalLocalAttention(torch.nn.Module):
    def __init__(self, channels: int, width: int) -> None:
        super().__init__()
        self.local_channels = convolve_channels()
        self.local_space = LocalSpace(channels, width)
        self.query_channels = convolve_channels()
        self.key_channels = convolve_channels()
        self.global_space = GlobalSpace(channels, width)
        self.fusion = torch.nn.Parameter(torch.zeros(3))  # of F^l, F^g and F

    def forward(self, maps: torch.Tensor) -> torch.Tensor:
        means = maps.mean(dim=(2, 3))[:, None]  # [B, 1, c]
        shares = torch.softmax(self.fusion, dim=0)
        return shares[0] * self._look_near(maps, means) + shares[1] * self._look_far(maps, means) + shares[2] * maps

    def _look_near(self, maps: torch.Tensor, means: torch.Tensor) -> torch.Tensor:
        gates = torch.sigmoid(self.local_channels(means))[:, 0, :, None, None]
        weighed = maps * gates + maps
        near: torch.Tensor = self.local_space(maps)
        return weighed * near + weighed

    def _look_far(self, maps: torch.Tensor, means: torch.Tensor) -> torch.Tensor:
        queries, keys = (torch.sigmoid(part(means)) for part in (self.query_channels, self.key_channels))
        weights = torch.softmax(keys.transpose(1, 2) @ queries, dim=1)  # [B, c, c]
        mixed = weights.transpose(1, 2) @ maps.flatten(2)  # (F A)ᵀ: [B, c, N]
        weighed = maps * mixed.reshape(maps.shape)
        far: torch.Tensor = self.global_space(maps)
        return weighed * far + weighed


class LocalSpace(torch.nn.Module):
    """A_s of the local attention: [B, c, h, w] → [B, 1, h, w]."""

    def __init__(self, channels: int, width: int) -> None:
        super().__init__()
        self.reduce = torch.nn.Conv2d(channels, width, 1)
        self.point = torch.nn.Conv2d(width, width, 1)
        self.around = torch.nn.ModuleList(
            torch.nn.Conv2d(width, width, 3, padding=rate, dilation=rate) for rate in DILATIONS
        )
        self.join = torch.nn.Conv2d(width * (len(DILATIONS) + 1), 1, 1)

    def forward(self, maps: torch.Tensor) -> torch.Tensor:
        reduced = self.reduce(maps)
        joined: torch.Tensor = self.join(
            torch.cat([self.point(reduced), *(part(reduced) for part in self.around)], dim=1)
        )
        return joined


class GlobalSpace(torch.nn.Module):
    """G_s of the global attention: [B, c, h, w] → the same."""

    def __init__(self, channels: int, width: int) -> None:
        super().__init__()
        self.query, self.key, self.value = (torch.nn.Conv2d(channels, width, 1) for _ in range(3))
        self.back = torch.nn.Conv2d(width, channels, 1)

    def forward(self, maps: torch.Tensor) -> torch.Tensor:
        queries, keys, values = (part(maps).flatten(2) for part in (self.query, self.key, self.value))
        weights = torch.softmax(keys.transpose(1, 2) @ queries, dim=1)  # [B, N, N]
        gathered: torch.Tensor = self.back((values @ weights).reshape(len(maps), -1, *maps.shape[2:]))
        return gathered


def convolve_channels() -> torch.nn.Conv1d:
    return torch.nn.Conv1d(1, 1, NEIGHBOURS, padding=NEIGHBOURS // 2, bias=False)
