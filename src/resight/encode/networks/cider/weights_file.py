"""A trained network as one file: its weights, and in the header of the file what the network looks like.

A collection keeps a copy of the file and needs nothing beside it. The header's key `cider` holds the Design as JSON;
a file without it is read as weights of the design that the settings give.
"""

import dataclasses
import json
from pathlib import Path

from safetensors import SafetensorError, safe_open

from resight import plugins
from resight.encode.networks.checkpoint_loader import save_tensors
from resight.encode.networks.cider.design import Design
from resight.encode.networks.cider.network import CiderNetwork
from resight.errors import RecipeError
from resight.files.atomic import write_atomic

KEY = "cider"


def save_network(network: CiderNetwork, path: Path) -> None:
    state = {name: tensor.detach().cpu().contiguous() for name, tensor in network.state_dict().items()}
    fix = "make room; where it was being trained, go on with --resume"
    with write_atomic(path, f"cannot save the network as {path}", fix) as temporary:
        save_tensors(state, temporary, write_header(network.design))


def write_header(design: Design) -> dict[str, str]:
    """For whoever writes the file by other means."""
    return {KEY: json.dumps(dataclasses.asdict(design), sort_keys=True)}


def read_design(path: Path) -> Design | None:
    """None where the file does not say, or cannot be read at all (which loading its weights will tell)."""
    try:
        with safe_open(path, framework="np") as opened:
            header = opened.metadata() or {}
    except (OSError, SafetensorError):
        return None
    if KEY not in header:
        return None
    design: Design = plugins.configure(Design, json.loads(header[KEY]), f"the network in {path.name}")
    return design


def choose_design(asked: Design, found: Design | None, file: str) -> Design:
    """The file's, unless a setting asks for something else."""
    if found is None:
        return asked
    plain = Design()
    for field in dataclasses.fields(Design):
        wanted, own = getattr(asked, field.name), getattr(found, field.name)
        if wanted not in (own, getattr(plain, field.name)):
            raise RecipeError(
                f"the network in {file} was trained with another {field.name}",
                expected=f"{field.name} = {own!r}",
                actual=repr(wanted),
                fix="leave the setting out: the file says what its network looks like",
            )
    return found
