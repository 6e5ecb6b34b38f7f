"""How the weights move: the learning rate of a step, the parts that learn in a stage, and the average of the weights.

Learning rate (`find_rate`): a linear warm-up, then half a cosine down to zero. It depends on the step alone, so that a
resumed run needs no stored state.

    step < warm:   (step + 1) / warm              (Goyal et al., Accurate, Large Minibatch SGD, 2017)
    afterwards:    (1 + cos(π · (step − warm) / (total − warm))) / 2

Stages (`freeze`, `view`, `set_training_mode`):

    all        everything at once (CiDeR)
    backbone   first stage of CiDeR-FT: backbone and pooling only, as a classifier; the parts between are bypassed
    head       second stage: all but the backbone, which is frozen and stays in evaluation mode

A network lists its modules in `parts`, by name and in the order in which they run, from the backbone to the pooling, as
encode/networks/cider/network.py does; a network without parts has only the stage `all`.

Batch normalisation: `train` uses the statistics of the images that a process computes at once, which is a share of the
batch if several processes or parts share it. `synced` uses those of all processes (`sync_batchnorm`), but still of one
part only if `accumulate` is above 1. `frozen` uses the stored statistics and depends on none of this.

Moving average of the weights (`make_average`), by torch's AveragedModel, after every step:

    average ← decay · average + (1 − decay) · weights

At first the decay is smaller, (1 + steps) / (10 + steps), so that random initial weights fade quickly. Buffers (the
statistics of batch normalisation) are copied.
"""

import math

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize
from torch.nn.modules.batchnorm import _BatchNorm
from torch.optim.swa_utils import AveragedModel

from resight.errors import RecipeError
from resight.train.train_config import Settings, Stage


def find_rate(step: int, total: int, warm: int) -> float:
    """The share of the full learning rate at a step, counted from 0."""
    if step < warm:
        return (step + 1) / warm
    return (1 + math.cos(math.pi * (step - warm) / max(total - warm, 1))) / 2


def freeze(network: nn.Module, stage: Stage) -> None:
    """Set `requires_grad` of every parameter."""
    network.requires_grad_(True)
    if stage != "all":
        trunk, *between, _ = _list_parts(network, stage)
        for part in [trunk] if stage == "head" else between:
            part.requires_grad_(False)


def view(network: nn.Module, stage: Stage) -> nn.Module:
    """The network that a stage trains, made of the same modules."""
    if stage != "backbone":
        return network
    trunk, *_, pool = _list_parts(network, stage)
    return BackboneAlone(trunk, pool)


class BackboneAlone(nn.Module):
    """Images → embeddings [B, D] of unit length, by backbone and pooling."""

    def __init__(self, trunk: nn.Module, pool: nn.Module) -> None:
        super().__init__()
        self.trunk = trunk
        self.pool = pool

    def forward(self, images: Tensor) -> Tensor:
        return normalize(self.pool(self.trunk(images)))


def set_training_mode(network: nn.Module, stage: Stage, settings: Settings) -> None:
    """Training mode, in which frozen parts collect no statistics."""
    network.train()
    if stage == "head":
        _list_parts(network, stage)[0].eval()
    if settings.batch_norm == "frozen":
        for module in network.modules():
            if isinstance(module, _BatchNorm):
                module.eval()


def make_average(network: nn.Module, decay: float) -> AveragedModel:
    """A copy of `network`, which `update_parameters(network)` moves after every step."""

    def blend(average: Tensor, weights: Tensor, averaged: Tensor | int) -> Tensor:
        steps = int(averaged) - 1
        return torch.lerp(average, weights, 1 - min(decay, (1 + steps) / (10 + steps)))

    average = AveragedModel(network, avg_fn=blend)
    average.requires_grad_(False).eval()
    set_averaged_steps(average, 0)
    return average


def set_averaged_steps(average: AveragedModel, steps: int) -> None:
    """Continue after so many steps. The copy counts as one more: at a count of 0 torch would replace it."""
    average.n_averaged.fill_(steps + 1)


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
