"""Fit a head: a head and the cached features of instances in, the arrays of the best head out (`fit`).

A batch is one random pair of images from each of some instances; every other image in it is a negative. The loss is
contrastive over late interaction:

    s(q, x) = (1/|q|) Σ_i max_j ⟨q_i, x_j⟩        loss = cross-entropy of softmax(s / temperature), both ways

With one row per image, s is the cosine, and this is the contrastive loss of CLIP and SimCLR. `validate` scores the head
on other instances at regular steps. Fitting ends after all steps, without a better score for a while, when the time is
over, or if the loss is not a number; the best head is returned.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from resight.plugins import check_range
from resight.train.cached_features import CachedFeatures
from resight.train.heads import Head
from resight.types import FloatArray, IntArray

Arrays = dict[str, FloatArray]


@dataclass(frozen=True)
class Settings:
    steps: int = 400
    instances: int = 64  # per batch
    tokens: int = 16  # per query image, drawn at random if it has more
    rate: float = 2e-3
    decay: float = 1e-4
    check: int = 100  # steps between validations
    patience: int = 3  # validations without a better score before it ends
    minutes: float = 15.0  # at most

    def __post_init__(self) -> None:
        for name in ("steps", "instances", "tokens", "check", "patience"):
            check_range(name, getattr(self, name), 1)
        for name in ("rate", "decay", "minutes"):
            check_range(name, getattr(self, name), 0)


@dataclass(frozen=True)
class Check:
    step: int
    loss: float  # mean since the last check
    score: float
    seconds: float  # since the start


@dataclass(frozen=True)
class Fitted:
    arrays: Arrays  # of the best check
    score: float
    checks: tuple[Check, ...]
    ended: str  # the reason


def fit(
    head: Head,
    rows: CachedFeatures,
    validate: Callable[[Arrays], float],
    settings: Settings,
    generator: np.random.Generator,
    on_check: Callable[[Check], None] = lambda _: None,
) -> Fitted:
    """Train `head` in place; the result holds copies of its arrays at the best check."""
    instances = rows.group()
    contrast = MaxSimContrast()
    optimizer = torch.optim.AdamW(
        [*head.parameters(), *contrast.parameters()], settings.rate, weight_decay=settings.decay
    )
    rates = torch.optim.lr_scheduler.OneCycleLR(optimizer, settings.rate, total_steps=settings.steps + 1, pct_start=0.1)
    started = time.monotonic()
    best = head.export()
    checks = [Check(0, float("nan"), validate(best), 0.0)]
    best_score, losses, ended = checks[0].score, [], "all steps done"
    for step in range(1, settings.steps + 1):
        loss = find_loss(head, contrast, rows, instances, settings, generator)
        if not torch.isfinite(loss):
            ended = f"the loss was {loss.item()} at step {step}; the best head before it is kept"
            break
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(head.parameters(), 1.0)
        optimizer.step()
        rates.step()
        losses.append(loss.item())
        seconds = time.monotonic() - started
        out_of_time = seconds > 60 * settings.minutes
        if step % settings.check and step < settings.steps and not out_of_time:
            continue
        arrays = head.export()
        checks.append(Check(step, float(np.mean(losses)), validate(arrays), time.monotonic() - started))
        on_check(checks[-1])
        losses = []
        if checks[-1].score > best_score:
            best, best_score = arrays, checks[-1].score
        if out_of_time:
            ended = f"the {settings.minutes:g} minutes are over"
            break
        if max(check.score for check in checks[-settings.patience :]) < best_score:
            ended = f"nothing better in {settings.patience} checks"
            break
    return Fitted(best, best_score, tuple(checks), ended)


def find_loss(
    head: Head,
    contrast: "MaxSimContrast",
    rows: CachedFeatures,
    instances: Sequence[IntArray],
    settings: Settings,
    generator: np.random.Generator,
) -> Tensor:
    """The loss of one batch."""
    chosen = generator.permutation(len(instances))[: settings.instances]
    pairs = np.array([generator.permutation(instances[number])[:2] for number in chosen])
    queries, query_mask = _thin_out(*rows.take(pairs[:, 0]), settings.tokens, generator)
    images, image_mask = rows.take(pairs[:, 1])
    loss: Tensor = contrast(head(queries), query_mask, head(images), image_mask)
    return loss


class MaxSimContrast(nn.Module):
    def __init__(self, scale: float = 20.0) -> None:
        """`scale` is 1 / temperature; it is trained too."""
        super().__init__()
        self.log_scale = nn.Parameter(torch.tensor(scale).log())

    def forward(self, queries: Tensor, query_mask: Tensor, images: Tensor, image_mask: Tensor) -> Tensor:
        """Rows [B, K, d] and masks [B, K] of real rows → the loss; row b of both sides shows the same instance."""
        logits = maxsim_matrix(queries, query_mask, images, image_mask) * self.log_scale.exp().clamp(max=100.0)
        right = torch.arange(len(logits))
        both = nn.functional.cross_entropy(logits, right) + nn.functional.cross_entropy(logits.T, right)
        return both / 2


def maxsim_matrix(queries: Tensor, query_mask: Tensor, images: Tensor, image_mask: Tensor) -> Tensor:
    """MaxSim of each query [B, Kq, d] with each image [C, K, d] → [B, C]."""
    similarity = queries.flatten(0, 1) @ images.flatten(0, 1).T
    similarity = similarity.view(*queries.shape[:2], *images.shape[:2])
    if not bool(image_mask.all()):
        similarity = similarity.masked_fill(~image_mask, -torch.inf)
    best = similarity.amax(dim=3) * query_mask[:, :, None]
    return best.sum(dim=1) / query_mask.sum(dim=1)[:, None]


def _thin_out(rows: Tensor, mask: Tensor, most: int, generator: np.random.Generator) -> tuple[Tensor, Tensor]:
    """At most `most` row positions, the same for all images; always the first, so that no image is empty."""
    if rows.shape[1] <= most:
        return rows, mask
    others = 1 + generator.permutation(rows.shape[1] - 1)[: most - 1]
    positions = torch.from_numpy(np.sort(np.concatenate([[0], others])))
    return rows[:, positions], mask[:, positions]
