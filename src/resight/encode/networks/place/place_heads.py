"""The heads of the place networks: maps of a backbone → one vector per image, one class per paper.

In: images and the backbone (trunks.py). Out: Described: vectors, the map that the head reads, and, where the head has
them, the attention of its cells and CLS. F is the map; F_4 and F_5 are those of conv4 and conv5. All are readings of
the authors' code.
"""

import math

import torch
from torch.nn import functional

from resight.encode.networks.cider.backbone import MapBackbone
from resight.encode.networks.landmark.gem_embedding import Described, GeM
from resight.encode.networks.landmark.resnet_stages import ResNetStages
from resight.encode.networks.place.place_design import Design
from resight.encode.networks.place.trunks import DinoTrunk

P_GLOBAL, P_REGION = 4.6, 2.5  # of SuperGlobal
WINDOW = 5  # cells
SCALES = (0.7071, 1.0, 1.4142)
HEAD_WIDTH = 64  # channels per attention head of BoQ
ITERATIONS = 3  # of Sinkhorn


class PooledHead(torch.nn.Module):
    """GeM, then a linear layer: SSCD, CosPlace, EigenPlaces.

        sscd                      v = W GeM(F) + b                              p = 3, fixed
        cosplace, eigenplaces     v = W GeM(F / |F| at each cell) + b           p learnt, from 3

    Pizzi et al., A Self-Supervised Descriptor for Image Copy Detection, CVPR 2022. Berton et al., Rethinking Visual
    Geo-localization for Large-Scale Applications, CVPR 2022; EigenPlaces, ICCV 2023.
    """

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
    """SuperGlobal: other poolings for the ResNet and W of CVNet, without training.

        v = max over scales s of x_s / |x_s|,         x_s = W g / |g| + b,  g = GeM(R(F_s))

    R(F) = (F + GeM over 5 × 5 cells around each, p = 2.5, reflected at the edges) / 2; GeM has p = 4.6; the scales of
    the image are 1/√2, 1 and √2; and every ReLU of conv2 to conv4 that CVNet's code replaces keeps values of 0.014 or
    more (make_resnet of trunks.py). Shao et al., Global Features are All You Need for Image Retrieval and Reranking,
    ICCV 2023; Lee et al., Correlation Verification for Image Retrieval, CVPR 2022. Their rerankers are left out.
    """

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


class DelgHead(torch.nn.Module):
    """DELG: a global vector from conv5, and local features with their attention from conv4.

        v = W GeM(F_5) + b                                        p learnt
        L = BN(conv1x1(F_4)),  f(cell) = L / |L|                  512 channels; f is the map
        a(cell) = softplus(conv1x1(ReLU(L)))

    Cao et al., Unifying Deep Local and Global Features for Image Search, ECCV 2020; feymanpriv's code in torch, which
    leaves out the paper's autoencoder: its local features have the channels of L. descriptor = { name = "tokens",
    selection = "attention" } keeps the cells with the most attention.
    """

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


class MixVprHead(torch.nn.Module):
    """MixVPR: every channel's map mixed as a whole by a chain of MLPs.

        X_0 = F, of conv4, channels as rows of n cells
        X_l = X_{l−1} + W₂ ReLU(W₁ LN(X_{l−1}) + b₁) + b₂         over the cells, l = 1 … L
        v   = W_r (W_c X_Lᵀ + b_c)ᵀ + b_r, flattened              W_c over channels, W_r over cells

    Ali-bey et al., MixVPR: Feature Mixing for Visual Place Recognition, WACV 2023. The code had at first no b_r; the
    published files have it.
    """

    def __init__(self, design: Design, trunk: MapBackbone) -> None:
        super().__init__()
        cells = design.cells**2
        self.mix = torch.nn.ModuleList(make_mixer(cells, design.mixed) for _ in range(design.depth_of_head))
        self.project_channels = torch.nn.Linear(trunk.channels, design.projected)
        self.project_cells = torch.nn.Linear(cells, design.rows, bias=design.has_bias)

    def forward(self, trunk: MapBackbone, images: torch.Tensor) -> Described:
        maps = trunk(images)
        mixed = maps.flatten(2)
        for layer in self.mix:
            mixed = mixed + layer(mixed)
        projected = self.project_channels(mixed.transpose(1, 2)).transpose(1, 2)
        return Described(self.project_cells(projected).flatten(1), maps)


def make_mixer(cells: int, hidden: int) -> torch.nn.Sequential:
    return torch.nn.Sequential(
        torch.nn.LayerNorm(cells), torch.nn.Linear(cells, hidden), torch.nn.ReLU(), torch.nn.Linear(hidden, cells)
    )


class BoqHead(torch.nn.Module):
    """BoQ: learnt queries look for what they know in the map, block after block.

        X_0 = LN(conv3x3(F)), cells as rows
        X_l = encoder_l(X_{l−1})                              one layer of a transformer, norms after each half
        Q   = LN(Q_l + attend(Q_l, Q_l, Q_l))                 the learnt queries of block l, among themselves
        O_l = LN(attend(Q, X_l, X_l))
        v   = [O_1; …; O_L]ᵀ Wᵀ + b, flattened channel by channel

    Attention: the mean that each cell receives (it sums to 1). ReLU and four times the width within an encoder, no
    dropout. Ali-bey et al., BoQ: A Place is Worth a Bag of Learnable Queries, CVPR 2024.
    """

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


class SaladHead(torch.nn.Module):
    """SALAD and MegaLoc: patches shared out among clusters by optimal transport, and CLS beside them.

        t = MLP_t(CLS),  f_i = MLP_f(x_i),  s_i = MLP_s(x_i)  x_i: patches, i = 1 … n; m clusters, s_i [m]
        P = Sinkhorn([S; z])                                  z: the learnt score of the dustbin; m + 1 rows, n columns;
                                                              a row has mass 1, the dustbin n − m, a column 1
        V_j = Σ_i P_ji f_i                                    for each cluster j, then to unit length
        v = [t / |t|, V]                                      V channel by channel; then to unit length

    Three iterations in logarithms, rows first. MegaLoc adds a layer: W v + b. Attention: how much of each patch goes to
    clusters rather than to the dustbin. Izquierdo and Civera, Optimal Transport Aggregation for Visual Place
    Recognition, CVPR 2024; Berton and Masone, MegaLoc: One Retrieval to Place Them All, 2025. The authors' dropout in
    the MLPs is for training alone.
    """

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
