"""A network of timm: its weights, and its output as tokens or as a feature map.

`load_model`: a model's name and settings → the model with random weights, with those of a file of your own, or with its
makers' from the cache of this machine or the hub. The makers' weights are loaded strictly, including the classifier
that comes with them. The classifier is dropped afterwards unless it is a projection that the settings ask for, so that
a checkpoint of your own needs none and equal weights have equal fingerprints.

`TimmNetwork`: that model and settings → a Network for TorchBackbone. Tokens are those after the final norm, as timm's
`forward_features` gives them, or those of `block` as they are. Of the leading tokens the first is CLS where the network
has one; a distillation token and registers are dropped. `head` is timm's `forward_head` before the classifier (the
pooled vector; of VGG its fc7), or after it where the last layer is a projection.
"""

import difflib
import math
from pathlib import Path
from typing import Any

import torch

from resight.encode.networks import hub
from resight.encode.networks.checkpoint_loader import State, load_weights
from resight.encode.networks.torch_backbone import SEED, ForwardHook, Input, Outputs, Settings
from resight.encode.networks.torchvision_compat import declare_missing
from resight.encode.networks.weight_files import TIMM_FILES
from resight.errors import MissingWeights, RecipeError

declare_missing()  # timm imports torchvision

import timm  # noqa: E402
from timm.data.imagenet_info import infer_imagenet_subset  # noqa: E402
from timm.layers import resample_abs_pos_embed  # noqa: E402

# Parts that training adds and retrieval does not need: classifiers, heads and decoders of self-supervision.
SPARE = ("head", "fc.", "classifier.", "decoder", "mask_token", "dino_head", "ibot_head", "projector", "predictor")


