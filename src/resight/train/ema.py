"""The moving average of a network's weights: average ← decay · average + (1 − decay) · weights, after every step.

At the beginning the decay is smaller, (1 + steps) / (10 + steps), so that random first weights are soon forgotten.
Buffers (the statistics of batch normalisation) are copied.
"""

import copy

import torch
from torch import nn


class Average:
    """`network` holds the average; it is a copy of the one that is trained."""

    def __init__(self, network: nn.Module, decay: float) -> None:
        self.network = copy.deepcopy(network).requires_grad_(False).eval()
        self._decay = decay

    @torch.no_grad()
    def update(self, network: nn.Module, steps: int) -> None:
        """`steps` have been made before this one."""
        decay = min(self._decay, (1 + steps) / (10 + steps))
        for average, present in zip(self.network.parameters(), network.parameters(), strict=True):
            average.lerp_(present, 1 - decay)
        for kept, buffer in zip(self.network.buffers(), network.buffers(), strict=True):
            kept.copy_(buffer)
