"""Data-parallel training: several processes share one training, and each computes its share of every batch.

`launch` starts processes on this machine; under torchrun, whose variables are in the environment, `join` makes this
process one of the existing ones. Both give the work a Team. Torch's DistributedDataParallel averages the gradients,
over NCCL on GPUs and gloo elsewhere. A Team of one does nothing.

`sync_batchnorm` replaces every nn.BatchNorm2d of a network by SyncBatchNorm, which normalises by the mean and variance
over all processes, on any backend (torch's own SyncBatchNorm needs GPUs). Parameters and statistics keep their names.
In evaluation mode it equals nn.BatchNorm2d.
"""

import json
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch import distributed as dist
from torch.multiprocessing.spawn import ProcessExitedException, ProcessRaisedException, spawn
from torch.nn.modules.batchnorm import _BatchNorm

from resight import errors
from resight.errors import InputError, RecipeError, ResightError, TrainingError
from resight.files.atomic import write_atomic

PATIENCE = timedelta(hours=24)  # for a process that validates or lists files; if one process ends, all end


@dataclass(frozen=True)
class Team:
    rank: int = 0
    size: int = 1

    @property
    def leads(self) -> bool:
        return self.rank == 0

    def share(self, whole: int) -> slice:
        """This process's part of `whole` images."""
        each = whole // self.size
        return slice(self.rank * each, (self.rank + 1) * each)

    def wrap(self, module: nn.Module, inputs: tuple[Tensor, ...]) -> nn.Module:
        """The module with averaged gradients; `inputs` are an example of its inputs."""
        if self.size == 1:
            return module
        return nn.parallel.DistributedDataParallel(module, find_unused_parameters=has_unused(module, inputs))

    def any_failed(self, failed: bool) -> bool:
        """Whether any process failed, so that all stop and none waits for ever."""
        if self.size == 1:
            return failed
        flag = torch.tensor([float(failed)])
        dist.all_reduce(flag, dist.ReduceOp.MAX)
        return bool(flag.item())

    def average(self, value: Tensor) -> Tensor:
        if self.size == 1:
            return value.detach()
        total = value.detach().clone()
        dist.all_reduce(total)
        return total / self.size

    def gather(self, rows: Tensor) -> Tensor:
        """The rows of all processes, in order; gradients flow only through this process's own."""
        if self.size == 1:
            return rows
        parts = [torch.empty_like(rows) for _ in range(self.size)]
        dist.all_gather(parts, rows.detach().contiguous())
        parts[self.rank] = rows
        return torch.cat(parts)

    def broadcast(self, value: Any) -> Any:
        """The leader's value, in every process; also a barrier."""
        if self.size == 1:
            return value
        values = [value]
        dist.broadcast_object_list(values, src=0)
        return values[0]

    def gather_objects(self, value: Any) -> list[Any]:
        """The values of all processes, in every process."""
        if self.size == 1:
            return [value]
        values: list[Any] = [None] * self.size
        dist.all_gather_object(values, value)
        return values


def launch(processes: int, work: Callable[..., None], arguments: tuple[Any, ...]) -> None:
    """Run `work(team, *arguments)` in new processes; `work` must be a function of a module."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            spawn(  # type: ignore[no-untyped-call]
                _start, (processes, Path(folder), work, arguments), nprocs=processes, join=True
            )
        except ProcessRaisedException as error:
            raise _read_error(Path(folder)) or error from error
        except ProcessExitedException as error:
            raise TrainingError(
                "a training process was killed",
                expected=f"{processes} processes that all reach the end",
                actual=str(error),
                fix="give them more memory or use fewer; --resume continues from the last checkpoint",
            ) from error


@contextmanager
def join() -> Iterator[Team]:
    """The Team that torchrun's variables describe; a Team of one without them."""
    if "WORLD_SIZE" not in os.environ or "RANK" not in os.environ:
        yield Team()
        return
    with _process_group("env://", int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])) as team:
        yield team


def check_batch(batch: int, accumulate: int, together: int, processes: int) -> None:
    if batch % (accumulate * together * processes):
        raise InputError(
            "the batch cannot be divided",
            expected=f"a batch that {processes} processes can cut into {accumulate} parts of {together} images",
            actual=f"batch = {batch}",
            fix="change --processes, or batch, accumulate or together of the recipe",
        )


def has_unused(module: nn.Module, inputs: tuple[Tensor, ...]) -> bool:
    """Whether a parameter does not affect the output, such as the mask token of a backbone.

    DistributedDataParallel must know that, or it waits for its gradient. The module runs in evaluation mode for this
    test and is left unchanged.
    """
    modes = [(part, part.training) for part in module.modules()]
    parameters = [value for value in module.parameters() if value.requires_grad]
    found = torch.autograd.grad(module.eval()(*inputs), parameters, allow_unused=True)
    for part, training in modes:
        part.training = training
    return any(gradient is None for gradient in found)