class TimmNetwork:
    def __init__(self, model: Any, settings: Settings) -> None:
        self.input = describe_input(model)
        self.module: torch.nn.Module = FeaturesAndHead(model, settings.projection, with_head=settings.block is None)
        self._prefix: int = getattr(model, "num_prefix_tokens", 0)
        self._has_cls = self._prefix > 0 and getattr(model, "cls_token", None) is not None
        self._is_map_last = getattr(model, "output_fmt", "NCHW") == "NHWC"
        self._block = None if settings.block is None else hook_block(model, settings.block)
        self._attention = hook_attention(model, settings.block) if settings.attention and self._has_cls else None

    def run(self, planes: torch.Tensor) -> Outputs:
        features, head = self.module(planes)
        if self._block is not None:
            features = self._block.take()
        if features.ndim == 4:
            return self._read_map(features, head)
        return self._read_tokens(features, head, planes)

    def _read_map(self, features: torch.Tensor, head: torch.Tensor | None) -> Outputs:
        planes_last = features if self._is_map_last else features.permute(0, 2, 3, 1)
        rows, columns = planes_last.shape[1:3]
        return Outputs(planes_last.flatten(1, 2), (rows, columns), head=head)

    def _read_tokens(self, tokens: torch.Tensor, head: torch.Tensor | None, planes: torch.Tensor) -> Outputs:
        rows, columns = (side // self.input.cell for side in planes.shape[2:])
        if tokens.shape[1] != self._prefix + rows * columns:
            raise RecipeError(
                "the tokens of this network lie on no grid",
                expected=f"{self._prefix} and {columns} × {rows} tokens",
                actual=f"{tokens.shape[1]} tokens",
                fix="choose another model or block",
            )
        attention = None if self._attention is None else read_attention(self._attention.take(), tokens, self._prefix)
        cls = tokens[:, 0] if self._has_cls else None
        return Outputs(tokens[:, self._prefix :], (rows, columns), cls, attention, head)


class FeaturesAndHead(torch.nn.Module):
    """Features and head in one call, for torch.compile."""

    def __init__(self, model: Any, projection: bool, with_head: bool) -> None:
        super().__init__()
        self.model = model
        self._projection = projection
        self._with_head = with_head

    def forward(self, planes: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor | None]:
        features = self.model.forward_features(planes)
        if not self._with_head:
            return features, None
        return features, self.model.forward_head(features, pre_logits=not self._projection)


def describe_input(model: Any) -> Input:
    published = model.pretrained_cfg
    is_dynamic = bool(getattr(model, "dynamic_img_size", False))
    is_fixed = bool(published.get("fixed_input_size")) and not is_dynamic
    cell = int(model.feature_info[-1]["reduction"])
    size = int(published["input_size"][-1])
    return Input(
        size=size,
        mean=tuple(published["mean"]),
        deviation=tuple(published["std"]),
        interpolation="bilinear" if published["interpolation"] == "bilinear" else "bicubic",
        cell=cell,
        fixed=is_fixed,
        whole=is_dynamic,
        share=float(published.get("crop_pct") or 1),
        least=cell if is_dynamic else size if is_fixed else find_least(model, cell, size),
    )


def find_least(model: Any, cell: int, size: int) -> int:
    """The smallest side, in whole cells, that leaves a feature map after all convolutions of a model in eval mode."""
    for side in range(cell, size, cell):
        try:
            with torch.inference_mode():
                model.forward_features(torch.zeros(1, 3, side, side))
        except (RuntimeError, ValueError, AssertionError):
            continue
        return side
    return size


def hook_block(model: Any, block: int) -> ForwardHook:
    """A hook on the block's output; the layers after it are removed where timm can."""
    if not 0 <= block < len(model.feature_info):
        raise RecipeError(
            f"the network has no block {block}",
            expected=f"a block from 0 to {len(model.feature_info) - 1}",
            actual=str(block),
            fix="choose another block, or leave it out for the last one after the final norm",
        )
    hook = ForwardHook(model.get_submodule(model.feature_info[block]["module"]), "output")
    if hasattr(model, "prune_intermediate_layers"):
        model.prune_intermediate_layers(indices=[block], prune_norm=True, prune_head=True)
    return hook


def hook_attention(model: Any, block: int | None) -> ForwardHook | None:
    """A hook on the softmax of the block, which may not run fused then."""
    blocks = getattr(model, "blocks", None)
    layer: Any = getattr(blocks[-1 if block is None else block], "attn", None) if blocks is not None else None
    if not hasattr(layer, "fused_attn") or not hasattr(layer, "attn_drop"):
        return None
    layer.fused_attn = False
    return ForwardHook(layer.attn_drop, "input")


def read_attention(softmax: torch.Tensor | None, tokens: torch.Tensor, prefix: int) -> torch.Tensor | None:
    """[B, heads, T, T] → [B, patches]: the row of CLS, mean over heads."""
    if softmax is None or softmax.shape[-1] != tokens.shape[1]:  # attention without CLS
        return None
    return softmax[:, :, 0, prefix:].float().mean(dim=1)


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
    """The model with the weights of its makers' file, or with random ones that are always the same."""
    if path is None:
        return _create(name, None)
    try:
        return _create(name, {"file": str(path), "custom_load": path.suffix == ".npz"})
    except Exception as error:  # a damaged file may raise anything
        raise MissingWeights(
            f"the weights of {name} in the cache cannot be used",
            expected=f"those that timm gives for it in {path}",
            actual="; ".join(line.strip() for line in str(error).splitlines()[:2]) or type(error).__name__,
            fix="delete that file; it is then fetched again",
        ) from error


def find_file(name: str) -> Path | None:
    """The makers' weights on this machine."""
    published = timm.get_pretrained_cfg(name)
    if published is None:
        return None
    path = hub.find(published.hf_hub_id, _list_files(published)) if published.hf_hub_id else None
    if path is None and published.url and _cache_path(published.url).is_file():
        return _cache_path(published.url)
    return path


def fetch_file(name: str) -> Path:
    """The makers' weights from the hub, or MissingWeights."""
    published = timm.get_pretrained_cfg(name)
    if published is None or not (published.hf_hub_id or published.url):
        raise refuse_weights(name)
    if published.hf_hub_id:
        return hub.fetch(published.hf_hub_id, _list_files(published))
    path = _cache_path(published.url)
    with hub.explain_failure(name):
        path.parent.mkdir(parents=True, exist_ok=True)
        torch.hub.download_url_to_file(published.url, str(path), progress=False)
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
            fix="leave projection out: the head is then the vector before its last layer",
        )


def resample_positions(state: State, model: Any) -> State:
    """The state with its position embedding on the model's grid, where only that differs."""
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
        torch.manual_seed(SEED)  # no position embedding that timm can interpolate
        return timm.create_model(name, pretrained=source is not None, pretrained_cfg_overlay=source)


def _list_files(published: Any) -> tuple[str, ...]:
    return (published.hf_hub_filename,) if published.hf_hub_filename else TIMM_FILES


def _cache_path(url: str) -> Path:
    return Path(torch.hub.get_dir()) / "checkpoints" / url.rpartition("/")[2]


def _refuse_name(name: str, close: list[str]) -> RecipeError:
    return RecipeError(
        f"timm has no model {name!r}",
        expected=f"e.g. {', '.join(close)}" if close else "a name that timm.list_models() gives",
        actual=repr(name),
        fix="check the spelling; a name is an architecture, or an architecture, a dot and the tag of its weights",
    )
