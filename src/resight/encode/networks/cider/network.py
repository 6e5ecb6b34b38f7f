"""The CiDeR network as a whole: images → one descriptor each, where the network looked, and boxes.

    f = f^p ∘ f^l ∘ f^c ∘ f^e ∘ f^b                                                       (6) of the paper

In: planes [B, 3, H, W] float32, prepared by the backbone's `input`. Out: descriptors [B, dimensions] of unit
length. Whitening, the paper's last step, is learnt afterwards from descriptors: `resight whiten` and the transform of
that name. `count_costs` counts parameters and operations.
"""

from dataclasses import dataclass

import torch
from torch.nn import functional

from resight.encode.named_networks import Cost
from resight.encode.networks import flops
from resight.encode.networks.cider.backbone import MapBackbone
from resight.encode.networks.cider.blocks import Pool, make_context, make_enhancement
from resight.encode.networks.cider.design import Design
from resight.encode.networks.cider.localisation import box_attention, make_localisation
from resight.encode.regions import Proposals


@dataclass(frozen=True)
class Seen:
    """The network's output for a batch."""

    descriptors: torch.Tensor  # [B, dimensions] of unit length
    maps: torch.Tensor  # [B, D, h, w] after the context, before localisation
    attention: torch.Tensor  # [B, h, w] in 0..1


class CiderNetwork(torch.nn.Module):
    def __init__(self, design: Design, backbone: MapBackbone) -> None:
        super().__init__()
        self.design = design
        self.trunk = backbone  # the name that trained files and their fingerprints have for it
        channels = backbone.channels
        self.enhancement = make_enhancement(design.enhancement, channels, design.reduction)
        self.context = make_context(
            design.context, channels, design.context_fusion, design.context_groups, design.context_reduction
        )
        self.localisation = make_localisation(design, channels)
        self.pool = Pool(design.pooling, design.p, channels, design.dimensions)

    def forward(self, images: torch.Tensor, generator: torch.Generator | None = None) -> torch.Tensor:
        """`generator` draws the background of the masks in training; None: torch's own."""
        return self.see(images, generator).descriptors

    def see(self, images: torch.Tensor, generator: torch.Generator | None = None) -> Seen:
        maps = self.context(self.enhancement(self.trunk(images)))
        localised, attention = self.localisation(maps, generator)
        return Seen(functional.normalize(self.pool(localised), dim=1), maps, attention)

    def locate(self, images: torch.Tensor) -> list[Proposals]:
        """Boxes in pixels of the images, the most certain first; none where nothing stands out."""
        height, width = images.shape[2:]
        with torch.inference_mode():
            attention = self.see(images).attention.float().cpu().numpy()
        return [box_attention(one, self.design.spaced_thresholds, (0, 0, width, height)) for one in attention]

    @property
    def parts(self) -> dict[str, torch.nn.Module]:
        """The parts by the paper's names, in the order in which they run."""
        return {
            "backbone": self.trunk,
            "enhancement": self.enhancement,
            "context": self.context,
            "localisation": self.localisation,
            "pooling": self.pool,
        }


def count_costs(network: CiderNetwork, size: int = 224) -> list[Cost]:
    """Parameters and operations of each part, in the order in which the parts run."""
    return flops.count_costs(network, network.parts, size)
