"""Backbones of the place networks: images → maps, without the layers that their heads do not read.

`make_trunk`: a Design → a MapBackbone with random weights.

    ResNets      timm's, whose names are torchvision's; without conv5 for mixvpr and boq; with a floor under the
                 activations for superglobal
    VGG-16       the convolutions, without the last ReLU and pooling (CosPlace, EigenPlaces)
    DINOv2       a vision transformer with CLS, patches of 14 pixels, layer scale; `norm` after the last block, except
                 for boq. Position embeddings are interpolated as DINOv2's own code does it (bicubic, not antialiased,
                 the scale for 0.1 cells more than there are), which differs from timm's way
"""

from dataclasses import replace
from typing import Any

import torch
from torch.nn import functional

from resight.encode.networks import timm_network
from resight.encode.networks.cider.backbone import MapBackbone
from resight.encode.networks.landmark.resnet_stages import ResNetStages
from resight.encode.networks.place.place_design import DINOV2, VGG, Design, prepare
from resight.encode.networks.torch_backbone import Input, Settings

MEAN, DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)  # of ImageNet
PATCH = 14
HEAD_WIDTH = 64  # channels per attention head of every DINOv2
OFFSET = 0.1  # cells that DINOv2 adds before it interpolates
FLOOR = 0.014  # of SuperGlobal's activations


class VggTrunk(MapBackbone):
    def __init__(self, design: Design) -> None:
        super().__init__()
        model = timm_network.load_model(VGG, Settings(untrained=True))
        self.model = torch.nn.Sequential(*list(model.features)[:-2])
        self.channels = int(model.feature_info[-1]["num_chs"])
        self.input = make_input(design, cell=16)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        maps: torch.Tensor = self.model(images)
        return maps


class DinoTrunk(MapBackbone):
    def __init__(self, design: Design) -> None:
        super().__init__()
        from timm.models.vision_transformer import VisionTransformer

        self.model: Any = VisionTransformer(
            img_size=PATCH * design.positions,
            patch_size=PATCH,
            embed_dim=design.width,
            depth=design.depth,
            num_heads=max(design.width // HEAD_WIDTH, 1),
            init_values=1e-5,
            num_classes=0,
            dynamic_img_size=True,
        )
        self._has_norm = design.model != "boq"
        self.channels = design.width
        # SALAD's plan needs more cells than clusters.
        least = PATCH * (int(design.clusters**0.5) + 1) if design.model in ("salad", "megaloc") else PATCH
        self.input = replace(make_input(design, PATCH), whole=True, least=least)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.see(images)[0]

    def see(self, images: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Maps [B, D, h, w] and CLS [B, D]."""
        rows, columns = (side // PATCH for side in images.shape[2:])
        cells = self.model.patch_embed(images).flatten(1, 2)
        tokens = torch.cat([self.model.cls_token.expand(len(images), -1, -1), cells], dim=1)
        tokens = tokens + interpolate_positions(self.model.pos_embed, rows, columns)
        for block in self.model.blocks:
            tokens = block(tokens)
        if self._has_norm:
            tokens = self.model.norm(tokens)
        return tokens[:, 1:].transpose(1, 2).reshape(len(images), -1, rows, columns), tokens[:, 0]


def make_trunk(design: Design) -> MapBackbone:
    if design.backbone == DINOV2:
        return DinoTrunk(design)
    if design.backbone == VGG:
        return VggTrunk(design)
    return make_resnet(design)


def make_resnet(design: Design) -> ResNetStages:
    model = timm_network.load_model(design.backbone, Settings(untrained=True))
    if design.is_cropped:
        model.add_module("layer4", torch.nn.Identity())
    if design.model == "superglobal":
        raise_floors(model)
    trunk = ResNetStages(model, design.backbone)
    trunk.input = make_input(design, cell=16 if design.is_cropped else 32)
    return trunk


def raise_floors(model: Any) -> None:
    """SuperGlobal's ReLUs: within the blocks of conv2, and after every block of conv2, conv3 and conv4."""
    for number in (1, 2, 3):
        for block in getattr(model, f"layer{number}"):
            names = [name for name in ("act1", "act2", "act3") if hasattr(block, name)]
            for name in names if number == 1 else names[-1:]:
                setattr(block, name, Floor())


class Floor(torch.nn.Module):
    def forward(self, values: torch.Tensor) -> torch.Tensor:
        return values.clamp(min=FLOOR)


def make_input(design: Design, cell: int) -> Input:
    prepared = prepare(design)
    is_fixed = design.model == "mixvpr"  # its layers mix a fixed number of cells
    least = prepared.size if is_fixed else cell
    return Input(prepared.size, MEAN, DEVIATION, prepared.interpolation, cell, fixed=is_fixed, least=least)


def interpolate_positions(positions: torch.Tensor, rows: int, columns: int) -> torch.Tensor:
    """[1, 1 + N, D] for a square of N cells → [1, 1 + rows × columns, D]."""
    side = round((positions.shape[1] - 1) ** 0.5)
    if rows == columns == side:
        return positions
    grid = positions[:, 1:].float().reshape(1, side, side, -1).permute(0, 3, 1, 2)
    scale = ((rows + OFFSET) / side, (columns + OFFSET) / side)
    resized = functional.interpolate(grid, scale_factor=scale, mode="bicubic", antialias=False)
    return torch.cat([positions[:, :1], resized.flatten(2).transpose(1, 2).to(positions.dtype)], dim=1)
