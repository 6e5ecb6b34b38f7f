"""Where a training stands, as one file that it can go on from: tensors, and in the header of the file the rest as JSON.

One file, because two that are renamed one after the other may not fit each other after a crash. Tensors: weights
(`network.`), the loss' own (`loss.`), their moving average (`average.`), the state of the optimiser (`optimizer.`,
by number of the parameter) and torch's random state of every process (`random.`). The schedule and the order of images
follow from the number of the step. Written under another name and then renamed: a full disk leaves the last one whole.

Whether a training may go on from a checkpoint. In: how it was begun, and what is asked for now. Out: what changed.

Images, processes, network and most settings have to be the same. Those that help after a loss that was not a number may
change; that is noted, as the result is then no longer that of one recipe.
"""

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file
from torch import Tensor, nn

from resight.encode.networks.checkpoint_loader import save_tensors
from resight.errors import InputError
from resight.files.atomic import write_atomic

KEY = "training"
FORMAT = 1
Tensors = dict[str, Tensor]


@dataclasses.dataclass(frozen=True)
class Progress:
    """How far a training has come."""

    step: int = 0  # steps that are done
    epoch: int = 0  # the one that comes next, or is being run
    batch: int = 0  # of that epoch, the one that comes next
    best: float | None = None  # validation so far
    best_epoch: int | None = None
    unreadable: tuple[str, ...] = ()  # ids
    unreadable_held_out: tuple[str, ...] = ()  # ids
    finished: bool = False
    settings: Mapping[str, Any] = dataclasses.field(default_factory=dict)  # that it was started with
    changes: tuple[str, ...] = ()  # of settings when it was resumed, in words
    network: Mapping[str, Any] = dataclasses.field(default_factory=dict)  # what it looks like, and its first weights
    data: str = ""  # fingerprint of the images and their classes
    scale: float | None = None  # of the gradients, with fp16
    growth: int | None = None  # steps since that scale last changed
    skipped: int = 0  # steps that were left out, as gradients did not fit into fp16
    processes: int = 1


def save(path: Path, progress: Progress, tensors: Tensors) -> None:
    header = {KEY: json.dumps({"format": FORMAT, **dataclasses.asdict(progress)}, default=str)}
    kept = "; the last checkpoint is whole" if path.exists() else ""
    problem = f"cannot save the training at step {progress.step}{kept}"
    with write_atomic(path, problem, "make room or choose another place, then go on with --resume") as temporary:
        save_tensors(tensors, temporary, header)


def load(path: Path) -> tuple[Progress, Tensors]:
    try:
        with safe_open(path, framework="pt") as opened:
            header = json.loads((opened.metadata() or {})[KEY])
            tensors = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118 - it is no dictionary
    except (OSError, SafetensorError, KeyError, json.JSONDecodeError) as error:
        raise InputError(
            f"{path} is no checkpoint",
            expected="a file that `resight train` has written",
            actual=str(error),
            fix="start again without --resume, in another folder",
        ) from error
    if header.pop("format") != FORMAT:
        raise InputError(f"{path} is of another version", expected=f"format {FORMAT}", fix="start again")
    lists = {key: tuple(value) for key, value in header.items() if isinstance(value, list)}
    return Progress(**{**header, **lists}), tensors


def save_weights(path: Path, network: nn.Module) -> None:
    with write_atomic(path) as temporary:
        save_tensors(collect_module(network, ""), temporary, {})


def load_weights(path: Path) -> Tensors:
    return load_file(path)


def collect_module(module: nn.Module, prefix: str) -> Tensors:
    return {f"{prefix}{name}": value.detach().cpu().contiguous() for name, value in module.state_dict().items()}


def restore_module(module: nn.Module, tensors: Tensors, prefix: str) -> None:
    try:
        module.load_state_dict(take(tensors, prefix))
    except RuntimeError as error:
        raise InputError(
            "the checkpoint is of another network or loss",
            expected="the names and shapes of its weights",
            actual=str(error)[:300],
            fix="give the same recipe as before, or start again in another --out",
        ) from error


def take(tensors: Tensors, prefix: str) -> Tensors:
    return {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}


def collect_optimizer(optimizer: torch.optim.Optimizer) -> Tensors:
    """Its tensors alone; rates come from the schedule, and what else it holds from the settings."""
    return {
        f"optimizer.{number}.{key}": value.detach().cpu().contiguous()
        for number, state in optimizer.state_dict()["state"].items()
        for key, value in state.items()
        if isinstance(value, Tensor)
    }


def restore_optimizer(optimizer: torch.optim.Optimizer, tensors: Tensors) -> None:
    state: dict[int, dict[str, Tensor]] = {}
    for name, value in take(tensors, "optimizer.").items():
        number, _, key = name.partition(".")
        state.setdefault(int(number), {})[key] = value
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})


FREE = ("workers", "save_every", "patience", "audit", "unreadable")
NOTED = ("rate", "clip", "precision")


def compare(found: Progress, asked: Progress, path: Path) -> tuple[str, ...]:
    """What has changed, in words; refuses to go on with something else than what was begun."""
    then, now = _list_facts(found), _list_facts(asked)
    if not found.network:  # of a version that did not keep it
        now = {key: value for key, value in now.items() if not key.startswith("encoder.")}
    changed = [key for key in now if then.get(key) != now[key]]
    refused = [key for key in changed if key not in (*FREE, *NOTED)]
    if refused:
        raise InputError(
            f"{path} belongs to another training",
            expected=", ".join(f"{key} = {then.get(key)}" for key in refused),
            actual=", ".join(f"{key} = {now[key]}" for key in refused),
            fix="give the same recipe, data and --processes as before (rate, clip and precision may change), "
            "or start again in another --out",
        )
    if found.finished:
        return ()
    return tuple(f"{key} = {now[key]} after step {found.step}, {then[key]} before" for key in changed if key in NOTED)


def _list_facts(progress: Progress) -> dict[str, Any]:
    network = {f"encoder.{key}": value for key, value in progress.network.items()}
    return {"images": progress.data, "processes": progress.processes, **network, **progress.settings}
