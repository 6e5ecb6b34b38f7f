"""One training shared by several processes (data parallel): each computes its share of every batch.

`launch` starts processes of its own on this machine; under torchrun, whose variables are in the environment, `join`
makes this process one of those that are there already. Gradients are averaged by torch's DistributedDataParallel, over
NCCL where there are GPUs and gloo elsewhere. A Team of one does nothing.

Batch normalisation over what all processes compute, on any backend (torch's own SyncBatchNorm needs GPUs).

    mean, variance = those of the values of a channel in the parts of all processes

`sync_norms` puts it in the place of every nn.BatchNorm2d of a network, with the same parameters and statistics under
the same names. In evaluation, and alone, it is nn.BatchNorm2d.
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

PATIENCE = timedelta(hours=24)  # that processes wait for one that validates or lists files; one that ends ends all


@dataclass(frozen=True)
class Team:
    rank: int = 0
    size: int = 1

    @property
    def leads(self) -> bool:
        return self.rank == 0

    def share(self, whole: int) -> slice:
        """This process' part of so many images."""
        each = whole // self.size
        return slice(self.rank * each, (self.rank + 1) * each)

    def wrap(self, module: nn.Module, inputs: tuple[Tensor, ...]) -> nn.Module:
        """The module with gradients that are averaged; `inputs` are some that it will be given."""
        if self.size == 1:
            return module
        return nn.parallel.DistributedDataParallel(module, find_unused_parameters=has_unused(module, inputs))

    def agree(self, trouble: bool) -> bool:
        """Whether any process is in trouble, so that all stop and none waits for ever."""
        if self.size == 1:
            return trouble
        flag = torch.tensor([float(trouble)])
        dist.all_reduce(flag, dist.ReduceOp.MAX)
        return bool(flag.item())

    def average(self, value: Tensor) -> Tensor:
        if self.size == 1:
            return value.detach()
        total = value.detach().clone()
        dist.all_reduce(total)
        return total / self.size

    def gather(self, rows: Tensor) -> Tensor:
        """The rows of all processes, in order; gradients flow through this process' own alone."""
        if self.size == 1:
            return rows
        parts = [torch.empty_like(rows) for _ in range(self.size)]
        dist.all_gather(parts, rows.detach().contiguous())
        parts[self.rank] = rows
        return torch.cat(parts)

    def tell(self, words: Any) -> Any:
        """What the leader says, at every process."""
        if self.size == 1:
            return words
        box = [words]
        dist.broadcast_object_list(box, src=0)
        return box[0]

    def collect(self, words: Any) -> list[Any]:
        """What each process says, at every process."""
        if self.size == 1:
            return [words]
        boxes: list[Any] = [None] * self.size
        dist.all_gather_object(boxes, words)
        return boxes


def launch(processes: int, work: Callable[..., None], arguments: tuple[Any, ...]) -> None:
    """`work(team, *arguments)` in so many new processes; `work` is a function of a module."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            spawn(  # type: ignore[no-untyped-call]
                _start, (processes, Path(folder), work, arguments), nprocs=processes, join=True
            )
        except ProcessRaisedException as error:
            raise _read_trouble(Path(folder)) or error from error
        except ProcessExitedException as error:
            raise TrainingError(
                "a process of the training was ended from outside",
                expected=f"{processes} processes that all reach the end",
                actual=str(error),
                fix="give them more memory or use fewer; --resume goes on from the last checkpoint",
            ) from error


@contextmanager
def join() -> Iterator[Team]:
    """The Team of torchrun's variables; alone where there are none."""
    if "WORLD_SIZE" not in os.environ or "RANK" not in os.environ:
        yield Team()
        return
    with _meet("env://", int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])) as team:
        yield team


def has_unused(module: nn.Module, inputs: tuple[Tensor, ...]) -> bool:
    """Whether a parameter has no part in the answer, such as the mask token of a backbone: processes must know that, or
    they wait for its gradient. The module is tried in evaluation mode and stays as it is."""
    modes = [(part, part.training) for part in module.modules()]
    parameters = [value for value in module.parameters() if value.requires_grad]
    found = torch.autograd.grad(module.eval()(*inputs), parameters, allow_unused=True)
    for part, training in modes:
        part.training = training
    return any(gradient is None for gradient in found)


def check_batch(batch: int, accumulate: int, together: int, processes: int) -> None:
    if batch % (accumulate * together * processes):
        raise InputError(
            "the batch cannot be shared",
            expected=f"a batch that {processes} processes can cut into {accumulate} parts of {together} images",
            actual=f"batch = {batch}",
            fix="change --processes, or batch, accumulate or together of the recipe",
        )


def _start(rank: int, processes: int, folder: Path, work: Callable[..., None], arguments: tuple[Any, ...]) -> None:
    try:
        with _meet((folder / "meeting").as_uri(), rank, processes) as team:
            work(team, *arguments)
    except ResightError as error:
        words = {key: getattr(error, key) for key in ("problem", "expected", "actual", "fix")}
        with write_atomic(folder / f"{rank}.json") as temporary:
            temporary.write_text(json.dumps({"type": type(error).__name__, **words}), encoding="utf-8")
        raise


def _read_trouble(folder: Path) -> ResightError | None:
    """The error of a process, as it would have been raised in this one."""
    for path in sorted(folder.glob("*.json")):
        words = json.loads(path.read_text(encoding="utf-8"))
        error: ResightError = getattr(errors, words.pop("type"))(**words)
        return error
    return None


@contextmanager
def _meet(address: str, rank: int, size: int) -> Iterator[Team]:
    backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
    if torch.cuda.is_available():
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", rank)) % torch.cuda.device_count())
    dist.init_process_group(backend, init_method=address, rank=rank, world_size=size, timeout=PATIENCE)
    try:
        yield Team(rank, size)
    finally:
        dist.destroy_process_group()


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
