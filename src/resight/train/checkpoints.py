"""Checkpoints of a training (`save`, `load`), and whether a training may resume from one (`check_resume`).

A checkpoint is one safetensors file with the tensors and, in its header, the rest as JSON. One file, because after a
crash two files might not match. The tensors are the weights (`network.`), the loss's own (`loss.`), the moving average
(`average.`), the state of the optimiser (`optimizer.`, by number of the parameter) and torch's random state of every
process (`random.`). The learning rate and the order of images follow from the step. The file is written under another
name, then renamed: a full disk leaves the previous checkpoint intact.

To resume, images, processes, network and most settings must be the same. The settings that help after a loss that was
not a number (NOTED) may change; the report lists the change, as the result then no longer follows from one recipe.
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
from resight.files.documents import load_json

KEY = "training"
FORMAT = 1
FREE = ("workers", "save_every", "patience", "audit", "unreadable")
NOTED = ("rate", "clip", "precision")
Tensors = dict[str, Tensor]


@dataclasses.dataclass(frozen=True)
class Progress:
    """The state of a training, apart from its tensors."""

    step: int = 0  # steps done
    epoch: int = 0  # the current or next one
    batch: int = 0  # the next one of that epoch
    best: float | None = None  # best validation so far
    best_epoch: int | None = None
    unreadable: tuple[str, ...] = ()  # ids
    unreadable_held_out: tuple[str, ...] = ()  # ids
    finished: bool = False
    settings: Mapping[str, Any] = dataclasses.field(default_factory=dict)  # at the start
    changes: tuple[str, ...] = ()  # of settings on resume, in words
    network: Mapping[str, Any] = dataclasses.field(default_factory=dict)  # its design and first weights
    data: str = ""  # fingerprint of the images and their classes
    scale: float | None = None  # of gradients, with fp16
    growth: int | None = None  # steps since the last change of that scale
    skipped: int = 0  # steps left out because gradients overflowed fp16
    processes: int = 1


def save(path: Path, progress: Progress, tensors: Tensors) -> None:
    header = {KEY: json.dumps({"format": FORMAT, **dataclasses.asdict(progress)}, default=str)}
    kept = "; the last checkpoint is intact" if path.exists() else ""
    problem = f"cannot save the training at step {progress.step}{kept}"
    with write_atomic(path, problem, "free disk space, then continue with --resume") as temporary:
        save_tensors(tensors, temporary, header)


def load(path: Path) -> tuple[Progress, Tensors]:
    try:
        with safe_open(path, framework="pt") as opened:
            header = load_json((opened.metadata() or {})[KEY])
            tensors = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118 - not a dictionary
    except (OSError, SafetensorError, KeyError, ValueError) as error:
        raise InputError(
            f"{path} is not a checkpoint",
            expected="a file that `resight train` wrote",
            actual=str(error),
            fix="start again without --resume, in another folder",
        ) from error
    if header.pop("format") != FORMAT:
        raise InputError(f"{path} has another format version", expected=f"format {FORMAT}", fix="start again")
    lists = {key: tuple(value) for key, value in header.items() if isinstance(value, list)}
    return Progress(**{**header, **lists}), tensors


def check_resume(found: Progress, wanted: Progress, path: Path) -> tuple[str, ...]:
    """Compare a checkpoint with the training to resume: return allowed changes in words, refuse others."""
    then, now = _list_facts(found), _list_facts(wanted)
    if not found.network:  # written by a version that did not store it
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


def collect_optimizer(optimizer: torch.optim.Optimizer) -> Tensors:
    """Its tensors only; rates follow from the step and all else from the settings."""
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


def take(tensors: Tensors, prefix: str) -> Tensors:
    return {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}


def _list_facts(progress: Progress) -> dict[str, Any]:
    network = {f"encoder.{key}": value for key, value in progress.network.items()}
    return {"images": progress.data, "processes": progress.processes, **network, **progress.settings}
