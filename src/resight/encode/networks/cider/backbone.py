"""The backbone f^b: images → a feature map, by any network of timm or transformers.

In: a Design and the source of the backbone's weights. Out: a module from planes [B, 3, H, W] to maps [B, D, h, w], with
`channels` D and `input`, the size and statistics of its training images. The module lays the tokens of a transformer
out on their grid and drops CLS and registers, the classifier and all layers after `block`.
"""

from typing import Any

import torch

from resight.encode.networks import pretrained, timm_network
from resight.encode.networks.architectures import describe
from resight.encode.networks.cider.design import Design
from resight.encode.networks.timm_network import describe_input
from resight.encode.networks.torch_backbone import Input, Settings
from resight.encode.networks.transformers_network import TransformersNetwork
from resight.errors import RecipeError


class MapBackbone(torch.nn.Module):
    """A backbone of either library."""

    input: Input
    channels: int

    def count_channels(self) -> int:
        was_training = self.training
        with torch.no_grad():
            maps = self.eval()(torch.zeros(1, 3, self.input.least, self.input.least))
        self.train(was_training)
        return int(maps.shape[1])


def make_map_backbone(design: Design, source: Settings) -> MapBackbone:
    """`source` names the weights: a file, those of the network's makers, or `untrained`."""
    if design.library == "timm":
        return TimmMapBackbone(timm_network.load_model(design.backbone, source), design.block)
    architecture = describe(design.backbone)
    if source.untrained:
        module = pretrained.make_module(architecture)
    else:
        files = [source.weights] if source.weights is not None else pretrained.fetch_files(design.backbone)
        module = pretrained.load_module(architecture, files)
    settings = Settings(block=design.block, attention=False)
    return TransformersMapBackbone(TransformersNetwork(module, architecture, settings))


class TimmMapBackbone(MapBackbone):
    def __init__(self, model: Any, block: int | None) -> None:
        super().__init__()
        self.model = model
        self._block = block
        if block is not None:
            check_block(model, block)
            model.prune_intermediate_layers(indices=[block], prune_norm=True, prune_head=True)
        self._prefix: int = getattr(model, "num_prefix_tokens", 0)
        self._is_map_last = getattr(model, "output_fmt", "NCHW") == "NHWC"
        self._cell = int(model.feature_info[-1]["reduction"])
        self.input = describe_input(model)
        self.channels = self.count_channels()

    def forward(self, planes: torch.Tensor) -> torch.Tensor:
        if self._block is not None:
            (maps,) = self.model.forward_intermediates(planes, indices=[self._block], intermediates_only=True)
            return maps  # type: ignore[no-any-return]
        features: torch.Tensor = self.model.forward_features(planes)
        if features.ndim == 4:
            return features.permute(0, 3, 1, 2) if self._is_map_last else features
        rows, columns = (side // self._cell for side in planes.shape[2:])
        return features[:, self._prefix :].transpose(1, 2).reshape(len(planes), -1, rows, columns)


class TransformersMapBackbone(MapBackbone):
    def __init__(self, network: TransformersNetwork) -> None:
        super().__init__()
        self.model = network.module
        self._network = network
        self.input = network.input
        self.channels = self.count_channels()

    def forward(self, planes: torch.Tensor) -> torch.Tensor:
        outputs = self._network.run(planes)
        return outputs.patches.transpose(1, 2).reshape(len(planes), -1, *outputs.grid)


def check_block(model: Any, block: int) -> None:
    if not hasattr(model, "prune_intermediate_layers") or not 0 <= block < len(model.feature_info):
        raise RecipeError(
            f"the backbone has no block {block} that its map could be taken from",
            expected=f"a block from 0 to {len(model.feature_info) - 1}",
            actual=str(block),
            fix="choose another block, or leave it out for the last one",
        )
