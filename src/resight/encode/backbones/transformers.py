"""A network of the library transformers: ViT, DINO, DINOv2, DINOv3, CLIP, SigLIP, MAE, DeiT, ResNet, ConvNeXt.

In: pictures. Out: Features with `grid` and `patches`; `cls`, `attention` and `head` where the network has them.

    patches, cls   the library's `last_hidden_state`: after the final norm, except for CLIP, where the library norms
                   only CLS, for the head, and for ResNet and ConvNeXt, whose feature map has no norm. Registers and
                   the distillation token are dropped. With `block`: the output of that block
    attention      the row of CLS over the patches in the last block (or `block`), mean over heads; the softmax is
                   over all tokens, so it sums to less than 1. None without CLS (SigLIP and convolutions)
    head           the library's `pooler_output` (CLIP: the normed CLS; SigLIP: attention pooling; DINOv2 and DINOv3:
                   the normed CLS; ResNet and ConvNeXt: the mean of the cells), or CLS where there is no trained pooler;
                   with `projection` CLIP's vector in the space that it shares with texts; none with `block`

`model` is an id of the Hugging Face hub or a folder made by save_pretrained. For the ids of architectures.toml resight
fetches only weights from the hub, and with `weights` or `untrained` nothing. Every size works: positions are
interpolated.
"""

from dataclasses import dataclass, replace
from pathlib import Path

import torch

from resight.encode.backbones import About
from resight.encode.networks.architectures import describe, read_table
from resight.encode.networks.pretrained import fetch_files, load_module, make_module
from resight.encode.networks.torch_backbone import Settings, TorchBackbone
from resight.encode.networks.transformers_network import TransformersNetwork, name_network
from resight.encode.networks.weight_files import find_pretrained, refuse_absent
from resight.errors import MissingWeights

ABOUT = About(
    "vision transformer or convolutional network",
    384,
    "patch of the image, or cell of the feature map",
    "the Hugging Face hub, a folder made by save_pretrained, or a checkpoint of your own",
    "each network's own",
)


@dataclass(frozen=True)
class Config(Settings):
    model: str = "facebook/dinov2-small"  # id on the Hugging Face hub, or a folder made by save_pretrained


def build(config: Config) -> TorchBackbone:
    architecture = describe(config.model)
    if config.untrained:
        module = make_module(architecture, config.projection)
    else:
        files = [config.weights] if config.weights is not None else fetch_files(config.model)
        module = load_module(architecture, files, config.projection)
    network = TransformersNetwork(module, architecture, config)
    return TorchBackbone(network, config, name_network(module, architecture))


def sketch(config: Config) -> TransformersNetwork:
    """The network without values, on torch's meta device."""
    architecture = describe(config.model)
    with torch.device("meta"):
        module = make_module(architecture, config.projection)
        return TransformersNetwork(module, architecture, replace(config, attention=False))


def find_weights(config: Config) -> Path | None:
    """The (first) file with the weights, found without reading it and without the hub; None: it needs none."""
    if config.untrained:
        return None
    if config.weights is not None:
        if config.weights.is_file():
            return config.weights
        raise MissingWeights(
            f"there are no weights {config.weights}",
            expected="a .safetensors or .pth file",
            actual="no such file",
            fix="check the setting `weights`",
        )
    found = find_pretrained(config.model)
    if found:
        return found[0]
    known = read_table().get(config.model)
    raise refuse_absent(config.model, gated=known is not None and known.gated)
