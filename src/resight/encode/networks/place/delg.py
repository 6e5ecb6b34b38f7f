"""DELG: a global vector from conv5, and local features with their attention from conv4.

In: images. Out: vectors; the local features, of unit length, as the map; their attention.

    v = W GeM(F_5) + b                                        p learnt
    L = BN(conv1x1(F_4)),  f(cell) = L / |L|                  512 channels
    a(cell) = softplus(conv1x1(ReLU(L)))

Cao et al., Unifying Deep Local and Global Features for Image Search, ECCV 2020. A reading of feymanpriv's code in
torch, which leaves out the paper's autoencoder: its local features have the channels of L. descriptor = { name =
"tokens", selection = "attention" } keeps the cells with the most attention.
"""

import torch
from torch.nn import functional

from resight.encode.networks.landmark.gem_embedding import Described, GeM
from resight.encode.networks.landmark.resnet_stages import ResNetStages
from resight.encode.networks.place.place_design import Design


class DelgHead(torch.nn.Module):
    def __init__(self, design: Design, trunk: ResNetStages) -> None:
        super().__init__()
        self.pool = GeM(3.0, learnt=True)
        self.project = torch.nn.Linear(trunk.channels, design.dimensions)
        self.reduce = torch.nn.Conv2d(trunk.lower_channels, design.hidden, 1)
        self.norm = torch.nn.BatchNorm2d(design.hidden)
        self.score = torch.nn.Conv2d(design.hidden, 1, 1)

    def forward(self, trunk: ResNetStages, images: torch.Tensor) -> Described:
        lower = trunk(images, "lower")
        vectors = self.project(self.pool(trunk(lower, "upper")))
        local = self.norm(self.reduce(lower))
        attention = functional.softplus(self.score(functional.relu(local)))[:, 0]
        return Described(vectors, functional.normalize(local, dim=1), attention)
