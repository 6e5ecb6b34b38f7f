"""A network of the library transformers, read as tokens or as a feature map.

In: a module of the library with its weights, its Architecture and settings. Out: a Network for TorchBackbone.
The library's fast attention does not return its weights. The configuration of a module selects the implementation at
every call, so the one block whose attention is wanted gets a copy with "eager", and all others stay fast.
"""

import copy
from typing import Any

import torch

from resight.encode.networks.architectures import FAMILIES, Architecture
from resight.encode.networks.torch_backbone import ForwardHook, Input, Outputs, Settings
from resight.errors import RecipeError

# Settings that change a network's output, but neither the names nor the shapes of its weights.
FACTS = (
    "hidden_act",
    "num_attention_heads",
    "layer_norm_eps",
    "rope_theta",
    "downsample_in_first_stage",
    "downsample_in_bottleneck",
)


class TransformersNetwork:
    def __init__(self, module: Any, architecture: Architecture, settings: Settings) -> None:
        self.module = module
        self.input = describe_input(module, architecture)
        self._family = FAMILIES[architecture.family]
        self._prefix = self._family.prefix + getattr(module.config, "num_register_tokens", 0)
        blocks = find_blocks(module)
        check_block(blocks, settings.block)
        last = len(blocks) - 1 if settings.block is None else settings.block
        self._tokens = None if settings.block is None else ForwardHook(blocks[last], "output")
        self._attention = hook_attention(blocks[last]) if settings.attention and self._prefix else None
        if self._family.stride is None:
            del blocks[last + 1 :]  # the output needs none of them

    def run(self, planes: torch.Tensor) -> Outputs:
        result = self.module(pixel_values=planes, **self._family.arguments(planes, self.input.cell))
        features = result.last_hidden_state if self._tokens is None else self._tokens.take()
        head = self._read_head(result) if self._tokens is None else None
        if features.ndim == 4:
            return Outputs(features.flatten(2).transpose(1, 2), tuple(features.shape[2:]), head=head)
        rows, columns = (side // self.input.cell for side in planes.shape[2:])
        attention = None
        if self._attention is not None:
            _, weights = self._attention.take()  # [B, heads, T, T]
            attention = weights[:, :, 0, self._prefix :].float().mean(dim=1)
        cls = features[:, 0] if self._prefix else None
        return Outputs(features[:, self._prefix :], (rows, columns), cls, attention, head)

    def _read_head(self, result: Any) -> torch.Tensor | None:
        for name in ("image_embeds", "pooler_output"):
            if getattr(result, name, None) is not None:
                vector: torch.Tensor = getattr(result, name).flatten(1)
                return vector
        return result.last_hidden_state[:, 0] if self._prefix else None


def describe_input(module: Any, architecture: Architecture) -> Input:
    shown, stride = architecture.preparation, FAMILIES[architecture.family].stride
    cell = stride or int(module.config.patch_size)
    return Input(
        size=shown.size,
        mean=shown.mean,
        deviation=shown.deviation,
        interpolation=shown.interpolation,
        cell=cell,
        whole=stride is None and shown.size % cell == 0,  # SigLIP's 384 pixels hold 27.4 patches of 14
        share=shown.share,
        least=cell,
    )


def name_network(module: Any, architecture: Architecture) -> str:
    """Equal for equal networks, from the hub, a folder or a file."""
    facts = [f"{fact}={getattr(module.config, fact)}" for fact in FACTS if hasattr(module.config, fact)]
    return " ".join(["transformers", architecture.family, *facts])


def find_blocks(module: torch.nn.Module) -> torch.nn.ModuleList:
    """The blocks of a transformer or the stages of a convolutional network: the first list of modules in it."""
    return next(part for part in module.modules() if isinstance(part, torch.nn.ModuleList))


def check_block(blocks: torch.nn.ModuleList, block: int | None) -> None:
    if block is not None and not 0 <= block < len(blocks):
        raise RecipeError(
            f"the network has no block {block}",
            expected=f"a block from 0 to {len(blocks) - 1}",
            actual=str(block),
            fix="choose another block, or leave it out for the last one after the final norm",
        )


def hook_attention(block: torch.nn.Module) -> ForwardHook | None:
    """A hook on the attention of a block, whose eager implementation returns its output and its weights."""
    parts: list[Any] = [part for part in block.modules() if type(part).__name__.endswith("Attention")]
    if not parts:
        return None
    config = copy.deepcopy(parts[0].config)
    config._attn_implementation = "eager"
    parts[0].config = config
    return ForwardHook(parts[0], "output")
