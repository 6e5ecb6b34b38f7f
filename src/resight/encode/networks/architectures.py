"""Architectures of the library transformers, before they have any weights.

`describe`: a name of the table architectures.toml, a folder made by save_pretrained, or another id of the hub → an
Architecture: its family, the values of its configuration and how to prepare pictures for it.

FAMILIES holds the families of networks that resight can read: the classes that make the network, where its patches
begin and which arguments let it take any size. Its keys are those of architectures.toml; `types` are those of a
config.json.
"""

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any

import torch

from resight.encode.networks import hub
from resight.encode.preprocess import Interpolation
from resight.errors import RecipeError
from resight.files.documents import load_json, load_toml

CONFIG, PREPROCESSOR = "config.json", "preprocessor_config.json"
FILTERS: dict[int, Interpolation] = {
    2: "bilinear",
    3: "bicubic",
}  # by Pillow's numbers; the rare others count as bicubic


@dataclass(frozen=True)
class Preparation:
    """How the makers prepare pictures."""

    size: int = 224
    mean: tuple[float, ...] = (0.485, 0.456, 0.406)
    deviation: tuple[float, ...] = (0.229, 0.224, 0.225)
    interpolation: Interpolation = "bicubic"
    share: float = 1.0  # of the shorter side


@dataclass(frozen=True)
class Architecture:
    model: str
    family: str
    config: Mapping[str, Any]
    preparation: Preparation
    licence: str = ""  # empty: unknown
    gated: bool = False
    timm: str = ""  # the same architecture in the library timm


def describe(model: str) -> Architecture:
    known = read_table().get(hub.split_revision(model)[0])
    if known is not None:
        return known
    folder = Path(model)
    if folder.is_dir():
        return _read_files(model, folder / CONFIG, folder / PREPROCESSOR)
    if model.startswith((".", "/", "~")) or model.count("/") > 1:
        raise RecipeError(
            f"there is no folder {model}",
            expected="a folder made by save_pretrained, or an id of the Hugging Face hub",
            actual=model,
            fix="check the setting `model`",
        )
    return _read_files(model, hub.fetch(model, [CONFIG]), hub.fetch_optional(model, PREPROCESSOR))


@functools.cache
def read_table() -> dict[str, Architecture]:
    text = resources.files(__package__).joinpath("architectures.toml").read_text(encoding="utf-8")
    return {
        model["id"]: Architecture(
            model["id"],
            group["family"],
            {**group["config"], **model.get("config", {})},
            Preparation(
                model.get("size", group["input"]["size"]),
                tuple(group["input"]["mean"]),
                tuple(group["input"]["deviation"]),
                group["input"]["interpolation"],
                group["input"].get("share", 1.0),
            ),
            group["licence"],
            group.get("gated", False),
            model.get("timm", ""),
        )
        for group in load_toml(text)["group"]
        for model in group["models"]
    }


def _read_files(model: str, config: Path, preprocessor: Path | None) -> Architecture:
    values = _read_json(config)
    kind = values.get("model_type")
    name = next((name for name, family in FAMILIES.items() if kind in family.types), None)
    if name is None:
        raise RecipeError(
            f"{model} is a network of a type that the encoder transformers cannot read",
            expected=f"model_type one of {', '.join(kind for family in FAMILIES.values() for kind in family.types)}",
            actual=str(kind),
            fix="choose one of those, or try the encoder timm",
        )
    inner = values.get(FAMILIES[name].part, {})
    shared = {key: values[key] for key in ("projection_dim",) if key in values}
    chosen = {**inner, **shared} if inner else values
    shown = _read_json(preprocessor) if preprocessor is not None and preprocessor.is_file() else {}
    return Architecture(model, name, chosen, _read_preparation(shown, chosen))


def _read_preparation(shown: Mapping[str, Any], config: Mapping[str, Any]) -> Preparation:
    """The makers' own values where a preprocessor_config.json has them, else the defaults."""
    plain = Preparation()
    resized = _read_side(shown.get("size"))
    cropped = _read_side(shown.get("crop_size")) if shown.get("do_center_crop") else None
    size = cropped or resized or _read_side(config.get("image_size")) or plain.size
    share = size / resized if cropped and resized else float(shown.get("crop_pct") or 1)
    return Preparation(
        size,
        tuple(shown.get("image_mean") or plain.mean),
        tuple(shown.get("image_std") or plain.deviation),
        FILTERS.get(shown.get("resample", 3), "bicubic"),
        min(share, 1.0),
    )


def _read_side(size: Any) -> int | None:
    """From 224, [224, 224], {"height": 224, …} or {"shortest_edge": 224}."""
    if isinstance(size, Mapping):
        size = size.get("height") or size.get("shortest_edge")
    if isinstance(size, list):
        size = size[0]
    return int(size) if size else None


def _read_json(path: Path) -> dict[str, Any]:
    try:
        found = load_json(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise RecipeError(
            f"cannot read {path.name} of {path.parent}",
            expected="a folder made by save_pretrained",
            actual=str(error).partition("\n")[0],
            fix="save the network with save_pretrained, or name an architecture of `resight encoders` and `weights`",
        ) from error
    if not isinstance(found, dict):
        raise RecipeError(f"{path} holds no table", expected="a JSON object", actual=type(found).__name__)
    return found


Arguments = Callable[[torch.Tensor, int], dict[str, Any]]


def no_arguments(_planes: torch.Tensor, _cell: int) -> dict[str, Any]:
    return {}


def interpolate(_planes: torch.Tensor, _cell: int) -> dict[str, Any]:
    return {"interpolate_pos_encoding": True}


def interpolate_in_order(planes: torch.Tensor, cell: int) -> dict[str, Any]:
    """MAE sorts its tokens by noise: rising noise keeps their order."""
    count = (planes.shape[2] // cell) * (planes.shape[3] // cell)
    noise = torch.arange(count, device=planes.device, dtype=torch.float32).expand(planes.shape[0], count)
    return {"interpolate_pos_encoding": True, "noise": noise}


@dataclass(frozen=True)
class Family:
    types: tuple[str, ...]
    config: str  # class of the library
    model: str  # class of the library
    anchor: str  # pattern of a parameter that every checkpoint has; text before it is the prefix of a wrapper
    prefix: int  # tokens before the patches: CLS, then others to drop; registers not counted
    stride: int | None = None  # pixels per side of a cell of the last feature map; None: patches
    arguments: Arguments = no_arguments
    part: str = ""  # key of a config.json that holds the vision half
    projection: str = ""  # class of the library that adds the last linear layer
    always: Mapping[str, Any] = field(default_factory=dict)  # values that override the configuration


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
    # The library puts the mean of the cells first, where others have CLS.
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
