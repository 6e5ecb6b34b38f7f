"""Train the reranker pair_transformer: the network of search/scorers/transformer.py in torch, and its training.

In: pairs of token rows, each marked as the same instance or not. Out: a trained module; `export` writes the weights
file that the scorer reads. The loss of a query with the positives P among its pairs is that of their ranking,
−log(Σ_{i in P} exp(logit_i) / Σ_i exp(logit_i)), in which anything common to all pairs of a query cancels. The same
seed and pairs give the same weights on the same machine. There is no command for it; in Python:

    pairs = [Pair(query, image, same), …]       # Descriptors of single images, from an encoder with a token branch
    trained = train(build(Shape(dimensions=pairs[0].query.vectors.shape[1])), pairs, np.random.default_rng(0))
    export(trained, Path("pairs.npz"))          # for scorer = { name = "transformer", weights = "pairs.npz" }
"""

import copy
import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from resight.errors import InputError
from resight.files.atomic import write_atomic
from resight.search.scorers.transformer import find_boxes
from resight.types import Descriptors, FloatArray


@dataclass(frozen=True)
class Shape:
    dimensions: int  # of a token
    width: int = 64
    depth: int = 2
    heads: int = 4
    late: float = 20.0  # initial weight of late interaction


@dataclass(frozen=True)
class Schedule:
    epochs: int = 10
    queries: int = 8  # per batch, each with all its pairs
    rate: float = 1e-3
    decay: float = 0.05
    hidden: float = 0.2  # share of tokens hidden at random


@dataclass(frozen=True)
class Pair:
    """Token rows of two single images."""

    query: Descriptors
    image: Descriptors
    same: bool


def build(shape: Shape, seed: int = 0) -> "PairTransformerNetwork":
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return PairTransformerNetwork(shape)


