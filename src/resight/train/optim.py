"""The moving average of a network's weights: average ← decay · average + (1 − decay) · weights, after every step.

At the beginning the decay is smaller, (1 + steps) / (10 + steps), so that random first weights are soon forgotten.
Buffers (the statistics of batch normalisation) are copied.

Which parts of a network learn in a stage of training, and how batch normalisation is treated meanwhile.

    all        everything at once (CiDeR)
    backbone   first stage of CiDeR-FT: trunk and pooling alone, as a classifier; the parts between are passed by
    head       second stage: all but the trunk, which is frozen and stays in evaluation mode

A network is given with `parts`, names → modules in the order in which they run, the first the trunk and the last the
pooling, as `encode/networks/cider/network.py` has them; a network without parts has the stage `all` only.

Batch normalisation: `train` uses the statistics of what a process computes at once, which is a share of the batch where
several processes or parts share it. `synced` uses those of the batch over all processes (synced_norm.py); what
`accumulate` cuts stays cut. `frozen` uses the stored statistics and does not depend on any of this.

The learning rate of every step: a linear warm-up, then half a cosine down to zero.

    step < warm:   (step + 1) / warm              (Goyal et al., Accurate, Large Minibatch SGD, 2017)
    afterwards:    (1 + cos(π · (step − warm) / (total − warm))) / 2

It depends on the number of the step alone, so that there is nothing to store for a run that is resumed.
"""

import copy
import math

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize
from torch.nn.modules.batchnorm import _BatchNorm

from resight.errors import RecipeError
from resight.train.train_config import Settings, Stage


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


def freeze(network: nn.Module, stage: Stage) -> None:
    """Sets `requires_grad` of every parameter."""
    network.requires_grad_(True)
    if stage != "all":
        trunk, *between, _ = _list_parts(network, stage)
        for part in [trunk] if stage == "head" else between:
            part.requires_grad_(False)


def view(network: nn.Module, stage: Stage) -> nn.Module:
    """The network as the stage sees it, made of the same modules."""
    if stage != "backbone":
        return network
    trunk, *_, pool = _list_parts(network, stage)
    return BackboneAlone(trunk, pool)


class BackboneAlone(nn.Module):
    """Images → embeddings [B, D] of unit length by trunk and pooling."""

    def __init__(self, trunk: nn.Module, pool: nn.Module) -> None:
        super().__init__()
        self.trunk = trunk
        self.pool = pool

    def forward(self, images: Tensor) -> Tensor:
        return normalize(self.pool(self.trunk(images)))


def set_training_mode(network: nn.Module, stage: Stage, settings: Settings) -> None:
    """What is frozen does not collect statistics."""
    network.train()
    if stage == "head":
        _list_parts(network, stage)[0].eval()
    if settings.batch_norm == "frozen":
        for module in network.modules():
            if isinstance(module, _BatchNorm):
                module.eval()


def _list_parts(network: nn.Module, stage: Stage) -> list[nn.Module]:
    parts = getattr(network, "parts", None)
    if parts is None:
        raise RecipeError(
            f"the stage {stage!r} needs a network with parts",
            expected="an encoder with backbone and head, such as cider",
            actual=type(network).__name__,
            fix='set stages = ["all"]',
        )
    return list(parts.values())


def find_rate(step: int, total: int, warm: int) -> float:
    """The share of the full rate at a step, counted from 0."""
    if step < warm:
        return (step + 1) / warm
    return (1 + math.cos(math.pi * (step - warm) / max(total - warm, 1))) / 2
