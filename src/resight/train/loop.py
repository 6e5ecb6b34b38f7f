"""The training of a network: epochs of steps, a validation after each, and checkpoints that it can go on from.

In: a network, a loss, batches (loading.py) and a function that validates. Out: a Report, and in `folder`

    last.safetensors    where it stands (checkpoints.py)
    best.safetensors    the weights of the best epoch by validation; of the last one without validation
    curves.jsonl        loss, rate and validation as it runs (watching.py)

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
from resight.train import checkpoints as resuming
from resight.train.checkpoints import Progress
from resight.train.distributed import Team, sync_norms
from resight.train.logger import Curves
from resight.train.optim import Average, find_rate
from resight.train.step import Part, Stepper
from resight.train.train_config import Settings, Stage

LAST, BEST = "last.safetensors", "best.safetensors"
ALONE = Team()


class Batches(Protocol):
    steps: int  # of an epoch
    fingerprint: str  # of the images and their classes

    def read(self, epoch: int, first: int) -> Iterator[Sequence[Part]]:
        """The batches of an epoch, from the one numbered `first` on, each in the parts that are computed at once."""

    @property
    def unreadable(self) -> tuple[str, ...]:
        """Ids of images that could not be read so far, each replaced by another."""


class Validate(Protocol):
    def __call__(self, network: nn.Module) -> float:
        """How good the network is; NaN where that cannot be said, which is worse than any number."""

    @property
    def unreadable(self) -> tuple[str, ...]:
        """Ids of images that could not be read."""


@dataclasses.dataclass(frozen=True)
class Report:
    epochs: int
    steps: int
    loss: float | None  # of the last step; None: there was nothing left to do
    best: float | None  # validation
    best_epoch: int | None
    stopped_early: bool
    seconds: float  # of this run
    unreadable: tuple[str, ...]
    unreadable_held_out: tuple[str, ...]
    skipped: int  # steps that did not fit into fp16
    changes: tuple[str, ...]  # of settings when it was resumed
    weights: Path


@dataclasses.dataclass(frozen=True)
class Told:
    """For whoever shows how far it is."""

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
    tell: Callable[[Told], None] | None = None,
) -> Report:
    """Trains `network` and `loss` themselves; afterwards `network` has the weights of the best epoch.

    `about` says what the network looks like and where its first weights came from: resumed, it has to be the same.
    """
    torch.set_num_threads(settings.threads)  # sums are not the same with another number of them
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(settings.seed + team.rank)
        run = _Run(network, loss, batches, settings, folder, about or {}, stage, team, resume)
        try:
            return run.train(validate, tell)
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
            sync_norms(network, team)
        optim.freeze(network, stage)
        self.stepper = Stepper(optim.view(network, stage), loss, settings, team)
        self.average = Average(network, settings.ema) if settings.ema else None
        self.progress = Progress(
            settings=_plain(dataclasses.asdict(settings)),
            network=_plain(about),
            data=batches.fingerprint,
            processes=team.size,
        )
        if resume:
            self._restore()
        self.started = time.monotonic()
        self.curves = Curves(folder, self.progress.step, self.progress.epoch) if team.leads else None
        self.seconds_before = self.curves.seconds if self.curves else 0.0

    def train(self, validate: Validate | None, tell: Callable[[Told], None] | None) -> Report:
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
                    self.average.update(self.network, self.progress.step)
                self._advance(step=self.progress.step + 1, batch=number + 1)
                self._write(loss=loss, rate=rate * settings.rate)
                if tell is not None:
                    tell(Told(self.progress.step, total, epoch, loss, rate * settings.rate, self.progress.best))
                if settings.save_every and self.progress.step % settings.save_every == 0 and number + 1 < steps:
                    self._save()
            self._end_epoch(validate)
        return self._finish(loss)

    def _end_epoch(self, validate: Validate | None) -> None:
        epoch = self.progress.epoch
        if validate is not None:
            self._save()  # a validation may take long, and may fail
        value = self._validate(validate)
        if self._is_better(value):
            if self.team.leads:
                checkpoints.save_weights(self.folder / BEST, self._judged)
            self._advance(best=None if value is None or math.isnan(value) else value, best_epoch=epoch)
        waited = epoch - (self.progress.best_epoch or 0)
        out_of_patience = value is not None and 0 < self.settings.patience <= waited
        self._advance(epoch=epoch + 1, batch=0, finished=out_of_patience or epoch + 1 == self.settings.epochs)
        self._save()

    def _is_better(self, value: float | None) -> bool:
        """Than all before: without validation the last epoch counts, and NaN is worse than any number."""
        best = self.progress.best
        if value is None or self.progress.best_epoch is None:
            return True
        return not math.isnan(value) and (best is None or value > best)

    def _validate(self, validate: Validate | None) -> float | None:
        """By the leader; the others wait for what it finds."""
        value: float | None = None
        if validate is not None and self.team.leads:
            with torch.random.fork_rng(devices=[]):
                value = float(validate(optim.view(self._judged.eval(), self.stage)))
            self._advance(unreadable_held_out=validate.unreadable)
            if not math.isnan(value):
                self._write(validation=value)
        agreed: float | None = self.team.tell(value)
        return agreed

    @property
    def _judged(self) -> nn.Module:
        return self.network if self.average is None else self.average.network

    def _advance(self, **changes: Any) -> None:
        self.progress = dataclasses.replace(self.progress, **changes)

    def _write(self, **values: float) -> None:
        if self.curves is not None:
            seconds = self.seconds_before + time.monotonic() - self.started
            self.curves.write(self.progress.step, self.progress.epoch, seconds, **values)

    def _save(self) -> None:
        random = self.team.collect(_read_random(self.settings))
        broken = {id for ids in self.team.collect(self.batches.unreadable) for id in ids}
        self._advance(unreadable=tuple(sorted(broken.union(self.progress.unreadable))))
        if not self.team.leads:
            return
        scaler = self.stepper.scaler.state_dict()  # empty unless it is fp16
        self._advance(scale=scaler.get("scale"), growth=scaler.get("_growth_tracker"), skipped=self.stepper.skipped)
        tensors = {
            **checkpoints.collect_module(self.network, "network."),
            **checkpoints.collect_module(self.loss, "loss."),
            **(checkpoints.collect_module(self.average.network, "average.") if self.average else {}),
            **checkpoints.collect_optimizer(self.stepper.optimizer),
            **{f"random.{rank}.{name}": value for rank, own in enumerate(random) for name, value in own.items()},
        }
        checkpoints.save(self.folder / LAST, self.progress, tensors)

    def _restore(self) -> None:
        path = self.folder / LAST
        if not path.exists():
            return  # it was stopped before its first checkpoint
        found, tensors = checkpoints.load(path)
        changes = resuming.compare(found, self.progress, path)
        checkpoints.restore_module(self.network, tensors, "network.")
        checkpoints.restore_module(self.loss, tensors, "loss.")
        if self.average is not None:
            checkpoints.restore_module(self.average.network, tensors, "average.")
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
        if self.curves is not None:
            self.curves.close()

    def _finish(self, loss: float | None) -> Report:
        self.team.tell(None)  # nobody reads the best weights before they are written
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
    """As it comes back from a checkpoint."""
    plain: dict[str, Any] = json.loads(json.dumps(dict(table), default=str))
    return plain
