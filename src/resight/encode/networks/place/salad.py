"""SALAD and MegaLoc: patches shared out among clusters by optimal transport, and CLS beside them.

In: images. Out: vectors, the patches, CLS, and how much of each patch goes to clusters rather than to the dustbin.

    t = MLP_t(CLS),  f_i = MLP_f(x_i),  s_i = MLP_s(x_i)     x_i: patches, i = 1 … n; m clusters, s_i [m]
    P = Sinkhorn([S; z])                                     z: the learnt score of the dustbin; m + 1 rows, n columns;
                                                             a row has mass 1, the dustbin n − m, a column 1
    V_j = Σ_i P_ji f_i                                       for each cluster j, then to unit length
    v = [t / |t|, V]                                         V channel by channel; then to unit length

Three iterations in logarithms, rows first. MegaLoc adds a layer: W v + b. Izquierdo and Civera, Optimal Transport
Aggregation for Visual Place Recognition, CVPR 2024; Berton and Masone, MegaLoc: One Retrieval to Place Them All, 2025.
Readings of the authors' code, whose dropout in the MLPs is for training alone.
"""

import math

import torch
from torch.nn import functional

from resight.encode.networks.landmark.gem_embedding import Described
from resight.encode.networks.place.place_design import Design
from resight.encode.networks.place.trunks import DinoTrunk

ITERATIONS = 3


class SaladHead(torch.nn.Module):
    def __init__(self, design: Design, trunk: DinoTrunk) -> None:
        super().__init__()
        self.scene = torch.nn.Sequential(
            torch.nn.Linear(trunk.channels, design.hidden),
            torch.nn.ReLU(),
            torch.nn.Linear(design.hidden, design.scene),
        )
        self.features = make_mlp(trunk.channels, design.hidden, design.cluster_channels)
        self.scores = make_mlp(trunk.channels, design.hidden, design.clusters)
        self.dustbin = torch.nn.Parameter(torch.tensor(1.0))
        total = design.scene + design.cluster_channels * design.clusters
        self.project = torch.nn.Linear(total, design.dimensions) if design.model == "megaloc" else None

    def forward(self, trunk: DinoTrunk, images: torch.Tensor) -> Described:
        maps, cls = trunk.see(images)
        plan = transport(self.scores(maps).flatten(2), self.dustbin)  # [B, m, n]
        gathered = self.features(maps).flatten(2) @ plan.transpose(1, 2)  # [B, channels, m]
        clusters = functional.normalize(gathered, dim=1).flatten(1)
        vectors = functional.normalize(
            torch.cat([functional.normalize(self.scene(cls), dim=1), clusters], dim=1), dim=1
        )
        attention = plan.sum(dim=1).reshape(len(maps), *maps.shape[2:])
        return Described(vectors if self.project is None else self.project(vectors), maps, attention, cls)


def transport(scores: torch.Tensor, dustbin: torch.Tensor) -> torch.Tensor:
    """Scores [B, m, n], n above m → shares [B, m, n], without the dustbin's."""
    batch, clusters, cells = scores.shape
    logits = torch.cat([scores, dustbin.to(scores.dtype).expand(batch, 1, cells)], dim=1)
    masses = logits.new_zeros(clusters + 1)
    masses[-1] = math.log(cells - clusters)
    rows, columns = logits.new_zeros(batch, clusters + 1), logits.new_zeros(batch, cells)
    for _ in range(ITERATIONS):
        rows = masses - torch.logsumexp(logits + columns[:, None], dim=2)
        columns = -torch.logsumexp(logits + rows[:, :, None], dim=1)
    return torch.exp(logits + rows[:, :, None] + columns[:, None])[:, :-1]


def make_mlp(channels: int, hidden: int, outputs: int) -> torch.nn.Sequential:
    return torch.nn.Sequential(
        torch.nn.Conv2d(channels, hidden, 1), torch.nn.ReLU(), torch.nn.Conv2d(hidden, outputs, 1)
    )
