"""Checkpoints in the layout of other code: names of tensors translated by rules, then every shape compared.

In: a module, its rules and a state. Out: the module with those weights; RecipeError if a tensor is missing, left over
or of another shape. A rule is a pattern of a name in the file and the name in the module; `{0}`, `{1}`, … stand for the
pattern's groups. `list_pycls_rules`: a ResNet in the naming of pycls, which the code of DOLG, DELG and CVNet shares.
"""

import re
from collections.abc import Callable, Mapping, Sequence

import torch

from resight.encode.networks.checkpoint_loader import State, refuse_misfit

Rule = tuple[str, str | Callable[[re.Match[str]], str]]
Rules = Sequence[Rule]
COUNTER = "num_batches_tracked"


def fill(module: torch.nn.Module, state: State, rules: Rules, unused: str, file: str, fix: str) -> None:
    """Fill every tensor of `module`. `unused`: a pattern of names that the file may have beside them."""
    known = module.state_dict()
    renamed = rename(state, rules, known, unused)
    missing = [name for name in known if name not in renamed and not name.endswith(COUNTER)]
    unknown = [name for name in renamed if name not in known and not name.endswith(COUNTER)]
    reshaped = [name for name in renamed if name in known and renamed[name].shape != known[name].shape]
    if missing or unknown or reshaped:
        raise refuse_misfit(
            file,
            {name: known[name].shape for name in missing},
            {name: (renamed[name].shape, known[name].shape) for name in reshaped},
            {name: renamed[name].shape for name in unknown},
            fix,
        )
    module.load_state_dict({name: renamed[name] for name in known if name in renamed}, strict=False)


def rename(state: State, rules: Rules, known: Mapping[str, torch.Tensor], unused: str) -> State:
    """The tensors under our names; those that no rule names keep theirs."""
    renamed: State = {}
    for name, tensor in state.items():
        if re.fullmatch(unused, name):
            continue
        new = _rename_one(name, rules)
        is_same_but_for_ones = new in known and known[new].numel() == tensor.numel()  # p [1] and query [1, L, d]
        renamed[new] = tensor.reshape(known[new].shape) if is_same_but_for_ones else tensor
    return renamed


def list_pycls_rules(prefix: str, trunk: str = "trunk.model") -> list[Rule]:
    """`prefix`: a pattern of the text before `stem` and `s1`, which ends with a dot. pycls counts blocks from 1."""
    parts = {"proj": "downsample.0", "bn": "downsample.1"}
    parts |= {f"f\\.{letter}": f"conv{number}" for number, letter in enumerate("abc", 1)}
    parts |= {f"f\\.{letter}_bn": f"bn{number}" for number, letter in enumerate("abc", 1)}
    return [
        (rf"{prefix}stem\.conv\.(.*)", f"{trunk}.conv1.{{0}}"),
        (rf"{prefix}stem\.bn\.(.*)", f"{trunk}.bn1.{{0}}"),
        *(
            (rf"{prefix}s(\d)\.b(\d+)\.{theirs}\.(.*)", renumber(f"{trunk}.layer{{0}}.{{1}}.{ours}.{{2}}", 0, -1))
            for theirs, ours in parts.items()
        ),
    ]


def renumber(new: str, *steps: int) -> Callable[[re.Match[str]], str]:
    """A name whose first groups are numbers, counted from another start."""

    def make(match: re.Match[str]) -> str:
        groups = match.groups()
        moved = [int(group) + step for group, step in zip(groups, steps, strict=False)]
        return new.format(*moved, *groups[len(steps) :])

    return make


def _rename_one(name: str, rules: Rules) -> str:
    for pattern, new in rules:
        match = re.fullmatch(pattern, name)
        if match:
            return new.format(*match.groups()) if isinstance(new, str) else new(match)
    return name
