"""Checkpoint files: read, fitted to a network, and written.

`load_weights`: a file and a network → the network with those weights, or an error that names the keys and shapes that
do not fit. A file is a .safetensors, a .pth, .pt or .bin read with weights_only, or a TorchScript archive, of which the
tensors are read. Nothing in a file is executed. `load_weights` removes what training wraps around a state dict: the
keys "state_dict", "model", "teacher", …, and any prefix of the network's own names, such as "module.backbone.". Of
several copies of the network it prefers a teacher or an average. Heads that the network does not have are left out.

`save_tensors`: tensors → a .safetensors file; a full disk raises OSError, as with any other file.
"""

import argparse
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from resight.encode import torch_file
from resight.errors import InputError, RecipeError

WRAPPERS = (
    "state_dict_ema",
    "model_ema",
    "ema",
    "teacher",
    "state_dict",
    "model_state_dict",
    "model_state",
    "model",
    "network",
    "student",
)
PREFERRED = ("teacher", "ema")  # words in the prefix of a copy of the network
# Parts of names that identify the library of a state dict.
NAMINGS = {
    "transformers": ("encoder.layer.", "encoder.layers.", "vision_model.", "embeddings.", "layer.0.attention."),
    "timm": ("blocks.0.", "patch_embed.", "stages.0.blocks.", "layer1.0."),
}
SHOWN = 4
State = dict[str, torch.Tensor]
Shape = Sequence[int]


def load_weights(
    module: torch.nn.Module,
    path: Path,
    *,
    spare: Iterable[str] = (),
    optional: Iterable[str] = (),
    adapt: Callable[[State], State] | None = None,
) -> None:
    """Fill `module` from a file.

    Keys that begin with one of `spare` may be in the file alone, those with one of `optional` in the network alone;
    `adapt` changes the state before its shapes are compared.
    """
    known = module.state_dict()
    wanted = {name: tensor for name, tensor in known.items() if not name.endswith("num_batches_tracked")}
    found = unwrap(read(path), path)
    state = extract_state(found, set(known), tuple(spare))
    if adapt is not None:
        state = adapt(state)
    missing = [name for name in wanted if name not in state and not name.startswith(tuple(optional))]
    unknown = [name for name in state if name not in known and not name.startswith(tuple(spare))]
    reshaped = [name for name in wanted if name in state and state[name].shape != wanted[name].shape]
    if missing or unknown or reshaped:
        raise refuse_misfit(
            path.name,
            {name: wanted[name].shape for name in missing},
            {name: (state[name].shape, wanted[name].shape) for name in reshaped},
            {name: state[name].shape for name in unknown},
            advise(found, known),
        )
    module.load_state_dict({name: tensor for name, tensor in state.items() if name in wanted}, strict=False)


def refuse_misfit(
    file: str,
    missing: Mapping[str, Shape],
    reshaped: Mapping[str, tuple[Shape, Shape]],
    unknown: Mapping[str, Shape | None],
    fix: str,
) -> RecipeError:
    """`reshaped` holds the shapes in the file and in the network."""
    wanted = [*missing.items(), *((name, own) for name, (_, own) in reshaped.items())]
    parts = (
        _list("missing", list(missing)),
        _list("of another shape", [f"{name} {_shape(given)}" for name, (given, _) in reshaped.items()]),
        _list(
            "not in the network",
            [name + (f" {_shape(shape)}" if shape is not None else "") for name, shape in unknown.items()],
        ),
    )
    return RecipeError(
        f"the weights in {file} do not fit this network",
        expected=_list("keys", [f"{name} {_shape(shape)}" for name, shape in wanted]) or "no other keys",
        actual="; ".join(part for part in parts if part),
        fix=fix,
    )


