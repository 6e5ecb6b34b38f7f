"""One step of the optimiser: a batch in, the loss out.

The batch comes in `accumulate` parts, whose gradients add up, and each process computes its share of every part. For
losses with class centres the loss is that of the whole batch. A loss that compares images gets a part from all
processes. A loss or gradient that is not a number stops the training before any weight changes. Half precision applies
to the network only: losses take roots and differences of nearly equal values, and stay in float32.
"""

import contextlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from resight.errors import TrainingError
from resight.train.distributed import Team
from resight.train.train_config import Settings

MOST_SKIPPED = 20  # overflowing fp16 steps in a row; each halves the scale
PRECISIONS = {"bf16": torch.bfloat16, "fp16": torch.float16}


@dataclass(frozen=True)
class Part:
    """Images of one size that a process computes at once."""

    images: Tensor  # [B, 3, H, W] float32
    labels: Tensor  # [B] int64
    ids: tuple[str, ...]


class Stepper:
    def __init__(self, network: nn.Module, loss: Any, settings: Settings, team: Team) -> None:
        self._settings, self._team = settings, team
        self._device = torch.device(settings.device)
        self._objective = Objective(network.to(self._device), loss.to(self._device), team)
        self._shared: Any = None  # the objective with averaged gradients, built with the first images
        self.optimizer = make_optimizer(network, loss, settings)
        self.scaler = torch.amp.GradScaler(self._device.type, enabled=settings.precision == "fp16")
        self.skipped = 0  # steps left out
        self._in_a_row = 0

    def step(self, parts: Sequence[Part], rate: float, where: str) -> float:
        """`rate` is the share of the full learning rate; error messages name `where`."""
        self.optimizer.zero_grad()
        if self._shared is None:
            with self._cast():
                self._shared = self._team.wrap(self._objective, self._move(parts[0]))
        total = 0.0
        for number, part in enumerate(parts):
            is_last = number == len(parts) - 1
            with contextlib.nullcontext() if is_last or self._team.size == 1 else self._shared.no_sync():
                value = self._compute(part)
                if self._team.any_failed(not math.isfinite(value.item())):
                    raise self._refuse("the loss is not a number", where, part.ids)
                self.scaler.scale(value * self._objective.weight / len(parts)).backward()  # type: ignore[no-untyped-call]
            total += float(self._team.average(value)) / len(parts)
        self._update(rate, where, [id for part in parts for id in part.ids])
        return total

    def _compute(self, part: Part) -> Tensor:
        with self._cast():
            value: Tensor = self._shared(*self._move(part))
        return value

    def _cast(self) -> torch.autocast:
        precision = PRECISIONS.get(self._settings.precision)
        return torch.autocast(self._device.type, precision, enabled=precision is not None)

    def _move(self, part: Part) -> tuple[Tensor, Tensor]:
        return part.images.to(self._device), part.labels.to(self._device)

    def _update(self, rate: float, where: str, ids: Sequence[str]) -> None:
        for group in self.optimizer.param_groups:
            group["lr"] = rate * group["full_rate"]
        self.scaler.unscale_(self.optimizer)
        parameters = [value for group in self.optimizer.param_groups for value in group["params"]]
        length = nn.utils.clip_grad_norm_(parameters, self._settings.clip or math.inf)
        # fp16 overflows occasionally; its scaler then skips the step by itself.
        if not self.scaler.is_enabled() and not math.isfinite(length):
            raise self._refuse("the gradient is not a number", where, ids)
        scale = self.scaler.get_scale()
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self._count_skipped(self.scaler.get_scale() < scale, where)

    def _count_skipped(self, skipped: bool, where: str) -> None:
        self.skipped += skipped
        self._in_a_row = self._in_a_row + 1 if skipped else 0
        if self._in_a_row >= MOST_SKIPPED:
            raise TrainingError(
                f"{self._in_a_row} steps in a row overflowed, the last in {where}",
                expected="gradients that fit into fp16 when the loss is scaled down",
                actual=f"none, down to a scale of {self.scaler.get_scale():g}; the weights have not changed since",
                fix="continue with --set train.precision=bf16 (or fp32) --resume",
            )

    def _refuse(self, problem: str, where: str, ids: Sequence[str]) -> TrainingError:
        everyone = [id for some in self._team.gather_objects(list(ids)) for id in some]
        return TrainingError(
            f"{problem} in {where}",
            expected="a finite loss; the last checkpoint is older than this and intact",
            actual=f"images {', '.join(everyone)}",
            fix="--set train.rate=… (lower), train.clip=1 or train.precision=fp32, and continue with --resume; "
            "to train without these images, start again in another --out",
        )


class Objective(nn.Module):
    """Network and loss as one module, so that processes share the parameters of both."""

    def __init__(self, network: nn.Module, loss: Any, team: Team) -> None:
        super().__init__()
        self.network, self.loss = network, loss
        self._team = team
        # Each process computes a comparing loss on all images; averaging the gradients divides it by the team's size.
        self.weight = team.size if loss.compares else 1

    def forward(self, images: Tensor, labels: Tensor) -> Tensor:
        embeddings = self.network(images).float()
        if self.loss.compares:
            embeddings, labels = self._team.gather(embeddings), self._team.gather(labels)
        with torch.autocast(embeddings.device.type, enabled=False):
            value: Tensor = self.loss(embeddings, labels)
        return value


def make_optimizer(network: nn.Module, loss: Any, settings: Settings) -> torch.optim.Optimizer:
    groups = [
        {"params": [value for value in module.parameters() if value.requires_grad], "full_rate": rate}
        for module, rate in ((network, settings.rate), (loss, settings.rate * settings.loss_rate))
    ]
    groups = [group for group in groups if group["params"]]
    if settings.optimizer == "adamw":
        return torch.optim.AdamW(groups, lr=settings.rate, weight_decay=settings.decay)
    return torch.optim.SGD(groups, lr=settings.rate, momentum=settings.momentum, weight_decay=settings.decay)
