"""The training loop: epochs of steps, a validation after each epoch, and checkpoints to resume from.

In: a network, a loss, batches (loading.py) and a validation function. Out: a Report, and in `folder`

    last.safetensors    the last checkpoint (checkpoints.py)
    best.safetensors    the weights of the best epoch by validation; without validation, of the last epoch
    curves.jsonl        loss, rate and validation of every step (metric_logger.py)

The same seed gives the same weights on the same machine, whether the run was interrupted or not.
"""

import dataclasses
import json
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import nn

from resight.train import checkpoints, optim
from resight.train.checkpoints import Progress
from resight.train.distributed import Team, sync_batchnorm
from resight.train.metric_logger import MetricLogger
from resight.train.optim import find_rate
from resight.train.step import Part, Stepper
from resight.train.train_config import Settings, Stage

LAST, BEST = "last.safetensors", "best.safetensors"
ALONE = Team()


class Batches(Protocol):
    steps: int  # per epoch
    fingerprint: str  # of the images and their classes

    def read(self, epoch: int, first: int) -> Iterator[Sequence[Part]]:
        """Yield the batches of an epoch from number `first` on, each as the parts that are computed at once."""

    @property
    def unreadable(self) -> tuple[str, ...]:
        """Ids of unreadable images so far; each was replaced by another image."""


class Validate(Protocol):
    def __call__(self, network: nn.Module) -> float:
        """The quality of the network; NaN if undefined, which counts as worse than any number."""

    @property
    def unreadable(self) -> tuple[str, ...]:
        """Ids of unreadable images."""


@dataclasses.dataclass(frozen=True)
class Report:
    epochs: int
    steps: int
    loss: float | None  # of the last step; None: the training was already finished
    best: float | None  # validation
    best_epoch: int | None
    stopped_early: bool
    seconds: float  # of this run alone
    unreadable: tuple[str, ...]
    unreadable_held_out: tuple[str, ...]
    skipped: int  # steps whose gradients overflowed fp16
    changes: tuple[str, ...]  # of settings on resume
    weights: Path


@dataclasses.dataclass(frozen=True)
class StepReport:
    """The state after a step, for a progress display."""

    step: int
    steps: int
    epoch: int
    loss: float
    rate: float
    validation: float | None


def train(
    network: nn.Module,
    loss: nn.Module,
    batches: Batches,
    settings: Settings,
    folder: Path,
    validate: Validate | None = None,
    *,
    about: Mapping[str, Any] | None = None,
    stage: Stage = "all",
    team: Team = ALONE,
    resume: bool = False,
    on_step: Callable[[StepReport], None] | None = None,
) -> Report:
    """Train `network` and `loss` in place; afterwards `network` has the weights of the best epoch.

    `about` describes the network and the origin of its first weights; a resumed training must have the same.
    """
    torch.set_num_threads(settings.threads)  # sums depend on the number of threads
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(settings.seed + team.rank)
        run = _Run(network, loss, batches, settings, folder, about or {}, stage, team, resume)
        try:
            return run.train(validate, on_step)
        finally:
            run.close()


