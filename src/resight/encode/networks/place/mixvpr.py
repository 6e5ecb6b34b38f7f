"""MixVPR: every channel's map mixed as a whole by a chain of MLPs.

In: images of one size. Out: vectors and the map F, of conv4.

    X_0 = F, channels as rows of n cells
    X_l = X_{l−1} + W₂ ReLU(W₁ LN(X_{l−1}) + b₁) + b₂         over the cells, l = 1 … L
    v   = W_r (W_c X_Lᵀ + b_c)ᵀ + b_r, flattened              W_c over channels, W_r over cells

Ali-bey et al., MixVPR: Feature Mixing for Visual Place Recognition, WACV 2023. A reading of the authors' code, which at
first had no b_r; the published files have it.
"""

import torch

from resight.encode.networks.cider.backbone import MapBackbone
from resight.encode.networks.landmark.gem_embedding import Described
from resight.encode.networks.place.place_design import Design


class MixVprHead(torch.nn.Module):
    def __init__(self, design: Design, trunk: MapBackbone) -> None:
        super().__init__()
        cells = design.cells**2
        self.mix = torch.nn.ModuleList(make_mixer(cells, design.mixed) for _ in range(design.depth_of_head))
        self.project_channels = torch.nn.Linear(trunk.channels, design.projected)
        self.project_cells = torch.nn.Linear(cells, design.rows, bias=design.has_bias)

    def forward(self, trunk: MapBackbone, images: torch.Tensor) -> Described:
        maps = trunk(images)
        mixed = maps.flatten(2)
        for layer in self.mix:
            mixed = mixed + layer(mixed)
        projected = self.project_channels(mixed.transpose(1, 2)).transpose(1, 2)
        return Described(self.project_cells(projected).flatten(1), maps)


def make_mixer(cells: int, hidden: int) -> torch.nn.Sequential:
    return torch.nn.Sequential(
        torch.nn.LayerNorm(cells), torch.nn.Linear(cells, hidden), torch.nn.ReLU(), torch.nn.Linear(hidden, cells)
    )
