"""A checkpoint of one's own, put into a network.

In: a file (.safetensors, or .pth, .pt, .bin read with weights_only, so that nothing in it is run) and a network.
Out: the network with those weights, or an error that names the keys and shapes that do not fit. What training wraps
around a state dict is taken off: the keys "state_dict", "model", "teacher", "student", …, and prefixes such as
"module." and "backbone."; heads that the network does not have are left out.
"""

import pickle
from collections.abc import Iterable, Mapping
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file

from resight.errors import RecipeError

WRAPPERS = ("state_dict", "model_state_dict", "teacher", "model_ema", "model", "network", "student")
PREFIXES = ("module.", "_orig_mod.", "backbone.", "encoder.", "model.", "network.", "trunk.", "visual.")
SHOWN = 4
State = dict[str, torch.Tensor]


def load_weights(
    module: torch.nn.Module, path: Path, *, spare: Iterable[str] = (), optional: Iterable[str] = ()
) -> None:
    """Fill `module` from a file.

    `spare` are beginnings of keys that a file may have and the network need not; `optional` those that the network
    has and a file need not.
    """
    wanted = {name: tensor for name, tensor in module.state_dict().items() if not name.endswith("num_batches_tracked")}
    state = find_best_prefix(unwrap(read(path), path), set(wanted))
    missing = [name for name in wanted if name not in state and not name.startswith(tuple(optional))]
    unknown = [name for name in state if name not in module.state_dict() and not name.startswith(tuple(spare))]
    bent = [name for name in wanted if name in state and state[name].shape != wanted[name].shape]
    if missing or unknown or bent:
        raise RecipeError(
            f"the weights in {path.name} do not fit this network",
            expected=_list("keys", [f"{name} {_shape(wanted[name])}" for name in [*missing, *bent]]) or "no other keys",
            actual="; ".join(
                part
                for part in (
                    _list("missing", missing),
                    _list("of another shape", [f"{name} {_shape(state[name])}" for name in bent]),
                    _list("not in the network", [f"{name} {_shape(state[name])}" for name in unknown]),
                )
                if part
            ),
            fix="choose the model that they were trained for (resight encoders lists them), or the other library",
        )
    module.load_state_dict({name: tensor for name, tensor in state.items() if name in wanted}, strict=False)


def read(path: Path) -> Mapping[str, object]:
    try:
        if path.suffix == ".safetensors":
            return load_file(path)
        found = torch.load(path, map_location="cpu", weights_only=True)
    except (OSError, SafetensorError, RuntimeError, EOFError, ValueError, pickle.UnpicklingError) as error:
        raise RecipeError(
            f"cannot read the weights {path}",
            expected="a .safetensors file, or a .pth file that holds tensors alone",
            actual=str(error).partition("\n")[0],
            fix="check the path; save a state dict of tensors, best as .safetensors",
        ) from error
    if not isinstance(found, Mapping):
        raise RecipeError(
            f"{path.name} holds no state dict", expected="a table of tensors by name", actual=type(found).__name__
        )
    return found


def unwrap(found: Mapping[str, object], path: Path) -> State:
    """The table of tensors inside what training saves."""
    for key in WRAPPERS:
        inner = found.get(key)
        if isinstance(inner, Mapping):
            return unwrap(inner, path)
    state = {name: value for name, value in found.items() if isinstance(value, torch.Tensor)}
    if not state:
        raise RecipeError(
            f"{path.name} holds no tensors",
            expected=f"tensors by name, at the top or below one of {', '.join(WRAPPERS)}",
            actual=_list("keys", list(found)) or "nothing",
            fix="save the network's state dict",
        )
    return state


def find_best_prefix(state: State, wanted: set[str]) -> State:
    """The state with the prefixes off that training puts on, as far as that makes more keys fit."""
    while True:
        tried = [{_cut(name, prefix): tensor for name, tensor in state.items()} for prefix in PREFIXES]
        best = max(tried, key=lambda one: len(wanted & one.keys()))
        better = len(wanted & best.keys()) > len(wanted & state.keys())
        wrapped = next((one for one in tried if state and all(name not in state for name in one)), None)
        if better:
            state = best
        elif wrapped is not None and not wanted & state.keys():
            state = wrapped  # every key has it: there may be another prefix below
        else:
            return state


def _cut(name: str, prefix: str) -> str:
    return name.removeprefix(prefix)


def _shape(tensor: torch.Tensor) -> str:
    return "×".join(map(str, tensor.shape)) or "one number"


def _list(title: str, names: list[str]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return f"{title} {', '.join(names[:SHOWN])}{more}" if names else ""
