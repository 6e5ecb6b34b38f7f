"""Boxes that a region source proposes → the boxes that are cropped.

In: Proposals, in pixels of the original, which may be anything: outside the image, inside out, twice the same.
Out (`choose_regions`): boxes [r, 4] float32 inside the image, in the order of the proposals, at least one.

Overlap is intersection over union: IoU(a, b) = |a ∩ b| / |a ∪ b|.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from resight.types import FloatArray, IntArray

OVERLAP = 0.9  # two crops that share more than this look the same to every encoder
SMALLEST = 8.0  # pixels a side below which nothing is left to recognise
USUAL_FINEST = 4.0  # how many times smaller than the image the smaller proposals usually are, as of a grid of level 3

Form = Literal["corners", "centre"]  # x0, y0, x1, y1, or x and y of the centre, width, height


@dataclass(frozen=True)
class Proposals:
    """What a region source says of one image."""

    boxes: FloatArray  # [r, 4] x0, y0, x1, y1 in pixels of the original; may reach beyond the image
    scores: FloatArray  # [r] how much speaks for each; higher is better; all 1 for grids


def choose_regions(
    proposals: Proposals,
    size: tuple[int, int],
    most: int | None = None,
    overlap: float = OVERLAP,
    smallest: float = SMALLEST,
) -> FloatArray:
    """Clipped to the image of `size`, the useless dropped, near-duplicates merged; the whole image if none is left.

    Dropped are boxes without finite numbers, outside the image or with a side below `smallest` pixels. Of two that
    overlap by more than `overlap` the better-scored stays, of equals the first; so too for the `most` that are kept.
    """
    boxes = clip(proposals.boxes, size)
    sides = boxes[:, 2:] - boxes[:, :2]
    useful = np.flatnonzero(_is_finite(proposals.boxes) & (sides >= smallest).all(axis=1))
    kept = useful[find_distinct(boxes[useful], proposals.scores[useful], most, overlap)]
    return boxes[kept] if len(kept) else cover(size)


def limit(proposals: Proposals, most: int | None, overlap: float = OVERLAP) -> Proposals:
    """The best of a source's proposals, near-duplicates merged, in their own order; only what is finite."""
    finite = np.flatnonzero(_is_finite(proposals.boxes) & np.isfinite(proposals.scores))
    kept = finite[find_distinct(proposals.boxes[finite], proposals.scores[finite], most, overlap)]
    return Proposals(proposals.boxes[kept], proposals.scores[kept])


def find_distinct(boxes: FloatArray, scores: FloatArray, most: int | None, overlap: float) -> IntArray:
    """Positions of the boxes that stay, increasing."""
    alive = np.ones(len(boxes), bool)
    kept: list[int] = []
    for position in np.argsort(-np.where(np.isnan(scores), -np.inf, scores), kind="stable").tolist():
        if most is not None and len(kept) == most:
            break
        if alive[position]:
            kept.append(position)
            alive &= measure_overlap(boxes[position : position + 1], boxes)[0] <= overlap
    return np.array(sorted(kept), np.int64)


def measure_overlap(boxes: FloatArray, others: FloatArray) -> FloatArray:
    """IoU of each of boxes [n, 4] with each of others [m, 4] → [n, m]; 0 where a box has no area."""
    one, two = boxes[:, None].astype(np.float64), others[None].astype(np.float64)
    shared = np.prod(np.maximum(np.minimum(one[..., 2:], two[..., 2:]) - np.maximum(one[..., :2], two[..., :2]), 0), -1)
    areas = [np.prod(np.maximum(part[..., 2:] - part[..., :2], 0), axis=-1) for part in (one, two)]
    union = areas[0] + areas[1] - shared
    return np.asarray(np.divide(shared, union, out=np.zeros_like(shared), where=union > 0), np.float32)


def clip(boxes: FloatArray, size: tuple[int, int]) -> FloatArray:
    """Cut off what lies outside the image; a box that is wholly outside has no area left."""
    return np.clip(np.asarray(boxes, np.float32).reshape(-1, 4), 0, np.array([*size, *size], np.float32))


def cover(size: tuple[int, int]) -> FloatArray:
    """The one region that is the whole image."""
    return np.array([[0, 0, *size]], np.float32)


def place(shares: FloatArray, form: Form, covers: Sequence[float]) -> FloatArray:
    """Boxes in shares of 0..1 of the box `covers` → pixels of the original."""
    rows = np.asarray(shares, np.float32).reshape(-1, 4)
    if form == "centre":
        rows = np.concatenate([rows[:, :2] - rows[:, 2:] / 2, rows[:, :2] + rows[:, 2:] / 2], axis=1)
    x0, y0, x1, y1 = covers
    return np.asarray(rows * np.array([x1 - x0, y1 - y0] * 2) + np.array([x0, y0] * 2), np.float32)


def make_proposals(boxes: Sequence[Sequence[float]], scores: Sequence[float]) -> Proposals:
    """From plain numbers; none at all are no proposals."""
    return Proposals(np.array(boxes, np.float32).reshape(-1, 4), np.array(scores, np.float32))


def join(parts: Sequence[Proposals]) -> Proposals:
    """The proposals of several sources, one after another."""
    return Proposals(np.concatenate([part.boxes for part in parts]), np.concatenate([part.scores for part in parts]))


def _is_finite(boxes: FloatArray) -> NDArray[np.bool_]:
    return np.asarray(np.isfinite(boxes).all(axis=1))
