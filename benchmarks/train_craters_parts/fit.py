"""A head for the tokens of craters: crops whose ground is known in, a head out.

A batch is a pair of crops of each of some craters. Where the token of one crop lands in the other is known from the
ground that both show, so that the loss can be that of the search, at the right scale and shift:

    s(q, x) = mean over tokens i of q that land inside x of  max_j max(0, ⟨q_i, x_j⟩) · exp(-|p_i - p_j|² / 2σ²)

and cross-entropy over the craters of the batch, both ways: with the right place, the right crater has to win. All
crops of a batch are laid under the query as the right one lies, which no other crater can like.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from resight.train.heads import Head
from resight.types import FloatArray


@dataclass(frozen=True)
class Crops:
    """n crops of t tokens each, on the same grid."""

    tokens: FloatArray  # [n, t, D]
    labels: np.ndarray  # [n] number of the crater, ascending
    ground: FloatArray  # [n, 3] middle (east, north) and side of each crop, in diameters of its crater
    centres: FloatArray  # [t, 2] middles of the tokens, x and y, from -0.5 to 0.5

    def land(self, one: np.ndarray, other: np.ndarray) -> FloatArray:
        """[b, t, 2]: where the tokens of crops `one` [b] lie in crops `other` [b]."""
        first, second = self.ground[one][:, None], self.ground[other][:, None]
        flip = np.array([1, -1], np.float32)  # y runs down, north up
        places = first[..., :2] * flip + self.centres * first[..., 2:]
        return (places - second[..., :2] * flip) / second[..., 2:]


@dataclass(frozen=True)
class Settings:
    steps: int = 300
    craters: int = 48  # of a batch
    rate: float = 2e-3
    check: int = 50
    tokens: int = 24  # of each query, drawn at random
    minutes: float = 12.0
    tolerance: float = 0.15  # of the layout


class LayoutContrast(nn.Module):
    def __init__(self, centres: FloatArray, tolerance: float, scale: float = 20.0) -> None:
        super().__init__()
        self._tolerance = tolerance
        self.log_scale = nn.Parameter(torch.tensor(scale).log())
        self.register_buffer("centres", torch.from_numpy(centres))

    def forward(self, queries: Tensor, images: Tensor, landing: Tensor) -> Tensor:
        """Rows [B, t, d] of both and where those of the queries land [B, t, 2] → the loss."""
        logits = self.score(queries, images, landing) * self.log_scale.exp().clamp(max=100.0)
        return nn.functional.cross_entropy(logits, torch.arange(len(logits)))

    def score(self, queries: Tensor, images: Tensor, landing: Tensor) -> Tensor:
        near = torch.exp(
            -((landing[:, :, None] - self.centres) ** 2).sum(dim=3) / (2 * self._tolerance**2)
        )  # [B, t, t]
        inside = (landing.abs() <= 0.5).all(dim=2).float()
        like = (queries.flatten(0, 1) @ images.flatten(0, 1).T).relu()
        like = like.view(*queries.shape[:2], *images.shape[:2])  # [B, t, B, t]
        best = (like * near[:, :, None]).amax(dim=3) * inside[:, :, None]
        return best.sum(dim=1) / (inside.sum(dim=1)[:, None] + queries.shape[1] / 16)


def fit(
    head: Head,
    crops: Crops,
    validate: Callable[[dict[str, FloatArray]], float],
    settings: Settings,
    generator: np.random.Generator,
    say: Callable[[str], None] = print,
) -> tuple[dict[str, FloatArray], float]:
    """The arrays of the best check, and its score."""
    torch.manual_seed(0)
    groups = [np.flatnonzero(crops.labels == label) for label in np.unique(crops.labels)]
    contrast = LayoutContrast(crops.centres, settings.tolerance)
    optimizer = torch.optim.AdamW([*head.parameters(), *contrast.parameters()], settings.rate, weight_decay=1e-4)
    rates = torch.optim.lr_scheduler.OneCycleLR(optimizer, settings.rate, total_steps=settings.steps + 1, pct_start=0.1)
    started, losses = time.monotonic(), []
    best, score = head.export(), validate(head.export())
    say(f"before: {score:.4f}")
    for step in range(1, settings.steps + 1):
        loss = find_loss(head, contrast, crops, groups, settings, generator)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(head.parameters(), 1.0)
        optimizer.step()
        rates.step()
        losses.append(loss.item())
        over = time.monotonic() - started > 60 * settings.minutes
        if step % settings.check == 0 or step == settings.steps or over:
            arrays = head.export()
            found = validate(arrays)
            say(f"step {step}: loss {np.mean(losses):.3f}, validation {found:.4f}, {time.monotonic() - started:.0f} s")
            losses = []
            if found > score:
                best, score = arrays, found
        if over:
            break
    return best, score


def find_loss(
    head: Head,
    contrast: LayoutContrast,
    crops: Crops,
    groups: Sequence[np.ndarray],
    settings: Settings,
    generator: np.random.Generator,
) -> Tensor:
    chosen = generator.permutation(len(groups))[: settings.craters]
    pairs = np.array([generator.permutation(groups[number])[:2] for number in chosen])
    rows = head(torch.from_numpy(crops.tokens[pairs].astype(np.float32)))  # [B, 2, t, d]
    rows = nn.functional.normalize(rows - rows.detach().mean(dim=(0, 1, 2)), dim=-1)  # as the search subtracts the mean
    losses = []
    for one in (0, 1):
        asked = np.sort(generator.permutation(rows.shape[2])[: settings.tokens])
        landing = crops.land(pairs[:, one], pairs[:, 1 - one])[:, asked]
        losses.append(contrast(rows[:, one, asked], rows[:, 1 - one], torch.from_numpy(landing.astype(np.float32))))
    return (losses[0] + losses[1]) / 2
