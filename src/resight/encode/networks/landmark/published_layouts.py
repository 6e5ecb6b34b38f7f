"""Checkpoints in the layout of the networks' authors, read into ours.

In: a network and a file of `resight train`, or one that the authors' code saves. Out: the network with those weights;
RecipeError if a tensor is missing, left over or of another shape. The layouts are those of the public repositories
lyakaap/Landmark2019-1st-and-3rd-Place-Solution (gem), tonyngjichun/SOLAR, feymanpriv/DOLG and MCC-WH/Token; none is
known for GLAM. They were read from the code; no published file was at hand. A file does not say its sizes: set those
that it was trained with, e.g.

    { name = "landmark", design = "token", weights = "R101-Token.pth", dimensions = 1024, width = 1024 }
    { name = "landmark", design = "dolg", weights = "r101_dolg_512.pyth", dimensions = 512, atrous = false }

DOLG's code shows its network blue, green, red: the first convolution is turned round, so that it takes red first.
"""

import re
from pathlib import Path

from resight.encode.networks.checkpoint_loader import load_weights, read, unwrap
from resight.encode.networks.landmark.landmark_design import Name
from resight.encode.networks.landmark.landmark_network import LandmarkNetwork
from resight.encode.networks.layout_rules import Rules, fill, list_pycls_rules

WRAPPER = "module."  # of torch's DataParallel
FIRST = "globalmodel.stem.conv.weight"  # convolution of DOLG
UNUSED = (
    r"(final|desc_cls|classifier)\..*"  # of training alone
    r"|.*\.soa[45]\.gamma"  # a parameter that SOLAR's code never reads
)

# The first rule of each network is its anchor: a file without such a name has our own layout.
LAYOUTS: dict[Name, Rules] = {
    "gem": (
        (r"backbone\.0\.(.*)", "trunk.model.conv1.{0}"),
        (r"backbone\.1\.(.*)", "trunk.model.bn1.{0}"),
        *((rf"backbone\.{number + 3}\.(.*)", f"trunk.model.layer{number}.{{0}}") for number in (1, 2, 3, 4)),
        (r"fc\.(.*)", "head.embed.project.{0}"),
        (r"bn\.(.*)", "head.embed.norm.{0}"),
    ),
    "solar": (
        (r"features\.conv1\.0\.(.*)", "trunk.model.conv1.{0}"),
        (r"features\.conv1\.1\.(.*)", "trunk.model.bn1.{0}"),
        (r"features\.conv2_x\.2\.(.*)", "trunk.model.layer1.{0}"),
        *((rf"features\.conv{number + 1}_x\.(.*)", f"trunk.model.layer{number}.{{0}}") for number in (2, 3, 4)),
        (r"features\.soa([45])\.f\.(.*)", "head.attention{0}.query.{1}"),
        (r"features\.soa([45])\.g\.(.*)", "head.attention{0}.key.{1}"),
        (r"features\.soa([45])\.h\.(.*)", "head.attention{0}.value.{1}"),
        (r"features\.soa([45])\.v\.(.*)", "head.attention{0}.back.{1}"),
        (r"pool\.p", "head.pool.p"),
        (r"whiten\.(.*)", "head.whiten.{0}"),
    ),
    "dolg": (
        *list_pycls_rules(r"globalmodel\."),
        (r"localmodel\.aspp\.im_pool\.1\.(.*)", "head.local.context.whole.{0}"),
        (r"localmodel\.aspp\.aspp\.0\.(.*)", "head.local.context.point.{0}"),
        *(
            (rf"localmodel\.aspp\.aspp\.{number}\.(.*)", f"head.local.context.dilated.{number - 1}.{{0}}")
            for number in (1, 2, 3)
        ),
        (r"localmodel\.aspp\.conv_after\.0\.(.*)", "head.local.context.join.{0}"),
        (r"localmodel\.conv1\.(.*)", "head.local.reduce.{0}"),
        (r"localmodel\.bn\.(.*)", "head.local.norm.{0}"),
        (r"localmodel\.conv2\.(.*)", "head.local.score.{0}"),
        (r"pool_g\.p", "head.pool.p"),
        (r"fc_t\.(.*)", "head.reduce.{0}"),
        (r"fc\.(.*)", "head.project.{0}"),
    ),
    "token": (
        (r"backbone\.block1\.0\.(.*)", "trunk.model.conv1.{0}"),
        (r"backbone\.block1\.1\.(.*)", "trunk.model.bn1.{0}"),
        *((rf"backbone\.block{number + 1}\.(.*)", f"trunk.model.layer{number}.{{0}}") for number in (1, 2, 3, 4)),
        (r"tr\.conv\.(.*)", "head.reduce.{0}"),
        (r"tr\.query", "head.tokenize.patterns"),
        (r"tr\.token_norm\.0\.(.*)", "head.tokenize.mix.{0}"),
        (r"tr\.token_norm\.1\.(.*)", "head.tokenize.norm.{0}"),
        (r"tr\.encoder\.0\.bn\.(.*)", "head.relate.norm.{0}"),
        (r"tr\.encoder\.0\.mlp\.(.*)", "head.relate.mix.{0}"),
        (r"tr\.decoder\.(\d+)\.bn1\.(.*)", "head.refine.{0}.norm_cells.{1}"),
        (r"tr\.decoder\.(\d+)\.bn2\.(.*)", "head.refine.{0}.norm_tokens.{1}"),
        (r"tr\.decoder\.(\d+)\.mlp\.fc1\.(.*)", "head.refine.{0}.mix.0.{1}"),
        (r"tr\.decoder\.(\d+)\.mlp\.fc2\.(.*)", "head.refine.{0}.mix.3.{1}"),
        *(
            rule
            for theirs, ours in {"q": "query", "k": "key", "v": "value", "proj": "back"}.items()
            for rule in (
                (rf"tr\.encoder\.0\.attn\.{theirs}\.(.*)", f"head.relate.attend.{ours}.{{0}}"),
                (rf"tr\.decoder\.(\d+)\.cross_attn\.{theirs}\.(.*)", f"head.refine.{{0}}.attend_cells.{ours}.{{1}}"),
                (rf"tr\.decoder\.(\d+)\.self_attn\.{theirs}\.(.*)", f"head.refine.{{0}}.attend_tokens.{ours}.{{1}}"),
            )
        ),
        (r"tr\.proj\.0\.(.*)", "head.embed.project.{0}"),
        (r"tr\.proj\.1\.(.*)", "head.embed.norm.{0}"),
    ),
}


def load_landmark_weights(network: LandmarkNetwork, path: Path) -> None:
    """Fill `network` from a file in our layout or in that of the authors."""
    state = {name.removeprefix(WRAPPER): tensor for name, tensor in unwrap(read(path), path).items()}
    rules = LAYOUTS.get(network.design.design, ())
    if not any(re.fullmatch(rules[0][0], name) for name in state if rules):
        load_weights(network, path)
        return
    if network.design.design == "dolg":
        state = {name: tensor.flip(1) if name == FIRST else tensor for name, tensor in state.items()}
    fix = "set design, backbone, dimensions, width and atrous as the network was trained"
    fill(network, state, rules, UNUSED, path.name, fix)