def read(path: Path) -> Mapping[str, object]:
    if torch_file.is_script(path):
        return read_script(path)
    try:
        # Training scripts save their options beside the weights, as a plain namespace.
        with torch.serialization.safe_globals([argparse.Namespace]):
            found = (
                load_file(path)
                if path.suffix == ".safetensors"
                else torch.load(path, map_location="cpu", weights_only=True)
            )
    except FileNotFoundError as error:
        raise RecipeError(
            f"there are no weights {path}",
            expected="a .safetensors or .pth file",
            actual="no such file",
            fix="check the setting `weights`",
        ) from error
    except Exception as error:  # a damaged file may raise anything
        raise RecipeError(
            f"cannot read the weights {path}",
            expected="a .safetensors file, or a .pth file that holds only tensors",
            actual=f"{type(error).__name__}: {error}".partition("\n")[0],
            fix="check the path; save a state dict of tensors, best as .safetensors",
        ) from error
    if not isinstance(found, Mapping):
        raise RecipeError(
            f"{path.name} holds no state dict",
            expected="a table of tensors by name",
            actual=type(found).__name__,
            fix="save the network's state dict",
        )
    return found


def read_script(path: Path) -> Mapping[str, object]:
    """The tensors of a TorchScript archive; the program in it is not run."""
    try:
        return {name: torch.from_numpy(array) for name, array in torch_file.load_script(path).items()}
    except (InputError, TypeError) as error:
        raise RecipeError(
            f"cannot read the weights in the TorchScript archive {path}",
            expected="an archive with tensors by name; resight never runs the program in one",
            actual=error.problem if isinstance(error, InputError) else str(error),
            fix="use the authors' file of plain weights (.pth, .safetensors), or export the network to ONNX",
        ) from error


def unwrap(found: Mapping[str, object], path: Path) -> State:
    """The table of tensors inside a training checkpoint."""
    for key in WRAPPERS:
        inner = found.get(key)
        if isinstance(inner, Mapping) and inner:
            return unwrap(inner, path)
    state = {str(name): value for name, value in found.items() if isinstance(value, torch.Tensor)}
    if not state:
        raise RecipeError(
            f"{path.name} holds no tensors",
            expected=f"tensors by name, at the top or below one of {', '.join(WRAPPERS)}",
            actual=_list("keys", [str(name) for name in found]) or "nothing",
            fix="save the network's state dict",
        )
    return state


def extract_state(state: State, known: set[str], spare: tuple[str, ...] = ()) -> State:
    """The network's part of a state, under the network's own names.

    Tensors outside that part keep their full names, unless they are spare or belong to another copy of the network.
    """
    counts = Counter(name.removesuffix(ending) for name in state for ending in _list_endings(name) if ending in known)
    if not counts:
        return state
    prefix = max(counts, key=lambda one: (counts[one], any(word in one for word in PREFERRED), -len(one)))
    inside = {name.removeprefix(prefix): tensor for name, tensor in state.items() if name.startswith(prefix)}
    outside = {
        name: tensor
        for name, tensor in state.items()
        if not name.startswith(prefix)
        and not any(ending in known or ending.startswith(spare) for ending in _list_endings(name))
    }
    return {**outside, **inside}


def advise(state: State, known: Iterable[str]) -> str:
    given, own = find_library(state), find_library(known)
    if given is not None and own is not None and given != own:
        return f"their names are those of {given}: use the encoder {given!r} with the model that they were trained for"
    return "choose the model that they were trained for (resight encoders lists them)"


def find_library(names: Iterable[str]) -> str | None:
    """The library whose naming most of the names follow."""
    counts = Counter(
        library for name in names for library, parts in NAMINGS.items() if any(part in name for part in parts)
    )
    return max(counts, key=lambda library: counts[library]) if counts else None


def _list_endings(name: str) -> Iterator[str]:
    """The name without its first 0, 1, 2, … parts."""
    parts = name.split(".")
    for start in range(len(parts)):
        yield ".".join(parts[start:])


def _shape(shape: Shape) -> str:
    return "×".join(map(str, shape)) or "one number"


def _list(title: str, names: list[str]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return f"{title} {', '.join(names[:SHOWN])}{more}" if names else ""


def save_tensors(tensors: Mapping[str, Tensor], path: Path, header: Mapping[str, str]) -> None:
    try:
        save_file(dict(tensors), path, metadata=dict(header))
    except SafetensorError as error:  # hides the system's error
        raise OSError(str(error)) from error
