"""Published checkpoints of place networks: their names of tensors, and the design that their shapes tell.

In: the name of a network and a file. Out: the network of the file's design with the file's weights; RecipeError where
the file is of another network, or a tensor is missing, left over or of another shape. Names and shapes were read from
the public code:

    sscd                     facebookresearch/sscd-copy-detection, the files for torchvision and for Classy Vision
    cosplace, eigenplaces    gmberton/CosPlace, gmberton/EigenPlaces
    mixvpr                   amaralibey/MixVPR; the bias of its last layer from gmberton/VPR-methods-evaluation
    boq                      amaralibey/Bag-of-Queries
    salad, megaloc           serizba/salad, gmberton/MegaLoc (the file of release v1.0, and the one on the hub)
    delg                     feymanpriv/DELG; Google's own files are for TensorFlow, and not read
    superglobal              sungonce/CVNet and ShihaoShao-GH/SuperGlobal

No published file was at hand. The code of the last two shows its networks blue, green, red: the first convolution is
turned round, so that it takes red first.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import torch

from resight.encode.networks.checkpoint_loader import State, read, unwrap
from resight.encode.networks.layout_rules import Rule, Rules, fill, list_pycls_rules, rename, renumber
from resight.encode.networks.place.place_design import DINOV2, PUBLISHED, RESNEXT, VGG, Design, Name
from resight.encode.networks.place.place_network import PlaceNetwork, make_network
from resight.errors import RecipeError

WRAPPER = "module."  # of torch's DataParallel
FIRST = "trunk.model.conv1.weight"
# Bottleneck blocks or basic ones, and the number of blocks of conv4 → name in timm.
DEPTHS = {
    (False, 2): "resnet18",
    (False, 6): "resnet34",
    (True, 6): "resnet50",
    (True, 23): "resnet101",
    (True, 36): "resnet152",
}
NOTHING = r"(?!)"
BLOCK = r"backbone\.blocks\.(\d)\.(?:block\d-)?(\d+)\.(?:_module\.)?"  # of Classy Vision


def list_sequence_rules(prefix: str) -> list[Rule]:
    """A ResNet whose layers were put into a torch.nn.Sequential."""
    return [
        (rf"{prefix}0\.(.*)", "trunk.model.conv1.{0}"),
        (rf"{prefix}1\.(.*)", "trunk.model.bn1.{0}"),
        *((rf"{prefix}{number + 3}\.(.*)", f"trunk.model.layer{number}.{{0}}") for number in (1, 2, 3, 4)),
    ]


def list_classy_rules() -> list[Rule]:
    """Classy Vision's ResNets; older versions wrap each block in a `_module`."""
    parts = {r"convolutional_block\.0": "conv1", r"convolutional_block\.1": "bn1", "downsample": "downsample"}
    parts |= {r"convolutional_block\.3": "conv2", r"convolutional_block\.4": "bn2", r"convolutional_block\.6": "conv3"}
    return [
        (r"backbone\.initial_block\._module\.0\.(.*)", "trunk.model.conv1.{0}"),
        (r"backbone\.initial_block\._module\.1\.(.*)", "trunk.model.bn1.{0}"),
        *(
            (rf"{BLOCK}{theirs}\.(.*)", renumber(f"trunk.model.layer{{0}}.{{1}}.{ours}.{{2}}", 1))
            for theirs, ours in {**parts, "bn": "bn3"}.items()
        ),
        (r"embeddings\.1\.(.*)", "head.project.{0}"),
    ]


POOLED: Rules = (
    (r"aggregation\.1\.p", "head.pool.p"),
    (r"aggregation\.3\.(.*)", "head.project.{0}"),
    *list_sequence_rules(r"backbone\."),
)
POOLED_VGG: Rules = (*POOLED[:2], (r"backbone\.(.*)", "trunk.model.{0}"))
SALAD: Rules = (
    (r"backbone\.(?:model\.)?(.*)", "trunk.model.{0}"),
    (r"aggregator\.(?:agg\.)?token_features\.(.*)", "head.scene.{0}"),
    # The authors' dropout is layer 1.
    *(
        (rf"aggregator\.(?:agg\.)?{theirs}\.{number}\.(.*)", f"head.{ours}.{own}.{{0}}")
        for theirs, ours in {"cluster_features": "features", "score": "scores"}.items()
        for number, own in ((0, 0), (3, 2))
    ),
    (r"aggregator\.(?:agg\.)?dust_bin", "head.dustbin"),
    (r"aggregator\.linear\.(.*)", "head.project.{0}"),
)
LAYOUTS: Mapping[Name, Rules] = {
    "sscd": (
        *list_classy_rules(),
        (r"backbone\.fc\.(.*)", "head.project.{0}"),
        (r"backbone\.(.*)", "trunk.model.{0}"),
    ),
    "cosplace": POOLED,
    "eigenplaces": POOLED,
    "mixvpr": (
        (r"backbone\.model\.(.*)", "trunk.model.{0}"),
        (r"aggregator\.mix\.(\d+)\.mix\.(.*)", "head.mix.{0}.{1}"),
        (r"aggregator\.channel_proj\.(.*)", "head.project_channels.{0}"),
        (r"aggregator\.row_proj\.(.*)", "head.project_cells.{0}"),
    ),
    "boq": (
        (r"backbone\.dino\.(.*)", "trunk.model.{0}"),
        *list_sequence_rules(r"backbone\.net\."),
        (r"aggregator\.proj_c\.(.*)", "head.reduce.{0}"),
        (r"aggregator\.norm_input\.(.*)", "head.norm.{0}"),
        (r"aggregator\.fc\.(.*)", "head.project.{0}"),
        *(
            (rf"aggregator\.boqs\.(\d+)\.{theirs}(.*)", f"head.blocks.{{0}}.{ours}{{1}}")
            for theirs, ours in {
                "self_attn": "relate",
                "norm_q": "norm_queries",
                "cross_attn": "look",
                "norm_out": "norm_answers",
                "": "",
            }.items()
        ),
    ),
    "salad": SALAD,
    "megaloc": SALAD,
    "delg": (
        *list_pycls_rules(r"globalmodel\."),
        (r"globalmodel\.head\.pool\.p", "head.pool.p"),
        (r"globalmodel\.head\.fc\.(.*)", "head.project.{0}"),
        (r"localmodel\.conv1\.(.*)", "head.reduce.{0}"),
        (r"localmodel\.bn\.(.*)", "head.norm.{0}"),
        (r"localmodel\.conv2\.(.*)", "head.score.{0}"),
    ),
    "superglobal": (
        *list_pycls_rules(r"encoder_q\."),
        (r"encoder_q\.head\.fc\.(.*)", "head.project.{0}"),
    ),
}
UNUSED: Mapping[Name, str] = {
    "boq": r".*\.mask_token",
    "salad": r".*\.mask_token",
    "megaloc": r".*\.mask_token",
    "delg": r"(desc_cls|att_cls)\..*",  # of training alone
    # CVNet's other encoder and reranker, and parameters that SuperGlobal's code never reads.
    "superglobal": r"(?!encoder_q\.).*|encoder_q\.(head\.pool|seb\d|sefc)\..*",
}


