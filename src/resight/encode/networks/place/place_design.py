"""The design of a place network: which head, on which backbone, and every size of both.

A weights file tells its design by the shapes of its tensors (place_layouts.py); PUBLISHED holds the usual one of each
network, for random weights.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

Name = Literal["sscd", "cosplace", "eigenplaces", "mixvpr", "boq", "salad", "megaloc", "delg", "superglobal"]
DINOV2, VGG, RESNEXT = "dinov2", "vgg16", "resnext101_32x4d"
RESNETS = ("resnet18", "resnet34", "resnet50", "resnet101", "resnet152")  # by timm's names


@dataclass(frozen=True)
class Design:
    model: Name
    backbone: str
    dimensions: int  # of the descriptor
    is_cropped: bool = False  # a ResNet without conv5
    width: int = 768  # dinov2: channels
    depth: int = 12  # dinov2: blocks
    positions: int = 37  # dinov2: rows and columns of the position embedding
    clusters: int = 64  # salad, megaloc
    cluster_channels: int = 128  # salad, megaloc: of each cluster
    scene: int = 256  # salad, megaloc: dimensions from CLS
    hidden: int = 512  # salad, megaloc: channels between the two layers of an MLP; delg: of a local feature
    projected: int = 512  # boq, mixvpr: channels after the first projection
    queries: int = 64  # boq: of each block
    depth_of_head: int = 2  # boq, mixvpr: blocks
    rows: int = 32  # boq, mixvpr: outputs of the last projection
    cells: int = 20  # mixvpr: rows and columns of the map that it mixes
    mixed: int = 400  # mixvpr: hidden values of a mixing layer
    has_bias: bool = True  # mixvpr: of the last projection


@dataclass(frozen=True)
class Preparation:
    """How the authors show images to the network."""

    size: int
    interpolation: Literal["bilinear", "bicubic"] = "bilinear"


PUBLISHED: Mapping[Name, Design] = {
    "sscd": Design("sscd", "resnet50", 512),
    "cosplace": Design("cosplace", "resnet50", 2048),
    "eigenplaces": Design("eigenplaces", "resnet50", 2048),
    "mixvpr": Design("mixvpr", "resnet50", 4096, True, projected=1024, depth_of_head=4, rows=4),
    "boq": Design("boq", DINOV2, 12288, projected=384, rows=32),
    "salad": Design("salad", DINOV2, 8448),
    "megaloc": Design("megaloc", DINOV2, 8448, cluster_channels=256),
    "delg": Design("delg", "resnet50", 512),
    "superglobal": Design("superglobal", "resnet50", 2048),
}


BACKBONES: Mapping[Name, tuple[str, ...]] = {  # that the authors' code has
    "sscd": (*RESNETS, RESNEXT),
    "cosplace": (*RESNETS, VGG),
    "eigenplaces": (*RESNETS, VGG),
    "mixvpr": RESNETS,
    "boq": (*RESNETS, DINOV2),
    "salad": (DINOV2,),
    "megaloc": (DINOV2,),
    "delg": RESNETS,
    "superglobal": RESNETS,
}


def choose_design(model: Name, backbone: str | None) -> Design:
    """The published design; None: on its usual backbone."""
    design = PUBLISHED[model]
    if backbone in (None, design.backbone):
        return design
    if model == "boq":
        return replace(design, backbone=str(backbone), is_cropped=True, projected=512, dimensions=16384)
    return replace(design, backbone=str(backbone), dimensions=1024 if backbone == RESNEXT else design.dimensions)


def prepare(design: Design) -> Preparation:
    """Sizes of cosplace, eigenplaces, delg and superglobal are resight's: their authors keep each image's own size."""
    if design.model == "boq":
        return Preparation(322 if design.backbone == DINOV2 else 384, "bicubic")
    if design.model == "mixvpr":
        return Preparation(16 * design.cells, "bicubic")
    return Preparation({"sscd": 320, "salad": 322, "megaloc": 322}.get(design.model, 512))
