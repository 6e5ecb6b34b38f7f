"""Heads that pool a map by GeM and project it: SSCD, CosPlace, EigenPlaces, SuperGlobal.

    sscd                      v = W GeM(F) + b                              p = 3, fixed
    cosplace, eigenplaces     v = W GeM(F / |F| at each cell) + b           p learnt, from 3
    superglobal               v = max over scales s of x_s / |x_s|,         x_s = W g / |g| + b,  g = GeM(R(F_s))

In: images. Out: vectors and the map F. SuperGlobal needs no training of its own: it takes the ResNet and W of CVNet and
changes the poolings. R(F) = (F + GeM over 5 × 5 cells around each, p = 2.5, reflected at the edges) / 2; GeM has
p = 4.6; the scales of the image are 1/√2, 1 and √2; and every ReLU of conv2 to conv4 that CVNet's code replaces keeps
values of 0.014 or more (make_resnet of trunks.py).

Pizzi et al., A Self-Supervised Descriptor for Image Copy Detection, CVPR 2022. Berton et al., Rethinking Visual
Geo-localization for Large-Scale Applications, CVPR 2022; EigenPlaces, ICCV 2023. Shao et al., Global Features are All
You Need for Image Retrieval and Reranking, ICCV 2023; Lee et al., Correlation Verification for Image Retrieval, CVPR
2022. Readings of the authors' code; the rerankers of the last two are not part of it.
"""

import torch
from torch.nn import functional

from resight.encode.networks.cider.backbone import MapBackbone
from resight.encode.networks.landmark.gem_embedding import Described, GeM
from resight.encode.networks.place.place_design import Design

P_GLOBAL, P_REGION = 4.6, 2.5
WINDOW = 5  # cells
SCALES = (0.7071, 1.0, 1.4142)


class PooledHead(torch.nn.Module):
    def __init__(self, design: Design, trunk: MapBackbone) -> None:
        super().__init__()
        self._is_local = design.model != "sscd"  # cells of unit length
        self.pool = GeM(3.0, learnt=self._is_local)
        self.project = torch.nn.Linear(trunk.channels, design.dimensions)

    def forward(self, trunk: MapBackbone, images: torch.Tensor) -> Described:
        maps = trunk(images)
        cells = functional.normalize(maps, dim=1) if self._is_local else maps
        return Described(self.project(self.pool(cells)), maps)


class SuperGlobalHead(torch.nn.Module):
    def __init__(self, design: Design, trunk: MapBackbone) -> None:
        super().__init__()
        self.pool = GeM(P_GLOBAL, learnt=False)
        self.project = torch.nn.Linear(trunk.channels, design.dimensions)

    def forward(self, trunk: MapBackbone, images: torch.Tensor) -> Described:
        maps = [trunk(resize(images, scale)) for scale in SCALES]
        vectors = [self.project(functional.normalize(self.pool(blend_regions(one)), dim=1)) for one in maps]
        largest = torch.stack([functional.normalize(one, dim=1) for one in vectors]).amax(dim=0)
        return Described(largest, maps[SCALES.index(1.0)])


def resize(images: torch.Tensor, scale: float) -> torch.Tensor:
    if scale == 1:
        return images
    sides = [int(side * scale) for side in images.shape[2:]]
    return functional.interpolate(images, sides, mode="bilinear", antialias=True)


def blend_regions(maps: torch.Tensor) -> torch.Tensor:
    """R(F). A map of two cells or fewer has no window of five that reflection could fill: its edge is repeated."""
    edge = WINDOW // 2
    mode = "reflect" if min(maps.shape[2:]) > edge else "replicate"
    padded = functional.pad(maps.clamp(min=0), (edge, edge, edge, edge), mode=mode)
    regions = functional.avg_pool2d(padded**P_REGION, WINDOW, stride=1) ** (1 / P_REGION)
    return (maps + regions) / 2
