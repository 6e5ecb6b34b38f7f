"""Several feature maps into one: their sum, or a convex combination with learnt weights.

    H(F_1, …, F_T) = Σ w_i F_i / Σ w_i,   w_i = softplus(α_i)                              (5) of the paper

α_i start at 0, so that the first combination is the mean.
"""

from collections.abc import Sequence

import torch
from torch.nn import functional

from resight.encode.networks.cider.design import Fusion


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
