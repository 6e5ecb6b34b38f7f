"""The attention map → boxes of the things that it shows.

In: attention [h, w] in 0..1, the thresholds τ_i of the masks, and the box of the original image under the map. Out:
Proposals: the boxes of the connected parts of every mask M_i (with β = 0), in pixels of the original, the surest first.
The map is drawn finer before it is cut, so that a box need not end where a cell does; boxes that are nearly the same at
two thresholds are merged. A box's score is the share of all attention that it holds: of a thing and the brightest spot
of it, which a higher threshold leaves, the thing comes first.

Attentional localisation f^l: the thing stays, the background fades; where the thing is nobody has to tell.

In: maps F [B, D, h, w]. Out: the localised maps F^l [B, D, h, w] and the attention A [B, h, w] in 0..1.

    A = η(softplus(conv1x1(F)))            η: min-max over the cells of an image, to 0..1              (1), (2)
    M_i = 1 where A ≥ τ_i, else β          a mask a threshold                                          (3)
    F^l = Σ w_i (M_i ⊙ F) / Σ w_i          w_i = softplus(α_i), learnt                                 (4), (5)

β = clip(ε, 0, 1) with ε ~ N(0.1, 0.9) drawn for each cell while training, so that what the map wrongly takes for
background still counts; 0 afterwards. (Printed is min(0, max(1, ε)), which is always 0.) With a deviation of 0 β is a
fixed number in training and afterwards alike. A flat map says nothing: A is 1 everywhere, and all of F stays.

How the 1 × 1 convolution learns: (3) is a step, whose derivative is 0 almost everywhere, and nothing else in (1) to (5)
leads back to A. As printed the convolution would stay as it was drawn, yet the paper shows attention that was learnt
and says nothing about how. Here the step keeps its value and lends its gradient (straight-through) from the sigmoid
that it is the limit of, M_i ≈ β + (1 − β) σ((A − τ_i) / SOFTNESS): equations and inference stay as printed, while a
multiplication by A would change both. gradient = "none" is the printed text to the letter.

`attention` is the paper's baseline (A7) to (A9): A = softmax over the cells, F^l = A ⊙ F; here times the number of
cells, with which the mean over them is (A9) exactly.
"""

from collections.abc import Sequence

import numpy as np
import torch
from torch.nn import functional

from resight.encode.networks.cider.blocks import Combine
from resight.encode.networks.cider.design import Design, Gradient
from resight.encode.regions import Proposals, box_parts
from resight.types import FloatArray

LEAST = 0.003  # share of the image below which a part is no thing
MOST = 20


def box_attention(
    attention: FloatArray,
    thresholds: Sequence[float],
    covers: Sequence[float],
    least: float = LEAST,
    most: int = MOST,
) -> Proposals:
    boxes = box_parts(attention, covers, thresholds, least).boxes
    shares = hold(attention, boxes, covers)
    order = np.argsort(-shares, kind="stable")[:most]
    return Proposals(boxes[order], shares[order])


def hold(attention: FloatArray, boxes: FloatArray, covers: Sequence[float]) -> FloatArray:
    """The share of the attention in each of boxes [n, 4] → [n]; cells count as far as a box covers them."""
    x0, y0, x1, y1 = covers
    rows, columns = attention.shape
    across = _cover(boxes[:, 0] - x0, boxes[:, 2] - x0, columns, x1 - x0)
    down = _cover(boxes[:, 1] - y0, boxes[:, 3] - y0, rows, y1 - y0)
    held = np.einsum("nr,rc,nc->n", down, attention, across)
    return np.asarray(held / max(float(attention.sum()), 1e-12), np.float32)


def _cover(starts: FloatArray, ends: FloatArray, count: int, length: float) -> FloatArray:
    """How much of each of `count` cells over a length lies between each start and end: [n, count]."""
    cells = np.arange(count)
    scale = count / length
    covered = np.minimum(ends[:, None] * scale, cells + 1) - np.maximum(starts[:, None] * scale, cells)
    return np.asarray(np.clip(covered, 0, 1), np.float32)


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
        masks = [cut(attention, threshold, background, self._gradient) for threshold in self._thresholds]
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
        self.look = torch.nn.Conv2d(channels, 1, 1, bias=False)  # the query; softmax would not notice a bias

    def forward(self, maps: torch.Tensor, generator: torch.Generator | None = None) -> Localised:  # noqa: ARG002
        weights = torch.softmax(self.look(maps).flatten(1), dim=1).view(len(maps), 1, *maps.shape[2:])
        return weights * (maps.shape[2] * maps.shape[3]) * maps, scale(weights)[:, 0]


class KeepAll(torch.nn.Module):
    def forward(self, maps: torch.Tensor, generator: torch.Generator | None = None) -> Localised:  # noqa: ARG002
        return maps, torch.ones_like(maps[:, 0])


def scale(values: torch.Tensor) -> torch.Tensor:
    """η: [B, 1, h, w] → 0..1 over the cells of each image; 1 everywhere where they are all the same."""
    low, high = values.amin(dim=(2, 3), keepdim=True), values.amax(dim=(2, 3), keepdim=True)
    span = high - low
    is_flat = span <= FLAT * high.abs()
    return torch.where(is_flat, 1.0, (values - low) / torch.where(is_flat, 1.0, span))


def draw_background(
    like: torch.Tensor, mean: float, deviation: float, generator: torch.Generator | None
) -> torch.Tensor:
    """β for every cell; without a generator torch's own is used, which a trainer seeds and saves."""
    return torch.empty_like(like).normal_(mean, deviation, generator=generator).clamp(0, 1)


def cut(attention: torch.Tensor, threshold: float, background: torch.Tensor, gradient: Gradient) -> torch.Tensor:
    """M_i: 1 where attention reaches the threshold, else the background."""
    mask = torch.where(attention >= threshold, 1.0, background)
    if gradient == "none":
        return mask
    soft = (1 - background) * torch.sigmoid((attention - threshold) / SOFTNESS)
    return mask + (soft - soft.detach())  # the bracket is exactly 0
