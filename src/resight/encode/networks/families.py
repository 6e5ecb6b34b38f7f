"""The families of networks of the library transformers that resight knows how to read.

A family says which classes make the network, where its patches begin and what it must be told to take any size. The
names are those of the table architectures.toml; `types` are those of a config.json.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

Arguments = Callable[[torch.Tensor, int], dict[str, Any]]


def give_nothing(_planes: torch.Tensor, _cell: int) -> dict[str, Any]:
    return {}


def interpolate(_planes: torch.Tensor, _cell: int) -> dict[str, Any]:
    return {"interpolate_pos_encoding": True}


def interpolate_in_order(planes: torch.Tensor, cell: int) -> dict[str, Any]:
    """MAE sorts its tokens by noise: rising noise leaves them as they are."""
    count = (planes.shape[2] // cell) * (planes.shape[3] // cell)
    noise = torch.arange(count, device=planes.device, dtype=torch.float32).expand(planes.shape[0], count)
    return {"interpolate_pos_encoding": True, "noise": noise}


@dataclass(frozen=True)
class Family:
    types: tuple[str, ...]
    config: str  # class of the library
    model: str  # class of the library
    anchor: str  # pattern of a parameter that every checkpoint has; what stands before it is a wrapper's prefix
    prefix: int  # tokens before the patches: CLS first, then what is left out; registers come on top
    stride: int | None = None  # pixels a side of a cell of the last feature map; None: the patches
    arguments: Arguments = give_nothing
    part: str = ""  # the key of a config.json that the vision half stands under
    projection: str = ""  # class of the library that adds the last linear layer
    always: Mapping[str, Any] = field(default_factory=dict)  # whatever the configuration says


TOKEN = r"embeddings\.cls_token"
PATCH = r"embeddings\.patch_embedding\.weight"
FAMILIES = {
    "vit": Family(("vit",), "ViTConfig", "ViTModel", TOKEN, 1, arguments=interpolate),
    "deit": Family(("deit",), "DeiTConfig", "DeiTModel", TOKEN, 2, arguments=interpolate),
    "vit_mae": Family(
        ("vit_mae",),
        "ViTMAEConfig",
        "ViTMAEModel",
        TOKEN,
        1,
        arguments=interpolate_in_order,
        always={"mask_ratio": 0.0},
    ),
    "dinov2": Family(("dinov2",), "Dinov2Config", "Dinov2Model", TOKEN, 1),
    "dinov2_with_registers": Family(
        ("dinov2_with_registers",), "Dinov2WithRegistersConfig", "Dinov2WithRegistersModel", TOKEN, 1
    ),
    "dinov3_vit": Family(("dinov3_vit",), "DINOv3ViTConfig", "DINOv3ViTModel", TOKEN, 1),
    # The library puts the mean of the cells before them, so that they look like CLS and patches.
    "dinov3_convnext": Family(
        ("dinov3_convnext",),
        "DINOv3ConvNextConfig",
        "DINOv3ConvNextModel",
        r"(?:model\.)?stages\.0\.downsample_layers\.0\.weight",
        1,
        stride=32,
    ),
    "clip": Family(
        ("clip", "clip_vision_model"),
        "CLIPVisionConfig",
        "CLIPVisionModel",
        PATCH,
        1,
        arguments=interpolate,
        part="vision_config",
        projection="CLIPVisionModelWithProjection",
    ),
    "siglip": Family(
        ("siglip", "siglip_vision_model"),
        "SiglipVisionConfig",
        "SiglipVisionModel",
        PATCH,
        0,
        arguments=interpolate,
        part="vision_config",
    ),
    "resnet": Family(
        ("resnet",), "ResNetConfig", "ResNetModel", r"embedder\.embedder\.convolution\.weight", 0, stride=32
    ),
    "convnext": Family(
        ("convnext",), "ConvNextConfig", "ConvNextModel", r"embeddings\.patch_embeddings\.weight", 0, stride=32
    ),
    "convnextv2": Family(
        ("convnextv2",), "ConvNextV2Config", "ConvNextV2Model", r"embeddings\.patch_embeddings\.weight", 0, stride=32
    ),
}
