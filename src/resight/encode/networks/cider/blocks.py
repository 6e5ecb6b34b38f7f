"""The blocks of CiDeR between its backbone and its descriptor: enhancement, context and pooling.

Backbone enhancement f^e, [B, D, h, w] → the same, re-weights every cell of the feature map, or adds to it, by the whole
map. One block follows the backbone, as in the paper:

    se             x · σ(W₂ ReLU(W₁ mean(x))), W₁ to D / reduction channels   Hu et al., CVPR 2018
    eca            x · σ(conv1d(mean(x))), over neighbouring channels         Wang et al., CVPR 2020
    nonlocal       x + W softmax(θ(x)ᵀ φ(x)) g(x), embedded Gaussian          Wang et al., CVPR 2018
    gather_excite  x · σ(mean of x around the cell), without parameters       Hu et al., NeurIPS 2018

Selective context f^c, [B, D, h, w] → the same, adds the surroundings of a cell at several distances:

    sk     two 3 × 3 convolutions, plain and dilated by 2 (which sees 5 × 5), each with norm and ReLU: U_1, U_2.
           z = ReLU(W mean(fuse(U_1, U_2))), to D / reduction channels, 32 or more; each channel then chooses:
           V = Σ softmax_i(W_i z) · U_i. `fuse` is SKNet's sum, or the paper's learnt combination (its SKNet†).
           Li et al., CVPR 2019. z has no batch norm: a batch of one image could not train it
    aspp   1 × 1, three dilated 3 × 3 and the mean of the map, side by side, then 1 × 1 back to D.
           Chen et al., arXiv 1706.05587

Spatial pooling f^p, [B, D, h, w] → [B, dimensions], not yet of unit length: one vector per map, then a fully connected
layer.

    gem    ((1/N) Σ max(x, 1e-6)^p)^(1/p) for each channel, p learnt and 1 or more (Radenović et al., TPAMI 2019)
    mean   global average pooling
    max    the largest value of each channel

`Combine` merges several feature maps: by their sum, or by a convex combination with learnt weights,

    H(F_1, …, F_T) = Σ w_i F_i / Σ w_i,   w_i = softplus(α_i)                              (5) of the paper

α_i start at 0, so that the first combination is the mean.
"""

import math
from collections.abc import Callable, Sequence

import torch
from torch.nn import functional

from resight.encode.networks.cider.design import Context, Enhancement, Fusion, Pooling

EXTENT = 8  # cells from the middle to the edge of the window of gather-excite
LEAST_CHANNELS = 32  # of SKNet's z
RATES = (6, 12, 18)  # of ASPP's dilated convolutions
WIDTH = 256  # channels of each of ASPP's branches
SMALLEST = 1e-6  # value that GeM takes to a power


def make_enhancement(kind: Enhancement, channels: int, reduction: int) -> torch.nn.Module:
    made: dict[Enhancement, Callable[[], torch.nn.Module]] = {
        "none": torch.nn.Identity,
        "se": lambda: SqueezeExcite(channels, reduction),
        "eca": lambda: EfficientChannelAttention(channels),
        "nonlocal": lambda: NonLocal(channels),
        "gather_excite": GatherExcite,
    }
    return made[kind]()


class SqueezeExcite(torch.nn.Module):
    def __init__(self, channels: int, reduction: int) -> None:
        super().__init__()
        inner = max(channels // reduction, 1)
        self.squeeze = torch.nn.Linear(channels, inner)
        self.excite = torch.nn.Linear(inner, channels)

    def forward(self, maps: torch.Tensor) -> torch.Tensor:
        gates = torch.sigmoid(self.excite(functional.relu(self.squeeze(maps.mean(dim=(2, 3))))))
        return maps * gates[:, :, None, None]


class EfficientChannelAttention(torch.nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        width = int((math.log2(channels) + 1) / 2) | 1  # odd; as the authors choose it, γ = 2 and b = 1
        self.neighbours = torch.nn.Conv1d(1, 1, width, padding=width // 2, bias=False)

    def forward(self, maps: torch.Tensor) -> torch.Tensor:
        gates = torch.sigmoid(self.neighbours(maps.mean(dim=(2, 3))[:, None]))
        return maps * gates[:, 0, :, None, None]


class NonLocal(torch.nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        inner = max(channels // 2, 1)
        self.query = torch.nn.Conv2d(channels, inner, 1)
        self.key = torch.nn.Conv2d(channels, inner, 1)
        self.value = torch.nn.Conv2d(channels, inner, 1)
        self.back = torch.nn.Conv2d(inner, channels, 1, bias=False)
        self.norm = torch.nn.BatchNorm2d(channels)
        torch.nn.init.zeros_(self.norm.weight)  # it starts as the identity and leaves a trained backbone unchanged

    def forward(self, maps: torch.Tensor) -> torch.Tensor:
        queries, keys, values = (part(maps).flatten(2) for part in (self.query, self.key, self.value))
        weights = torch.softmax(queries.transpose(1, 2) @ keys, dim=-1)  # [B, cells, cells]
        gathered = (values @ weights.transpose(1, 2)).reshape(len(maps), -1, *maps.shape[2:])
        added: torch.Tensor = self.norm(self.back(gathered))
        return maps + added


class GatherExcite(torch.nn.Module):
    def forward(self, maps: torch.Tensor) -> torch.Tensor:
        gathered = functional.avg_pool2d(maps, 2 * EXTENT - 1, stride=1, padding=EXTENT - 1, count_include_pad=False)
        return maps * torch.sigmoid(gathered)


def make_context(kind: Context, channels: int, fusion: Fusion, groups: int | None, reduction: int) -> torch.nn.Module:
    if kind == "sk":
        return SelectiveKernels(channels, fusion, channels if groups is None else math.gcd(channels, groups), reduction)
    return torch.nn.Identity() if kind == "none" else AtrousPyramid(channels)


class SelectiveKernels(torch.nn.Module):
    def __init__(self, channels: int, fusion: Fusion, groups: int, reduction: int) -> None:
        super().__init__()
        inner = max(channels // reduction, LEAST_CHANNELS)
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
        self.whole = torch.nn.Linear(channels, WIDTH)  # without norm: one image has one value per channel
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


class Combine(torch.nn.Module):
    def __init__(self, count: int, fusion: Fusion) -> None:
        super().__init__()
        self.alpha = torch.nn.Parameter(torch.zeros(count)) if fusion == "learned" else None

    def forward(self, maps: Sequence[torch.Tensor]) -> torch.Tensor:
        stacked = torch.stack(tuple(maps))
        if self.alpha is None:
            return stacked.sum(dim=0)
        weights = functional.softplus(self.alpha)
        shares = (weights / weights.sum()).to(stacked.dtype)
        return (shares.view(-1, *[1] * (stacked.ndim - 1)) * stacked).sum(dim=0)
