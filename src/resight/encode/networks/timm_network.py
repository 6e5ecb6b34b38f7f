"""A network of timm, read as tokens or as a feature map.

In: a timm model with its weights, and settings. Out: a Network for TorchBackbone. Tokens are those after the final norm
as timm's `forward_features` gives them, or those of `block` as they are. Of the leading tokens the first is CLS where
the network has one; a distillation token and registers are left out. `head` is timm's `forward_head` before the
classifier (the pooled vector; of VGG its fc7), or after it where the last layer is a projection.
"""

from typing import Any

import torch

from resight.encode.networks.capture import Capture
from resight.encode.networks.settings import Settings
from resight.encode.networks.torch_backbone import Input, Outputs
from resight.errors import RecipeError


class TimmNetwork:
    def __init__(self, model: Any, settings: Settings) -> None:
        self.input = describe_input(model)
        self.module: torch.nn.Module = Passage(model, settings.projection, with_head=settings.block is None)
        self._prefix: int = getattr(model, "num_prefix_tokens", 0)
        self._has_cls = self._prefix > 0 and getattr(model, "cls_token", None) is not None
        self._is_map_last = getattr(model, "output_fmt", "NCHW") == "NHWC"
        self._block = None if settings.block is None else capture_block(model, settings.block)
        self._attention = capture_attention(model, settings.block) if settings.attention and self._has_cls else None

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


class Passage(torch.nn.Module):
    """Features and head in one call, which is what torch.compile compiles."""

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
    made_for = model.pretrained_cfg
    is_dynamic = bool(getattr(model, "dynamic_img_size", False))
    is_fixed = bool(made_for.get("fixed_input_size")) and not is_dynamic
    cell = int(model.feature_info[-1]["reduction"])
    size = int(made_for["input_size"][-1])
    return Input(
        size=size,
        mean=tuple(made_for["mean"]),
        deviation=tuple(made_for["std"]),
        interpolation="bilinear" if made_for["interpolation"] == "bilinear" else "bicubic",
        cell=cell,
        fixed=is_fixed,
        whole=is_dynamic,
        share=float(made_for.get("crop_pct") or 1),
        least=cell if is_dynamic else size if is_fixed else find_least(model, cell, size),
    )


def find_least(model: Any, cell: int, size: int) -> int:
    """The smallest side, in whole cells, of which the convolutions of a model in eval mode leave anything."""
    for side in range(cell, size, cell):
        try:
            with torch.inference_mode():
                model.forward_features(torch.zeros(1, 3, side, side))
        except (RuntimeError, ValueError, AssertionError):
            continue
        return side
    return size


def capture_block(model: Any, block: int) -> Capture:
    """The block's output; what comes after it is cut off where timm knows how to."""
    if not 0 <= block < len(model.feature_info):
        raise RecipeError(
            f"the network has no block {block}",
            expected=f"a block from 0 to {len(model.feature_info) - 1}",
            actual=str(block),
            fix="choose another block, or leave it out for the last one after the final norm",
        )
    captured = Capture(model.get_submodule(model.feature_info[block]["module"]), "output")
    if hasattr(model, "prune_intermediate_layers"):
        model.prune_intermediate_layers(indices=[block], prune_norm=True, prune_head=True)
    return captured


def capture_attention(model: Any, block: int | None) -> Capture | None:
    """The softmax of the block, for which that one block must take the way that has it as a value."""
    blocks = getattr(model, "blocks", None)
    layer: Any = getattr(blocks[-1 if block is None else block], "attn", None) if blocks is not None else None
    if not hasattr(layer, "fused_attn") or not hasattr(layer, "attn_drop"):
        return None
    layer.fused_attn = False
    return Capture(layer.attn_drop, "input")


def read_attention(softmax: torch.Tensor | None, tokens: torch.Tensor, prefix: int) -> torch.Tensor | None:
    """[B, heads, T, T] → [B, patches]: the row of CLS, mean over heads."""
    if softmax is None or softmax.shape[-1] != tokens.shape[1]:  # attention that CLS takes no part in
        return None
    return softmax[:, :, 0, prefix:].float().mean(dim=1)
