"""Contrast through late interaction: which image of a batch shows the same thing?

    s(q, x) = (1/|q|) Σ_i max_j ⟨q_i, x_j⟩        loss = cross-entropy of softmax(s / temperature), both ways

Row b of the one side and row b of the other show the same thing, all other rows are wrong answers. With one row an
image, s is the cosine, and this is the contrastive loss of CLIP and SimCLR.

A head and the frozen rows of things in, the arrays of the best trained head out.

A batch is one pair of images of each of some things, by chance; every other image in it is a wrong answer. Every so
often `validate` says how good the head is on things that it is not trained on: the best one is kept, and training ends
when nothing better came for a while, when the time is over, or when the loss is no number any more.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from resight.plugins import check_range
from resight.train.cached_features import FrozenRows
from resight.train.heads import Head
from resight.types import FloatArray, IntArray


class MaxSimContrast(nn.Module):
    def __init__(self, scale: float = 20.0) -> None:
        """`scale` is 1 / temperature; it is learnt along."""
        super().__init__()
        self.log_scale = nn.Parameter(torch.tensor(scale).log())

    def forward(self, queries: Tensor, query_mask: Tensor, images: Tensor, image_mask: Tensor) -> Tensor:
        """Rows [B, K, d] and masks [B, K], true for rows that there are → the loss."""
        logits = interact_all(queries, query_mask, images, image_mask) * self.log_scale.exp().clamp(max=100.0)
        right = torch.arange(len(logits))
        both = nn.functional.cross_entropy(logits, right) + nn.functional.cross_entropy(logits.T, right)
        return both / 2


def interact_all(queries: Tensor, query_mask: Tensor, images: Tensor, image_mask: Tensor) -> Tensor:
    """[B, Kq, d] and [C, K, d] → [B, C]: each of the one with each of the other."""
    likeness = queries.flatten(0, 1) @ images.flatten(0, 1).T
    likeness = likeness.view(*queries.shape[:2], *images.shape[:2])
    if not bool(image_mask.all()):
        likeness = likeness.masked_fill(~image_mask, -torch.inf)
    best = likeness.amax(dim=3) * query_mask[:, :, None]
    return best.sum(dim=1) / query_mask.sum(dim=1)[:, None]


Arrays = dict[str, FloatArray]


@dataclass(frozen=True)
class Settings:
    steps: int = 400
    things: int = 64  # of a batch
    tokens: int = 16  # of an image that asks; by chance, where it has more
    rate: float = 2e-3
    decay: float = 1e-4
    check: int = 100  # steps between validations
    patience: int = 3  # validations without a better one before it ends
    minutes: float = 15.0  # at most

    def __post_init__(self) -> None:
        for name in ("steps", "things", "tokens", "check", "patience"):
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
    ended: str  # why


def fit(
    head: Head,
    rows: FrozenRows,
    validate: Callable[[Arrays], float],
    settings: Settings,
    generator: np.random.Generator,
    tell: Callable[[Check], None] = lambda _: None,
) -> Fitted:
    """`head` is trained in place; what comes out are copies of its arrays at the best check."""
    things = rows.group()
    contrast = MaxSimContrast()
    optimizer = torch.optim.AdamW(
        [*head.parameters(), *contrast.parameters()], settings.rate, weight_decay=settings.decay
    )
    rates = torch.optim.lr_scheduler.OneCycleLR(optimizer, settings.rate, total_steps=settings.steps + 1, pct_start=0.1)
    started = time.monotonic()
    best = head.export()
    checks = [Check(0, float("nan"), validate(best), 0.0)]
    best_score, losses, ended = checks[0].score, [], "all steps are done"
    for step in range(1, settings.steps + 1):
        loss = find_loss(head, contrast, rows, things, settings, generator)
        if not torch.isfinite(loss):
            ended = f"the loss was {loss.item()} at step {step}; the head is that of the best check before"
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
        tell(checks[-1])
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
    contrast: MaxSimContrast,
    rows: FrozenRows,
    things: Sequence[IntArray],
    settings: Settings,
    generator: np.random.Generator,
) -> Tensor:
    """Of one batch."""
    chosen = generator.permutation(len(things))[: settings.things]
    pairs = np.array([generator.permutation(things[number])[:2] for number in chosen])
    queries, query_mask = _thin_out(*rows.take(pairs[:, 0]), settings.tokens, generator)
    images, image_mask = rows.take(pairs[:, 1])
    loss: Tensor = contrast(head(queries), query_mask, head(images), image_mask)
    return loss


def _thin_out(rows: Tensor, mask: Tensor, most: int, generator: np.random.Generator) -> tuple[Tensor, Tensor]:
    """At most so many places of the rows, the same for all images; the first is always there, so that none is empty."""
    if rows.shape[1] <= most:
        return rows, mask
    others = 1 + generator.permutation(rows.shape[1] - 1)[: most - 1]
    places = torch.from_numpy(np.sort(np.concatenate([[0], others])))
    return rows[:, places], mask[:, places]