def load_network(model: Name, path: Path) -> PlaceNetwork:
    """The network of a published file, or of one in our own names."""
    state = translate(model, unwrap(read(path), path))
    network = make_network(read_design(model, state, path.name))
    fill(network, state, (), NOTHING, path.name, f"use a file of {model}: `resight encoders` lists the networks")
    return network


def translate(model: Name, state: State) -> State:
    """The tensors under our names, red first; names that are ours already stay."""
    if any(name.startswith("head.") for name in state):
        return state
    state = {name.removeprefix(WRAPPER): tensor for name, tensor in state.items()}
    rules = LAYOUTS[model]
    if rules is POOLED and "backbone.0.bias" in state:  # a ResNet's first convolution has no bias
        rules = POOLED_VGG
    renamed = rename(state, rules, {}, UNUSED.get(model, NOTHING))
    if model in ("delg", "superglobal") and FIRST in renamed:
        renamed[FIRST] = renamed[FIRST].flip(1)
    return renamed


def read_design(model: Name, state: State, file: str) -> Design:
    """The design that the shapes of tensors tell, under our names."""
    try:
        return _read_head(_read_trunk(PUBLISHED[model], state), state)
    except (KeyError, IndexError) as error:
        raise RecipeError(
            f"the weights in {file} are not those of {model}",
            expected=f"tensors named and shaped as in its authors' code; nothing fits {error}",
            actual=", ".join(list(state)[:4]) + ", …",
            fix="use a file that its authors published, or their code saved",
        ) from error


def _read_trunk(design: Design, state: State) -> Design:
    positions = state.get("trunk.model.pos_embed")
    if positions is not None:
        depth = _count(state, r"trunk\.model\.blocks\.(\d+)\..*")
        side = math.isqrt(max(positions.shape[1] - 1, 0))
        return replace(design, backbone=DINOV2, width=positions.shape[2], depth=depth, positions=side)
    if "trunk.model.28.weight" in state:
        return replace(design, backbone=VGG)
    middle = state["trunk.model.layer1.0.conv2.weight"]
    has_bottlenecks = "trunk.model.layer1.0.conv3.weight" in state
    name = DEPTHS[has_bottlenecks, _count(state, r"trunk\.model\.layer3\.(\d+)\..*")]
    if has_bottlenecks and middle.shape[1] < middle.shape[0]:  # convolutions in groups
        name = RESNEXT
    return replace(design, backbone=name, is_cropped="trunk.model.layer4.0.conv1.weight" not in state)


def _read_head(design: Design, state: State) -> Design:
    def size(name: str, axis: int = 0) -> int:
        return int(state[f"head.{name}"].shape[axis])

    if design.model in ("salad", "megaloc"):
        design = replace(
            design,
            clusters=size("scores.2.weight"),
            cluster_channels=size("features.2.weight"),
            scene=size("scene.2.weight"),
            hidden=size("scene.0.weight"),
        )
        total = design.scene + design.clusters * design.cluster_channels
        return replace(design, dimensions=total if design.model == "salad" else size("project.weight"))
    if design.model == "boq":
        projected, rows = size("norm.weight"), size("project.weight")
        blocks = _count(state, r"head\.blocks\.(\d+)\..*")
        queries = size("blocks.0.queries", 1)
        return replace(
            design, projected=projected, rows=rows, depth_of_head=blocks, queries=queries, dimensions=rows * projected
        )
    if design.model == "mixvpr":
        projected, rows = size("project_channels.weight"), size("project_cells.weight")
        return replace(
            design,
            projected=projected,
            rows=rows,
            dimensions=rows * projected,
            cells=math.isqrt(size("project_cells.weight", 1)),
            mixed=size("mix.0.1.weight"),
            depth_of_head=_count(state, r"head\.mix\.(\d+)\..*"),
            has_bias="head.project_cells.bias" in state,
        )
    if design.model == "delg":
        design = replace(design, hidden=size("reduce.weight"))
    return replace(design, dimensions=size("project.weight"))


def _count(state: Mapping[str, torch.Tensor], pattern: str) -> int:
    """One more than the largest number in the pattern's group."""
    matches = (re.fullmatch(pattern, name) for name in state)
    return 1 + max((int(match.group(1)) for match in matches if match), default=-1)
