"""A network of the library transformers with its weights.

In: an Architecture and the source of its weights. Out: the module. resight reads every file itself (safetensors, or
pickles with weights_only) and hands it to the library as a state dict, because the library knows how names have changed
over its versions. Prefixes of the network's own names ("module.", "teacher.backbone.", "vit.", "vision_model.") are
removed; classifiers, decoders, text models and other copies of the network are left out.
"""

import contextlib
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
import transformers
from huggingface_hub.errors import StrictDataclassError
from transformers.utils import logging

from resight.encode.networks import hub
from resight.encode.networks.architectures import FAMILIES, Architecture
from resight.encode.networks.checkpoint_loader import PREFERRED, State, find_library, read, refuse_misfit, unwrap
from resight.encode.networks.torch_backbone import SEED
from resight.encode.networks.torchvision_compat import declare_missing
from resight.encode.networks.weight_files import PRETRAINED_FILES, find_pretrained, list_shards
from resight.errors import RecipeError

# Keys below the prefix that may be in the file alone: training adds them.
SPARE = re.compile(
    r"(pooler|classifier|cls_classifier|distillation_classifier|decoder|text_model|text_projection|visual_projection"
    r"|logit_scale|logit_bias|dino_head|ibot_head)\b|(.*\.)?(mask_token|position_ids|inv_freq|num_batches_tracked)$"
)
# Keys that may be in the network alone: a pooler is then dropped, a mask token is never used.
OPTIONAL = ("pooler.", "embeddings.mask_token")


def make_module(architecture: Architecture, projection: bool = False) -> Any:
    """The network with random weights, always the same."""
    make, config = _choose_class(architecture, projection)
    with explain_bad_config(architecture), torch.random.fork_rng(devices=[]):
        torch.manual_seed(SEED)
        return make(config)


def load_module(architecture: Architecture, files: list[Path], projection: bool = False) -> Any:
    """The network with the weights of its files."""
    make, config = _choose_class(architecture, projection)
    found = {name: tensor for path in files for name, tensor in unwrap(read(path), path).items()}
    state = extract_state(found, architecture, projection, files[0].name)
    fit_positions(config, state, FAMILIES[architecture.family].prefix)
    with explain_bad_config(architecture), quieten():
        # A copy: the library empties the dictionary while it loads.
        module, report = make.from_pretrained(
            None,
            config=config,
            state_dict=dict(state),
            dtype=torch.float32,
            ignore_mismatched_sizes=True,
            output_loading_info=True,
        )
    own = module.state_dict()
    missing = sorted(name for name in report["missing_keys"] if not name.startswith(OPTIONAL))
    unknown = sorted(name for name in report["unexpected_keys"] if not SPARE.match(name))
    reshaped = {name: (given, wanted) for name, given, wanted in sorted(report["mismatched_keys"])}
    if missing or unknown or reshaped:
        raise refuse_misfit(
            files[0].name,
            {name: own[name].shape for name in missing},
            reshaped,
            {
                name: state[name].shape if name in state else None for name in unknown
            },  # None: the library has renamed it
            "choose the model that they were trained for (resight encoders lists them)",
        )
    if any(name.startswith("pooler.") for name in report["missing_keys"]):
        module.pooler = None
    return module


def fetch_files(model: str) -> list[Path]:
    """The network's files, found on this machine or fetched from the hub."""
    found = find_pretrained(model)
    if found:
        return found
    if Path(model).is_dir():
        raise RecipeError(
            f"the folder {model} holds no weights",
            expected=f"one of {', '.join(PRETRAINED_FILES)}",
            actual=", ".join(sorted(path.name for path in Path(model).iterdir())[:8]) or "nothing",
            fix="save the network with save_pretrained, or set `weights` to a file",
        )
    return [hub.fetch(model, [path.name]) for path in list_shards(hub.fetch(model, PRETRAINED_FILES))]


def extract_state(state: State, architecture: Architecture, projection: bool, file: str) -> State:
    """The tensors of this network, under its own names."""
    anchor = ("vision_model." if projection else "") + FAMILIES[architecture.family].anchor
    matches = (re.fullmatch(rf"((?:.*?\.)??){anchor}", name) for name in state)
    prefixes = [match.group(1) for match in matches if match]
    if not prefixes:
        raise _refuse_naming(state, architecture, anchor, file)
    prefix = max(prefixes, key=lambda one: (any(word in one for word in PREFERRED), -len(one)))
    return {name.removeprefix(prefix): tensor for name, tensor in state.items() if name.startswith(prefix)}


def fit_positions(config: Any, state: State, prefix: int) -> None:
    """Set the image size to that of the state's position embedding; the network still takes any size."""
    for name, tensor in state.items():
        if re.search(r"embeddings\.position_embeddings?(\.weight)?$", name):
            count = tensor.shape[-2] - prefix
            side = math.isqrt(max(count, 0))
            if side * side == count and side != config.image_size // config.patch_size:
                config.image_size = side * config.patch_size


@contextlib.contextmanager
def quieten() -> Iterator[None]:
    """Silence the library's report and progress bar; `load_module` raises an error for what does not fit."""
    verbosity, has_bar = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)
        if has_bar:
            logging.enable_progress_bar()


@contextlib.contextmanager
def explain_bad_config(architecture: Architecture) -> Iterator[None]:
    """Turn the many errors of a config.json with impossible values into a RecipeError."""
    try:
        yield
    except (ArithmeticError, LookupError, StrictDataclassError, TypeError, ValueError) as error:
        raise RecipeError(
            f"the configuration of {architecture.model} makes no sense",
            expected=f"values of {FAMILIES[architecture.family].config}",
            actual=f"{type(error).__name__}: {' '.join(str(error).split())[:200]}",
            fix="correct its config.json",
        ) from error


def _choose_class(architecture: Architecture, projection: bool) -> tuple[Any, Any]:
    family = FAMILIES[architecture.family]
    if projection and not family.projection:
        able = [name for name, one in FAMILIES.items() if one.projection]
        raise RecipeError(
            f"{architecture.model} has no projection",
            expected=f"a network of the family {', '.join(able)}",
            actual=f"family {architecture.family}, projection = true",
            fix="leave projection out: the head is then the vector that the network pools",
        )
    declare_missing()
    with explain_bad_config(architecture):
        config = getattr(transformers, family.config).from_dict({**architecture.config, **family.always})
    return getattr(transformers, family.projection if projection else family.model), config


def _refuse_naming(state: State, architecture: Architecture, anchor: str, file: str) -> RecipeError:
    is_timm = find_library(state) == "timm"
    twin = f"model = {architecture.timm!r}" if architecture.timm else "the model that they were trained for"
    return RecipeError(
        f"the weights in {file} are not those of a {architecture.family} of transformers",
        expected=f"a key that ends in {anchor.replace(chr(92), '')}",
        actual=f"{'names as in timm: ' if is_timm else ''}{', '.join(list(state)[:4])}, …",
        fix=f"use the encoder timm with {twin}"
        if is_timm
        else "choose the model that they were trained for (resight encoders lists them)",
    )
