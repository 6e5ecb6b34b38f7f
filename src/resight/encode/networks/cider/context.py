"""Selective context f^c: what lies around a cell, at several distances.

In and out: [B, D, h, w].

    sk     two 3 × 3 convolutions, plain and dilated by 2 (which sees 5 × 5), each with norm and ReLU: U_1, U_2.
           z = ReLU(W mean(fuse(U_1, U_2))), to D / reduction channels, 32 or more; each channel then chooses:
           V = Σ softmax_i(W_i z) · U_i. `fuse` is SKNet's sum, or the paper's learnt combination (its SKNet†).
           Li et al., CVPR 2019. z has no batch norm: one image alone could not be trained with it
    aspp   1 × 1, three dilated 3 × 3 and the mean of the map, side by side, then 1 × 1 back to D.
           Chen et al., arXiv 1706.05587
"""

import math

import torch
from torch.nn import functional

from resight.encode.networks.cider.design import Context, Fusion
from resight.encode.networks.cider.fusion import Combine

LEAST = 32  # channels of SKNet's z
RATES = (6, 12, 18)  # of ASPP's dilated convolutions
WIDTH = 256  # channels of each of ASPP's branches


def make_context(kind: Context, channels: int, fusion: Fusion, groups: int | None, reduction: int) -> torch.nn.Module:
    if kind == "sk":
        return SelectiveKernels(channels, fusion, channels if groups is None else math.gcd(channels, groups), reduction)
    return torch.nn.Identity() if kind == "none" else AtrousPyramid(channels)


class SelectiveKernels(torch.nn.Module):
    def __init__(self, channels: int, fusion: Fusion, groups: int, reduction: int) -> None:
        super().__init__()
        inner = max(channels // reduction, LEAST)
        self.branches = torch.nn.ModuleList(convolve(channels, channels, rate, groups) for rate in (1, 2))
        self.fuse = Combine(len(self.branches), fusion)
        self.squeeze = torch.nn.Linear(channels, inner)
        self.choose = torch.nn.ModuleList(torch.nn.Linear(inner, channels) for _ in self.branches)

    def forward(self, maps: torch.Tensor) -> torch.Tensor:
        seen = [branch(maps) for branch in self.branches]
        summary = functional.relu(self.squeeze(self.fuse(seen).mean(dim=(2, 3))))
        shares = torch.softmax(torch.stack([choose(summary) for choose in self.choose]), dim=0)  # [2, B, D]
        return (shares[..., None, None] * torch.stack(seen)).sum(dim=0)


class AtrousPyramid(torch.nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.point = convolve(channels, WIDTH, 1, 1, size=1)
        self.dilated = torch.nn.ModuleList(convolve(channels, WIDTH, rate, 1) for rate in RATES)
        self.whole = torch.nn.Linear(channels, WIDTH)  # without norm: of one image there is one value a channel
        self.join = convolve(WIDTH * (len(RATES) + 2), channels, 1, 1, size=1)

    def forward(self, maps: torch.Tensor) -> torch.Tensor:
        whole = functional.relu(self.whole(maps.mean(dim=(2, 3))))[:, :, None, None].expand(-1, -1, *maps.shape[2:])
        joined: torch.Tensor = self.join(
            torch.cat([self.point(maps), *(branch(maps) for branch in self.dilated), whole], dim=1)
        )
        return joined


def convolve(channels: int, outputs: int, rate: int, groups: int, size: int = 3) -> torch.nn.Sequential:
    """A convolution that keeps the size of the map, with norm and ReLU."""
    padding = rate * (size // 2)
    return torch.nn.Sequential(
        torch.nn.Conv2d(channels, outputs, size, padding=padding, dilation=rate, groups=groups, bias=False),
        torch.nn.BatchNorm2d(outputs),
        torch.nn.ReLU(),
    )
