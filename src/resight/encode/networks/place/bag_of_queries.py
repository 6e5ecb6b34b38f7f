"""BoQ: learnt queries look for what they know in the map, block after block.

In: images. Out: vectors, the map, and the mean attention that each cell receives (it sums to 1).

    X_0 = LN(conv3x3(F)), cells as rows
    X_l = encoder_l(X_{l−1})                                  one layer of a transformer, norms after each half
    Q   = LN(Q_l + attend(Q_l, Q_l, Q_l))                     the learnt queries of block l, among themselves
    O_l = LN(attend(Q, X_l, X_l))
    v   = [O_1; …; O_L]ᵀ Wᵀ + b, flattened channel by channel

Ali-bey et al., BoQ: A Place is Worth a Bag of Learnable Queries, CVPR 2024. A reading of the authors' code: 64 channels
per attention head, ReLU and four times the width within an encoder, no dropout.
"""

import torch

from resight.encode.networks.cider.backbone import MapBackbone
from resight.encode.networks.landmark.gem_embedding import Described
from resight.encode.networks.place.place_design import Design

HEAD_WIDTH = 64


class BoqHead(torch.nn.Module):
    def __init__(self, design: Design, trunk: MapBackbone) -> None:
        super().__init__()
        self.reduce = torch.nn.Conv2d(trunk.channels, design.projected, 3, padding=1)
        self.norm = torch.nn.LayerNorm(design.projected)
        self.blocks = torch.nn.ModuleList(
            QueryBlock(design.projected, design.queries) for _ in range(design.depth_of_head)
        )
        self.project = torch.nn.Linear(design.depth_of_head * design.queries, design.rows)

    def forward(self, trunk: MapBackbone, images: torch.Tensor) -> Described:
        maps = trunk(images)
        cells = self.norm(self.reduce(maps).flatten(2).transpose(1, 2))
        found, seen = [], []
        for block in self.blocks:
            cells, answers, attention = block(cells)
            found.append(answers)
            seen.append(attention)
        vectors = self.project(torch.cat(found, dim=1).transpose(1, 2)).flatten(1)
        received = torch.cat(seen, dim=1).mean(dim=1).reshape(len(maps), *maps.shape[2:])
        return Described(vectors, maps, received)


class QueryBlock(torch.nn.Module):
    """Cells [B, N, d] → new cells, answers of the queries [B, q, d] and their attention [B, q, N]."""

    def __init__(self, width: int, queries: int) -> None:
        super().__init__()
        heads = max(width // HEAD_WIDTH, 1)
        self.encoder = torch.nn.TransformerEncoderLayer(width, heads, 4 * width, dropout=0.0, batch_first=True)
        self.queries = torch.nn.Parameter(torch.randn(1, queries, width))
        self.relate = torch.nn.MultiheadAttention(width, heads, batch_first=True)
        self.norm_queries = torch.nn.LayerNorm(width)
        self.look = torch.nn.MultiheadAttention(width, heads, batch_first=True)
        self.norm_answers = torch.nn.LayerNorm(width)

    def forward(self, cells: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        cells = self.encoder(cells)
        related = self.queries + self.relate(self.queries, self.queries, self.queries, need_weights=False)[0]
        queries = self.norm_queries(related).expand(len(cells), -1, -1)
        answers, attention = self.look(queries, cells, cells)
        return cells, self.norm_answers(answers), attention
