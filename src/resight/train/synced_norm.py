"""Batch normalisation over what all processes compute, on any backend (torch's own SyncBatchNorm needs GPUs).

    mean, variance = those of the values of a channel in the parts of all processes

`sync_norms` puts it in the place of every nn.BatchNorm2d of a network, with the same parameters and statistics under
the same names. In evaluation, and alone, it is nn.BatchNorm2d.
"""

from typing import Any

import torch
from torch import Tensor, nn
from torch import distributed as dist
from torch.nn.modules.batchnorm import _BatchNorm

from resight.errors import RecipeError
from resight.train.distributed import Team


def sync_norms(network: nn.Module, team: Team) -> None:
    if team.size == 1:
        return
    for parent in list(network.modules()):
        for name, child in list(parent.named_children()):
            if type(child) is nn.BatchNorm2d:
                setattr(parent, name, _take_over(child))
            elif isinstance(child, _BatchNorm) and not isinstance(child, SyncedNorm):
                raise RecipeError(
                    f"{type(child).__name__} cannot be synchronised",
                    expected="a network whose batch normalisation is nn.BatchNorm2d",
                    actual=f"{type(parent).__name__}.{name}",
                    fix='set batch_norm = "frozen" or "train"',
                )


class SyncedNorm(nn.BatchNorm2d):
    def forward(self, input: Tensor) -> Tensor:
        if not self.training:
            return super().forward(input)
        own = input.float()
        count = torch.full((1,), own.numel() / own.shape[1], device=own.device)
        sums = _add_up(torch.cat([own.sum(dim=(0, 2, 3)), own.square().sum(dim=(0, 2, 3)), count]))
        mean, square, count = sums[: self.num_features], sums[self.num_features : -1], sums[-1]
        mean, square = mean / count, square / count
        variance = (square - mean.square()).clamp(min=0)
        self._remember(mean.detach(), (variance * count / (count - 1).clamp(min=1)).detach())
        scaled = (own - mean[:, None, None]) * (variance[:, None, None] + self.eps).rsqrt()
        return (scaled * self.weight[:, None, None] + self.bias[:, None, None]).to(input.dtype)

    @torch.no_grad()
    def _remember(self, mean: Tensor, variance: Tensor) -> None:
        share = 0.1 if self.momentum is None else self.momentum
        assert self.running_mean is not None and self.running_var is not None and self.num_batches_tracked is not None
        self.running_mean.lerp_(mean, share)
        self.running_var.lerp_(variance, share)
        self.num_batches_tracked += 1


def _add_up(values: Tensor) -> Tensor:
    total: Tensor = _Sum.apply(values)  # type: ignore[no-untyped-call]
    return total


class _Sum(torch.autograd.Function):
    """The sum over processes; what it is needed for in any of them flows back to each."""

    @staticmethod
    def forward(ctx: Any, values: Tensor) -> Tensor:  # noqa: ARG004 - as torch calls it
        total = values.clone()
        dist.all_reduce(total)
        return total

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:  # noqa: ARG004 - as torch calls it
        total = gradient.contiguous().clone()
        dist.all_reduce(total)
        return total


def _take_over(norm: nn.BatchNorm2d) -> SyncedNorm:
    if not norm.affine or not norm.track_running_stats:
        raise RecipeError(
            "a batch normalisation without parameters or statistics cannot be synchronised",
            expected="affine = True and track_running_stats = True",
            fix='set batch_norm = "frozen" or "train"',
        )
    synced = SyncedNorm(norm.num_features, norm.eps, norm.momentum)
    synced.weight, synced.bias = norm.weight, norm.bias
    synced.running_mean, synced.running_var = norm.running_mean, norm.running_var
    synced.num_batches_tracked = norm.num_batches_tracked
    return synced.train(norm.training)
