"""Attentional localisation f^l of CiDeR: keeps the object and fades the background, learnt without boxes.

In: maps F [B, D, h, w]. Out: the localised maps F^l [B, D, h, w] and the attention A [B, h, w] in 0..1.

    A = η(softplus(conv1x1(F)))            η: min-max over the cells of an image, to 0..1              (1), (2)
    M_i = 1 where A ≥ τ_i, else β          one mask per threshold                                      (3)
    F^l = Σ w_i (M_i ⊙ F) / Σ w_i          w_i = softplus(α_i), learnt                                 (4), (5)

In training β = clip(ε, 0, 1) with ε ~ N(0.1, 0.9) for each cell, so that cells which the map wrongly takes for
background still count; afterwards β = 0. (The paper prints min(0, max(1, ε)), which is always 0.) With a deviation of 0
β is the same fixed number in training and afterwards. A flat map holds no information: A is 1 everywhere and F stays.

How the 1 × 1 convolution learns: (3) is a step, whose derivative is 0 almost everywhere, and nothing else in (1) to (5)
leads back to A. As printed, the convolution would keep its initial values; the paper shows learnt attention and does
not explain how. Here the step keeps its value and takes its gradient (straight-through) from the sigmoid whose limit it
is, M_i ≈ β + (1 − β) σ((A − τ_i) / SOFTNESS). Equations and inference stay as printed, which a multiplication by A
would change. gradient = "none" follows the printed text literally.

`attention` is the paper's baseline (A7) to (A9): A = softmax over the cells, F^l = A ⊙ F; here times the number of
cells, with which the mean over them is (A9) exactly.

`box_attention` turns an attention map into boxes: those of the connected parts of every mask M_i with β = 0, on a finer
grid than the map's cells, near-duplicates of two thresholds merged. A box scores the share of all attention inside it,
so that an object ranks above its brightest spot, which is all that a higher threshold leaves of it.
"""

from collections.abc import Sequence

import numpy as np
import torch
from torch.nn import functional

from resight.encode.networks.cider.blocks import Combine
from resight.encode.networks.cider.design import Design, Gradient
from resight.encode.regions import Proposals, box_saliency
from resight.types import FloatArray

LEAST = 0.003  # share of the image below which a part is no object
MOST = 20  # boxes
SOFTNESS = 0.1  # of the sigmoid, in units of A
FLAT = 1e-6  # of the largest value: a smaller range is rounding
Localised = tuple[torch.Tensor, torch.Tensor]


def make_localisation(design: Design, channels: int) -> torch.nn.Module:
    if design.localisation == "masks":
        return MaskedLocalisation(design, channels)
    return KeepAll() if design.localisation == "none" else AttentionWeights(channels)


class MaskedLocalisation(torch.nn.Module):
    def __init__(self, design: Design, channels: int) -> None:
        super().__init__()
        self.look = torch.nn.Conv2d(channels, 1, 1)
        self.fuse = Combine(design.masks, design.localisation_fusion)
        self._thresholds = design.spaced_thresholds
        self._mean, self._deviation = design.background, design.background_deviation
        self._gradient: Gradient = design.gradient

    def forward(self, maps: torch.Tensor, generator: torch.Generator | None = None) -> Localised:
        attention = scale(functional.softplus(self.look(maps)))
        background = self._draw_background(attention, generator)
        masks = [mask_attention(attention, threshold, background, self._gradient) for threshold in self._thresholds]
        # Σ w_i (M_i ⊙ F) = (Σ w_i M_i) ⊙ F: one map in memory instead of T.
        return self.fuse(masks) * maps, attention[:, 0]

    def _draw_background(self, attention: torch.Tensor, generator: torch.Generator | None) -> torch.Tensor:
        if self._deviation == 0:
            return torch.full_like(attention, self._mean).clamp(0, 1)
        if not self.training:
            return torch.zeros_like(attention)
        return draw_background(attention, self._mean, self._deviation, generator)


class AttentionWeights(torch.nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.look = torch.nn.Conv2d(channels, 1, 1, bias=False)  # the query; a bias would not change the softmax

    def forward(self, maps: torch.Tensor, generator: torch.Generator | None = None) -> Localised:  # noqa: ARG002
        weights = torch.softmax(self.look(maps).flatten(1), dim=1).view(len(maps), 1, *maps.shape[2:])
        return weights * (maps.shape[2] * maps.shape[3]) * maps, scale(weights)[:, 0]


class KeepAll(torch.nn.Module):
    def forward(self, maps: torch.Tensor, generator: torch.Generator | None = None) -> Localised:  # noqa: ARG002
        return maps, torch.ones_like(maps[:, 0])


def scale(values: torch.Tensor) -> torch.Tensor:
    """η: [B, 1, h, w] → 0..1 over the cells of each image; 1 everywhere where all are equal."""
    low, high = values.amin(dim=(2, 3), keepdim=True), values.amax(dim=(2, 3), keepdim=True)
    span = high - low
    is_flat = span <= FLAT * high.abs()
    return torch.where(is_flat, 1.0, (values - low) / torch.where(is_flat, 1.0, span))


def draw_background(
    like: torch.Tensor, mean: float, deviation: float, generator: torch.Generator | None
) -> torch.Tensor:
    """β for every cell; `generator` None is torch's own, which a trainer seeds and saves."""
    return torch.empty_like(like).normal_(mean, deviation, generator=generator).clamp(0, 1)


def mask_attention(
    attention: torch.Tensor, threshold: float, background: torch.Tensor, gradient: Gradient
) -> torch.Tensor:
    """M_i: 1 where attention reaches the threshold, else the background."""
    mask = torch.where(attention >= threshold, 1.0, background)
    if gradient == "none":
        return mask
    soft = (1 - background) * torch.sigmoid((attention - threshold) / SOFTNESS)
    return mask + (soft - soft.detach())  # the bracket is exactly 0


def box_attention(
    attention: FloatArray,
    thresholds: Sequence[float],
    covers: Sequence[float],
    least: float = LEAST,
    most: int = MOST,
) -> Proposals:
    """Attention [h, w] in 0..1 over the box `covers` of the original → boxes in its pixels, the best first."""
    boxes = box_saliency(attention, covers, thresholds, least).boxes
    shares = measure_shares(attention, boxes, covers)
    order = np.argsort(-shares, kind="stable")[:most]
    return Proposals(boxes[order], shares[order])


def measure_shares(attention: FloatArray, boxes: FloatArray, covers: Sequence[float]) -> FloatArray:
    """The share of the attention in each of boxes [n, 4] → [n]; cells count as far as a box covers them."""
    x0, y0, x1, y1 = covers
    rows, columns = attention.shape
    across = _measure_cover(boxes[:, 0] - x0, boxes[:, 2] - x0, columns, x1 - x0)
    down = _measure_cover(boxes[:, 1] - y0, boxes[:, 3] - y0, rows, y1 - y0)
    held = np.einsum("nr,rc,nc->n", down, attention, across)
    return np.asarray(held / max(float(attention.sum()), 1e-12), np.float32)


def _measure_cover(starts: FloatArray, ends: FloatArray, count: int, length: float) -> FloatArray:
    """How much of each of `count` cells over a length lies between each start and end: [n, count]."""
    cells = np.arange(count)
    scale = count / length
    covered = np.minimum(ends[:, None] * scale, cells + 1) - np.maximum(starts[:, None] * scale, cells)
    return np.asarray(np.clip(covered, 0, 1), np.float32)
