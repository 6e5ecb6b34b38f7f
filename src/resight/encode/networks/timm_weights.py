"""A timm model with its weights.

In: a model's name and settings. Out: the model, its weights random, from a file of one's own, or its makers' from the
cache of this machine or the hub. The makers' weights are loaded strictly, with the classifier that they come with. It
is dropped afterwards unless it is a projection that is asked for, so that a checkpoint of one's own needs none and the
same weights have the same fingerprint.
"""

import difflib
import math
from pathlib import Path
from typing import Any

import timm
import torch
from timm.data.imagenet_info import infer_imagenet_subset
from timm.layers import resample_abs_pos_embed

from resight.encode.networks import hub
from resight.encode.networks.checkpoints import State, load_weights
from resight.encode.networks.settings import Settings
from resight.encode.networks.torch_backbone import SEED
from resight.errors import MissingWeights, RecipeError

FILES = ("model.safetensors", "pytorch_model.bin")  # of a repository on the hub, in the order that timm tries them
# What training adds to a network and retrieval does not need: classifiers, heads and decoders of self-supervision.
SPARE = ("head", "fc.", "classifier.", "decoder", "mask_token", "dino_head", "ibot_head", "projector", "predictor")


def load_model(name: str, settings: Settings) -> Any:
    check_name(name)
    is_own = settings.untrained or settings.weights is not None
    model = create(name, None if is_own else find_file(name) or fetch_file(name))
    if settings.projection:
        check_projection(model, name)
    else:
        model.reset_classifier(0)
    if settings.weights is not None:
        load_weights(model, settings.weights, spare=SPARE, adapt=lambda state: resample_positions(state, model))
    return model.eval()


def check_name(name: str) -> None:
    architecture, _, tag = name.partition(".")
    if not timm.is_model(architecture):
        raise _refuse_name(name, difflib.get_close_matches(architecture, timm.list_models(), n=4, cutoff=0.5))
    tagged = timm.list_pretrained(f"{architecture}.*")
    if tag and name not in tagged:
        raise _refuse_name(name, difflib.get_close_matches(name, tagged, n=4, cutoff=0) or [architecture])


def create(name: str, path: Path | None) -> Any:
    """The model with the weights in a file of its makers, or with random ones that are always the same."""
    if path is None:
        return _create(name, None)
    try:
        return _create(name, {"file": str(path), "custom_load": path.suffix == ".npz"})
    except Exception as error:  # what a damaged file may raise is anything at all
        raise MissingWeights(
            f"the weights of {name} in the cache cannot be used",
            expected=f"those that timm gives for it in {path}",
            actual="; ".join(line.strip() for line in str(error).splitlines()[:2]) or type(error).__name__,
            fix="delete that file, so that it is fetched again",
        ) from error


def find_file(name: str) -> Path | None:
    """The makers' weights on this machine."""
    made_for = timm.get_pretrained_cfg(name)
    if made_for is None:
        return None
    path = hub.find(made_for.hf_hub_id, _list_files(made_for)) if made_for.hf_hub_id else None
    if path is None and made_for.url and _place(made_for.url).is_file():
        return _place(made_for.url)
    return path


def fetch_file(name: str) -> Path:
    """The makers' weights from the hub, or MissingWeights."""
    made_for = timm.get_pretrained_cfg(name)
    if made_for is None or not (made_for.hf_hub_id or made_for.url):
        raise refuse_weights(name)
    if made_for.hf_hub_id:
        return hub.fetch(made_for.hf_hub_id, _list_files(made_for))
    path = _place(made_for.url)
    with hub.explain_failure(name):
        path.parent.mkdir(parents=True, exist_ok=True)
        torch.hub.download_url_to_file(made_for.url, str(path), progress=False)
    return path


def refuse_weights(name: str) -> MissingWeights:
    tagged = timm.list_pretrained(f"{name.partition('.')[0]}.*")
    return MissingWeights(
        f"timm has no weights for {name}",
        expected=f"one of {', '.join(tagged[:4])}" if tagged else "a model that timm has weights for",
        actual=repr(name),
        fix="choose another model, set weights to a checkpoint of your own, or untrained = true for random ones",
    )


def check_projection(model: Any, name: str) -> None:
    classes = infer_imagenet_subset({"num_classes": model.num_classes})
    if model.num_classes == 0 or classes is not None:
        raise RecipeError(
            f"{name} has no projection",
            expected="a network whose last linear layer leads to a space shared with texts, as CLIP's",
            actual="no last layer" if classes is None else f"a classifier of {model.num_classes} classes ({classes})",
            fix="leave projection out: the network's own vector is then the one before its last layer",
        )


def resample_positions(state: State, model: Any) -> State:
    """The state with its position embedding on the model's grid, where that is all that differs."""
    given, wanted = state.get("pos_embed"), getattr(model, "pos_embed", None)
    if given is None or wanted is None or given.ndim != 3 or given.shape == wanted.shape:
        return state
    prefix = 0 if getattr(model, "no_embed_class", False) else model.num_prefix_tokens
    side = math.isqrt(max(given.shape[1] - prefix, 0))
    if side == 0 or side * side != given.shape[1] - prefix or given.shape[2] != wanted.shape[2]:
        return state
    grid = list(model.patch_embed.grid_size)
    return {**state, "pos_embed": resample_abs_pos_embed(given, grid, [side, side], num_prefix_tokens=prefix)}


def _create(name: str, source: dict[str, Any] | None) -> Any:
    with torch.random.fork_rng(devices=[]):
        try:
            torch.manual_seed(SEED)
            return timm.create_model(
                name, pretrained=source is not None, pretrained_cfg_overlay=source, dynamic_img_size=True
            )
        except TypeError as error:
            if "dynamic_img_size" not in str(error):
                raise
        torch.manual_seed(SEED)  # no position embedding to interpolate, or none that timm can
        return timm.create_model(name, pretrained=source is not None, pretrained_cfg_overlay=source)


def _list_files(made_for: Any) -> tuple[str, ...]:
    return (made_for.hf_hub_filename,) if made_for.hf_hub_filename else FILES


def _place(url: str) -> Path:
    return Path(torch.hub.get_dir()) / "checkpoints" / url.rpartition("/")[2]


def _refuse_name(name: str, close: list[str]) -> RecipeError:
    return RecipeError(
        f"timm has no model {name!r}",
        expected=f"e.g. {', '.join(close)}" if close else "a name that timm.list_models() gives",
        actual=repr(name),
        fix="check the spelling; a name is an architecture, or an architecture, a dot and the tag of its weights",
    )
