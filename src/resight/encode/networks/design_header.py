"""Networks that resight trains: weights and design in one .safetensors file.

The file's header holds the design, a frozen dataclass of settings, as JSON under a key of its kind of network ("cider",
"landmark"), so that a collection needs a copy of that file and nothing else. A file without this key holds weights of
the design that the settings give.
"""

import dataclasses
import json
from pathlib import Path
from typing import Any, TypeVar

import torch
from safetensors import SafetensorError, safe_open

from resight import plugins
from resight.encode.networks.checkpoint_loader import save_tensors
from resight.errors import RecipeError
from resight.files.atomic import write_atomic
from resight.files.documents import parse_json

Design = TypeVar("Design")


def save_network(network: torch.nn.Module, design: Any, key: str, path: Path) -> None:
    """Write weights and design as one .safetensors file."""
    state = {name: tensor.detach().cpu().contiguous() for name, tensor in network.state_dict().items()}
    fix = "free some disk space; continue an interrupted training with --resume"
    with write_atomic(path, f"cannot save the network as {path}", fix) as temporary:
        save_tensors(state, temporary, {key: json.dumps(dataclasses.asdict(design), sort_keys=True)})


def read_design(kind: type[Design], key: str, path: Path) -> Design | None:
    """The design in the header; None where there is none or the file is unreadable, which loading it will report."""
    try:
        with safe_open(path, framework="np") as opened:
            header = opened.metadata() or {}
    except (OSError, SafetensorError):
        return None
    if key not in header:
        return None
    table = parse_json(header[key], what=f"the description of the network in {path.name}", error=RecipeError)
    design: Design = plugins.configure(kind, table, f"the network in {path.name}")
    return design


def choose_design(asked: Design, found: Design | None, file: str) -> Design:
    """The file's design; RecipeError where a setting asks for another value."""
    if found is None:
        return asked
    plain = type(asked)()
    for field in dataclasses.fields(asked):  # type: ignore[arg-type]
        wanted, own = getattr(asked, field.name), getattr(found, field.name)
        if wanted not in (own, getattr(plain, field.name)):
            raise RecipeError(
                f"the network in {file} was trained with another {field.name}",
                expected=f"{field.name} = {own!r}",
                actual=repr(wanted),
                fix="leave the setting out: the file knows its design",
            )
    return found