class _Run:
    def __init__(
        self,
        network: nn.Module,
        loss: nn.Module,
        batches: Batches,
        settings: Settings,
        folder: Path,
        about: Mapping[str, Any],
        stage: Stage,
        team: Team,
        resume: bool,
    ) -> None:
        self.network, self.loss, self.batches = network, loss, batches
        self.settings, self.folder, self.stage, self.team = settings, folder, stage, team
        if settings.batch_norm == "synced":
            sync_batchnorm(network, team)
        optim.freeze(network, stage)
        self.stepper = Stepper(optim.view(network, stage), loss, settings, team)
        self.average = optim.make_average(network, settings.ema) if settings.ema else None
        self.progress = Progress(
            settings=_plain(dataclasses.asdict(settings)),
            network=_plain(about),
            data=batches.fingerprint,
            processes=team.size,
        )
        if resume:
            self._restore()
        self.started = time.monotonic()
        self.logger = MetricLogger(folder, self.progress.step, self.progress.epoch) if team.leads else None
        self.seconds_before = self.logger.seconds if self.logger else 0.0

    def train(self, validate: Validate | None, on_step: Callable[[StepReport], None] | None) -> Report:
        settings, steps = self.settings, self.batches.steps
        warm, total = round(settings.warmup * steps), settings.epochs * steps
        loss = None
        while not self.progress.finished:
            epoch, first = self.progress.epoch, self.progress.batch
            optim.set_training_mode(self.network, self.stage, settings)
            for number, parts in enumerate(self.batches.read(epoch, first), first):
                rate = find_rate(self.progress.step, total, warm)
                loss = self.stepper.step(parts, rate, f"epoch {epoch + 1}, batch {number + 1}")
                if self.average is not None:
                    self.average.update_parameters(self.network)
                self._advance(step=self.progress.step + 1, batch=number + 1)
                self._write(loss=loss, rate=rate * settings.rate)
                if on_step is not None:
                    on_step(
                        StepReport(self.progress.step, total, epoch, loss, rate * settings.rate, self.progress.best)
                    )
                if settings.save_every and self.progress.step % settings.save_every == 0 and number + 1 < steps:
                    self._save()
            self._end_epoch(validate)
        return self._finish(loss)

    def _end_epoch(self, validate: Validate | None) -> None:
        epoch = self.progress.epoch
        if validate is not None:
            self._save()  # first, since a validation may take long and may fail
        value = self._validate(validate)
        if self._is_better(value):
            if self.team.leads:
                checkpoints.save_weights(self.folder / BEST, self._evaluated)
            self._advance(best=None if value is None or math.isnan(value) else value, best_epoch=epoch)
        waited = epoch - (self.progress.best_epoch or 0)
        out_of_patience = value is not None and 0 < self.settings.patience <= waited
        self._advance(epoch=epoch + 1, batch=0, finished=out_of_patience or epoch + 1 == self.settings.epochs)
        self._save()

    def _is_better(self, value: float | None) -> bool:
        """Whether this epoch is the best so far; without validation the last one is. NaN is worse than any number."""
        best = self.progress.best
        if value is None or self.progress.best_epoch is None:
            return True
        return not math.isnan(value) and (best is None or value > best)

    def _validate(self, validate: Validate | None) -> float | None:
        """The leader validates; the other processes wait for its result."""
        value: float | None = None
        if validate is not None and self.team.leads:
            with torch.random.fork_rng(devices=[]):
                value = float(validate(optim.view(self._evaluated.eval(), self.stage)))
            self._advance(unreadable_held_out=validate.unreadable)
            if not math.isnan(value):
                self._write(validation=value)
        agreed: float | None = self.team.broadcast(value)
        return agreed

    @property
    def _evaluated(self) -> nn.Module:
        return self.network if self.average is None else self.average.module

    def _advance(self, **changes: Any) -> None:
        self.progress = dataclasses.replace(self.progress, **changes)

    def _write(self, **values: float) -> None:
        if self.logger is not None:
            seconds = self.seconds_before + time.monotonic() - self.started
            self.logger.write(self.progress.step, self.progress.epoch, seconds, **values)

    def _save(self) -> None:
        random = self.team.gather_objects(_read_random(self.settings))
        broken = {id for ids in self.team.gather_objects(self.batches.unreadable) for id in ids}
        self._advance(unreadable=tuple(sorted(broken.union(self.progress.unreadable))))
        if not self.team.leads:
            return
        scaler = self.stepper.scaler.state_dict()  # empty except with fp16
        self._advance(scale=scaler.get("scale"), growth=scaler.get("_growth_tracker"), skipped=self.stepper.skipped)
        tensors = {
            **checkpoints.collect_module(self.network, "network."),
            **checkpoints.collect_module(self.loss, "loss."),
            **(checkpoints.collect_module(self.average.module, "average.") if self.average else {}),
            **checkpoints.collect_optimizer(self.stepper.optimizer),
            **{f"random.{rank}.{name}": value for rank, own in enumerate(random) for name, value in own.items()},
        }
        checkpoints.save(self.folder / LAST, self.progress, tensors)

    def _restore(self) -> None:
        path = self.folder / LAST
        if not path.exists():
            return  # the run ended before its first checkpoint
        found, tensors = checkpoints.load(path)
        changes = checkpoints.check_resume(found, self.progress, path)
        checkpoints.restore_module(self.network, tensors, "network.")
        checkpoints.restore_module(self.loss, tensors, "loss.")
        if self.average is not None:
            checkpoints.restore_module(self.average.module, tensors, "average.")
            optim.set_averaged_steps(self.average, found.step)
        checkpoints.restore_optimizer(self.stepper.optimizer, tensors)
        if found.scale is not None:
            known = {"scale": found.scale, "_growth_tracker": found.growth or 0}
            self.stepper.scaler.load_state_dict({**self.stepper.scaler.state_dict(), **known})
        self.stepper.skipped = found.skipped
        _write_random(checkpoints.take(tensors, f"random.{self.team.rank}."), self.settings)
        self.progress = dataclasses.replace(
            found,
            settings=self.progress.settings,
            network=self.progress.network,
            changes=(*found.changes, *changes),
        )

    def close(self) -> None:
        if self.logger is not None:
            self.logger.close()

    def _finish(self, loss: float | None) -> Report:
        self.team.broadcast(None)  # wait until the leader has written the best weights
        weights = self.folder / BEST
        self.network.load_state_dict(checkpoints.load_weights(weights))
        done = self.progress
        return Report(
            epochs=done.epoch,
            steps=done.step,
            loss=loss,
            best=done.best,
            best_epoch=done.best_epoch,
            stopped_early=done.epoch < self.settings.epochs,
            seconds=time.monotonic() - self.started,
            unreadable=done.unreadable,
            unreadable_held_out=done.unreadable_held_out,
            skipped=self.stepper.skipped,
            changes=done.changes,
            weights=weights,
        )


def _read_random(settings: Settings) -> dict[str, torch.Tensor]:
    device = torch.device(settings.device)
    own = {"cpu": torch.get_rng_state()}
    return {**own, "cuda": torch.cuda.get_rng_state(device)} if device.type == "cuda" else own


def _write_random(states: Mapping[str, torch.Tensor], settings: Settings) -> None:
    torch.set_rng_state(states["cpu"])
    if "cuda" in states:
        torch.cuda.set_rng_state(states["cuda"], torch.device(settings.device))


def _plain(table: Mapping[str, Any]) -> dict[str, Any]:
    """The table in the form that a checkpoint returns."""
    plain: dict[str, Any] = json.loads(json.dumps(dict(table), default=str))
    return plain
