"""Token: a few learnt visual patterns look for their cells, then refine each other and are joined to one vector.

In: images. Out: vectors and the local features X. With L = `tokens` and d = `width`:

    X  = BN(conv1x1(F)), F the ResNet's last map              [N, d]
    X  ← X + attend(X, X);  X ← X + W BN(X) + b               local feature self-attention
    A  = softmax over the tokens of T Xᵀ                      T [L, d] learnt: each cell chooses among the tokens
    t  = LN(W_t A X + b_t)                                    the visual tokens, [L, d]
    t  ← t + attend(LN(t), X);  t ← t + MLP(t);  t ← t + attend(LN(t), LN(t))        `refinements` times
    v  = BN(W [t_1, …, t_L] + b)

    attend(q, x) = W_o softmax(W_q q (W_k x)ᵀ / √(d / heads)) W_v x, in `heads` heads, with biases
    MLP: two layers, 2d channels and GELU between them

Wu et al., Learning Token-based Representation for Image Retrieval, AAAI 2022. Readings: the authors' code, which
orders a refinement as above, does not divide a token by the sum of its attention and norms the self-attention's second
half by batch. W_o starts at 0. `dropout` drops attention, outputs of attention and MLP, and whole branches of an image.
The published network has L = 4, 8 heads, 2 refinements, d = 1024 and vectors of 1024 dimensions; d = 512 is what the
sizes in CiDeR's table A10 fit, and the default here.
"""

import torch
from torch.nn import functional

from resight.encode.networks.landmark.gem_embedding import Described, Embedding
from resight.encode.networks.landmark.landmark_design import Design
from resight.encode.networks.landmark.resnet_stages import ResNetStages
from resight.errors import RecipeError


class TokenHead(torch.nn.Module):
    def __init__(self, design: Design, backbone: ResNetStages) -> None:
        super().__init__()
        width, drop = design.width, design.drop_share
        if width % design.heads:
            raise RecipeError(
                "the heads do not divide the width",
                expected="width as a multiple of heads",
                actual=f"width = {width}, heads = {design.heads}",
                fix="e.g. width = 512, heads = 8",
            )
        self.reduce = torch.nn.Sequential(torch.nn.Conv2d(backbone.channels, width, 1), torch.nn.BatchNorm2d(width))
        self.relate = SelfAttention(width, design.heads, drop)
        self.tokenize = Tokenizer(width, design.tokens)
        self.refine = Refinements(Refinement(width, design.heads, drop) for _ in range(design.refinements))
        self.embed = Embedding(width * design.tokens, design.dimensions, 0.0)

    def forward(self, backbone: ResNetStages, images: torch.Tensor) -> Described:
        reduced = self.reduce(backbone(images))
        cells = self.relate(reduced.flatten(2).transpose(1, 2))
        tokens = self.refine(self.tokenize(cells), cells)
        return Described(self.embed(tokens.flatten(1)), cells.transpose(1, 2).reshape(reduced.shape))


class SelfAttention(torch.nn.Module):
    """Local features [B, N, d] → the same."""

    def __init__(self, width: int, heads: int, drop: float) -> None:
        super().__init__()
        self.attend = Attention(width, heads, drop)
        self.norm = torch.nn.BatchNorm1d(width)
        self.mix = torch.nn.Linear(width, width)
        self.drop_branch = DropBranch(drop)

    def forward(self, cells: torch.Tensor) -> torch.Tensor:
        cells = cells + self.drop_branch(self.attend(cells, cells))
        normed = self.norm(cells.transpose(1, 2)).transpose(1, 2)
        mixed: torch.Tensor = self.drop_branch(self.mix(normed))
        return cells + mixed


class Tokenizer(torch.nn.Module):
    """Local features [B, N, d] → visual tokens [B, L, d]."""

    def __init__(self, width: int, tokens: int) -> None:
        super().__init__()
        self.patterns = torch.nn.Parameter(torch.randn(tokens, width))
        self.mix = torch.nn.Linear(width, width)
        self.norm = torch.nn.LayerNorm(width)

    def forward(self, cells: torch.Tensor) -> torch.Tensor:
        shares = torch.softmax(self.patterns @ cells.transpose(1, 2), dim=1)  # [B, L, N]
        tokens: torch.Tensor = self.norm(self.mix(shares @ cells))
        return tokens


class Refinements(torch.nn.ModuleList):
    def forward(self, tokens: torch.Tensor, cells: torch.Tensor) -> torch.Tensor:
        for refinement in self:
            tokens = refinement(tokens, cells)
        return tokens


class Refinement(torch.nn.Module):
    """Visual tokens [B, L, d] and local features [B, N, d] → refined tokens."""

    def __init__(self, width: int, heads: int, drop: float) -> None:
        super().__init__()
        self.norm_cells, self.norm_tokens = torch.nn.LayerNorm(width), torch.nn.LayerNorm(width)
        self.attend_cells = Attention(width, heads, drop)
        self.attend_tokens = Attention(width, heads, drop)
        self.mix = torch.nn.Sequential(
            torch.nn.Linear(width, 2 * width),
            torch.nn.GELU(),
            torch.nn.Dropout(drop),
            torch.nn.Linear(2 * width, width),
            torch.nn.Dropout(drop),
        )
        self.drop_branch = DropBranch(drop)

    def forward(self, tokens: torch.Tensor, cells: torch.Tensor) -> torch.Tensor:
        tokens = tokens + self.drop_branch(self.attend_cells(self.norm_cells(tokens), cells))
        tokens = tokens + self.drop_branch(self.mix(tokens))
        normed = self.norm_tokens(tokens)
        refined: torch.Tensor = self.drop_branch(self.attend_tokens(normed, normed))
        return tokens + refined


class Attention(torch.nn.Module):
    """attend(q, x): queries [B, L, d] and inputs [B, N, d] → [B, L, d]."""

    def __init__(self, width: int, heads: int, drop: float) -> None:
        super().__init__()
        self.query, self.key, self.value, self.back = (torch.nn.Linear(width, width) for _ in range(4))
        torch.nn.init.zeros_(self.back.weight)
        torch.nn.init.zeros_(self.back.bias)
        self._heads, self._drop = heads, drop

    def forward(self, queries: torch.Tensor, inputs: torch.Tensor) -> torch.Tensor:
        parts = (self.query(queries), self.key(inputs), self.value(inputs))
        query, key, value = (part.unflatten(2, (self._heads, -1)).transpose(1, 2) for part in parts)
        share = self._drop if self.training else 0.0
        gathered = functional.scaled_dot_product_attention(query, key, value, dropout_p=share)
        return functional.dropout(self.back(gathered.transpose(1, 2).flatten(2)), share)


class DropBranch(torch.nn.Module):
    """In training, drops the whole branch of an image at random (stochastic depth)."""

    def __init__(self, drop: float) -> None:
        super().__init__()
        self._drop = drop

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        if not self.training or self._drop == 0:
            return values
        kept = values.new_empty(len(values), 1, 1).bernoulli_(1 - self._drop)
        return values * kept / (1 - self._drop)