def train(
    module: "PairTransformerNetwork",
    pairs: Sequence[Pair],
    generator: np.random.Generator,
    schedule: Schedule | None = None,
) -> "PairTransformerNetwork":
    """A trained copy. Queries with only positives or only negatives are left out, since they teach nothing."""
    schedule = schedule or Schedule()
    groups = [group for group in _group(pairs) if 0 < sum(pair.same for pair in group) < len(group)]
    if not groups:
        raise InputError(
            "no query to learn from",
            expected="queries with a positive and a negative pair",
            fix="add pairs of the other kind",
        )
    module = copy.deepcopy(module).train()
    optimizer = torch.optim.AdamW(module.parameters(), lr=schedule.rate, weight_decay=schedule.decay)
    batches = -(-len(groups) // schedule.queries)
    rates = torch.optim.lr_scheduler.OneCycleLR(optimizer, schedule.rate, total_steps=schedule.epochs * batches)
    for _ in range(schedule.epochs):
        order = generator.permutation(len(groups))
        for some in np.array_split(order, batches):
            loss = _find_loss(module, [groups[number] for number in some], schedule.hidden, generator)
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            nn.utils.clip_grad_norm_(module.parameters(), 1.0)
            optimizer.step()
            rates.step()
    return module.eval()


def export(module: "PairTransformerNetwork", path: Path) -> None:
    """Write the weights file that the scorer reads."""
    arrays = {name: value.detach().cpu().numpy() for name, value in module.state_dict().items()}
    with write_atomic(path) as temporary, temporary.open("wb") as file:
        np.savez(file, depth=module.shape.depth, heads=module.shape.heads, **arrays)


class PairTransformerNetwork(nn.Module):
    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        self.project = nn.Linear(shape.dimensions, shape.width)
        self.place = nn.Linear(4, shape.width, bias=False)
        self.kinds = nn.Parameter(0.02 * torch.randn(3, shape.width))
        self.layers = nn.ModuleList(Layer(shape.width, shape.heads) for _ in range(shape.depth))
        self.norm = nn.LayerNorm(shape.width)
        self.head = nn.Linear(shape.width, 1)
        nn.init.zeros_(self.head.weight)  # so that it starts as pure late interaction
        nn.init.zeros_(self.head.bias)
        self.late = nn.Parameter(torch.tensor([shape.late]))

    def forward(
        self,
        query_tokens: Tensor,
        query_positions: Tensor,
        query_mask: Tensor,
        image_tokens: Tensor,
        image_positions: Tensor,
        image_mask: Tensor,
    ) -> Tensor:
        """Tokens [B, K, D], positions [B, K, 4] from the scorer, and masks [B, K] of real tokens → logits [B]."""
        query = self.project(query_tokens) + self.place(query_positions) + self.kinds[1]
        image = self.project(image_tokens) + self.place(image_positions) + self.kinds[2]
        rows = torch.cat([self.kinds[:1].expand(len(query), 1, -1), query, image], dim=1)
        mask = torch.cat([query_mask.new_ones(len(query), 1), query_mask, image_mask], dim=1)
        for layer in self.layers:
            rows = layer(rows, mask)
        added = self.head(self.norm(rows[:, 0]))[:, 0]
        return torch.as_tensor(added + self.late * interact(query_tokens, query_mask, image_tokens, image_mask))


class Layer(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self._heads = heads
        self.norm1 = nn.LayerNorm(width)
        self.attention = nn.Linear(width, 3 * width)
        self.output = nn.Linear(width, width)
        self.norm2 = nn.LayerNorm(width)
        self.widen = nn.Linear(width, 2 * width)
        self.narrow = nn.Linear(2 * width, width)

    def forward(self, rows: Tensor, mask: Tensor) -> Tensor:
        size, count, width = rows.shape
        parts = self.attention(self.norm1(rows)).view(size, count, 3, self._heads, -1).permute(2, 0, 3, 1, 4)
        query, key, value = parts
        looked = nn.functional.scaled_dot_product_attention(query, key, value, attn_mask=mask[:, None, None])
        rows = rows + self.output(looked.transpose(1, 2).reshape(size, count, width))
        return torch.as_tensor(rows + self.narrow(torch.relu(self.widen(self.norm2(rows)))))


def interact(query: Tensor, query_mask: Tensor, image: Tensor, image_mask: Tensor) -> Tensor:
    """MaxSim of each pair [B]."""
    similarity = (query @ image.transpose(1, 2)).masked_fill(~image_mask[:, None], -torch.inf)
    best = similarity.max(dim=2).values.masked_fill(~query_mask, 0)
    return best.sum(dim=1) / query_mask.sum(dim=1)


def collate(
    sides: Sequence[Descriptors], hidden: float = 0.0, generator: np.random.Generator | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """Token rows of single images, at least one each → tokens [B, K, D], positions [B, K, 4] and mask [B, K]."""
    longest = max(map(len, sides))
    tokens = np.zeros((len(sides), longest, sides[0].vectors.shape[1]), np.float32)
    positions = np.zeros((len(sides), longest, 4), np.float32)
    mask = np.zeros((len(sides), longest), bool)
    for number, side in enumerate(sides):
        tokens[number, : len(side)] = side.vectors
        positions[number, : len(side)] = find_boxes(side)
        mask[number, : len(side)] = _hide(len(side), hidden, generator)
    return torch.from_numpy(tokens), torch.from_numpy(positions), torch.from_numpy(mask)


def _hide(count: int, share: float, generator: np.random.Generator | None) -> FloatArray | bool:
    """The mask of visible tokens: all, or a random share and at least one."""
    if generator is None or share == 0:
        return True
    seen = generator.random(count) >= share
    seen[generator.integers(count)] = True
    return np.asarray(seen)


def _group(pairs: Sequence[Pair]) -> list[list[Pair]]:
    groups: dict[str, list[Pair]] = {}
    for pair in pairs:
        if len(pair.query) and len(pair.image):
            groups.setdefault(pair.query.ids[0], []).append(pair)
    return list(groups.values())


def _find_loss(
    module: PairTransformerNetwork, groups: Sequence[Sequence[Pair]], hidden: float, generator: np.random.Generator
) -> Tensor:
    pairs = [pair for group in groups for pair in group]
    queries = collate([pair.query for pair in pairs], hidden, generator)
    logits = module(*queries, *collate([pair.image for pair in pairs], hidden, generator))
    same = torch.tensor([pair.same for pair in pairs])
    limits = np.cumsum([0, *map(len, groups)]).tolist()
    losses = [
        logits[low:high].logsumexp(dim=0) - logits[low:high][same[low:high]].logsumexp(dim=0)
        for low, high in itertools.pairwise(limits)
    ]
    return torch.stack(losses).mean()