def _start(rank: int, processes: int, folder: Path, work: Callable[..., None], arguments: tuple[Any, ...]) -> None:
    try:
        with _process_group((folder / "rendezvous").as_uri(), rank, processes) as team:
            work(team, *arguments)
    except ResightError as error:
        parts = {key: getattr(error, key) for key in ("problem", "expected", "actual", "fix")}
        with write_atomic(folder / f"{rank}.json") as temporary:
            temporary.write_text(json.dumps({"type": type(error).__name__, **parts}), encoding="utf-8")
        raise


def _read_error(folder: Path) -> ResightError | None:
    """The error that a process wrote before it ended."""
    for path in sorted(folder.glob("*.json")):
        parts = json.loads(path.read_text(encoding="utf-8"))
        error: ResightError = getattr(errors, parts.pop("type"))(**parts)
        return error
    return None


@contextmanager
def _process_group(address: str, rank: int, size: int) -> Iterator[Team]:
    backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
    if torch.cuda.is_available():
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", rank)) % torch.cuda.device_count())
    dist.init_process_group(backend, init_method=address, rank=rank, world_size=size, timeout=PATIENCE)
    try:
        yield Team(rank, size)
    finally:
        dist.destroy_process_group()


def sync_batchnorm(network: nn.Module, team: Team) -> None:
    """Replace every nn.BatchNorm2d of `network`, in place."""
    if team.size == 1:
        return
    for parent in list(network.modules()):
        for name, child in list(parent.named_children()):
            if type(child) is nn.BatchNorm2d:
                setattr(parent, name, _convert(child))
            elif isinstance(child, _BatchNorm) and not isinstance(child, SyncBatchNorm):
                raise RecipeError(
                    f"{type(child).__name__} cannot be synchronised",
                    expected="a network whose batch normalisation is nn.BatchNorm2d",
                    actual=f"{type(parent).__name__}.{name}",
                    fix='set batch_norm = "frozen" or "train"',
                )


class SyncBatchNorm(nn.BatchNorm2d):
    def forward(self, input: Tensor) -> Tensor:
        if not self.training:
            return super().forward(input)
        own = input.float()
        count = torch.full((1,), own.numel() / own.shape[1], device=own.device)
        sums = _all_reduce_sum(torch.cat([own.sum(dim=(0, 2, 3)), own.square().sum(dim=(0, 2, 3)), count]))
        mean, square, count = sums[: self.num_features], sums[self.num_features : -1], sums[-1]
        mean, square = mean / count, square / count
        variance = (square - mean.square()).clamp(min=0)
        self._update_statistics(mean.detach(), (variance * count / (count - 1).clamp(min=1)).detach())
        scaled = (own - mean[:, None, None]) * (variance[:, None, None] + self.eps).rsqrt()
        return (scaled * self.weight[:, None, None] + self.bias[:, None, None]).to(input.dtype)

    @torch.no_grad()
    def _update_statistics(self, mean: Tensor, variance: Tensor) -> None:
        share = 0.1 if self.momentum is None else self.momentum
        assert self.running_mean is not None and self.running_var is not None and self.num_batches_tracked is not None
        self.running_mean.lerp_(mean, share)
        self.running_var.lerp_(variance, share)
        self.num_batches_tracked += 1


def _convert(norm: nn.BatchNorm2d) -> SyncBatchNorm:
    if not norm.affine or not norm.track_running_stats:
        raise RecipeError(
            "a batch normalisation without parameters or statistics cannot be synchronised",
            expected="affine = True and track_running_stats = True",
            fix='set batch_norm = "frozen" or "train"',
        )
    synced = SyncBatchNorm(norm.num_features, norm.eps, norm.momentum)
    synced.weight, synced.bias = norm.weight, norm.bias
    synced.running_mean, synced.running_var = norm.running_mean, norm.running_var
    synced.num_batches_tracked = norm.num_batches_tracked
    return synced.train(norm.training)


def _all_reduce_sum(values: Tensor) -> Tensor:
    total: Tensor = _AllReduceSum.apply(values)  # type: ignore[no-untyped-call]
    return total


class _AllReduceSum(torch.autograd.Function):
    """The sum over processes; its gradient is the sum of the gradients of all processes."""

    @staticmethod
    def forward(ctx: Any, values: Tensor) -> Tensor:  # noqa: ARG004 - torch's signature
        total = values.clone()
        dist.all_reduce(total)
        return total

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:  # noqa: ARG004 - torch's signature
        total = gradient.contiguous().clone()
        dist.all_reduce(total)
        return total
