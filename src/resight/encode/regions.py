"""Boxes that a region source proposes → the boxes that are cropped.

In: Proposals, in pixels of the original, which may be anything: outside the image, inside out, twice the same.
Out (`choose_regions`): boxes [r, 4] float32 inside the image, in the order of the proposals, at least one.

Overlap is intersection over union: IoU(a, b) = |a ∩ b| / |a ∪ b|.

A map of where something is → boxes around its connected parts.

In: a map [h, w] over a part of the image (attention, saliency, length of activations); only the order of its values
and their spacing matter, not their scale. Out: Proposals in pixels of the original.

At every threshold, spread evenly over the map's range, the cells above it fall into connected parts, each with a box.
What holds together at many thresholds gives nearly the same box again and again, which is merged. A box's score is

    mean of the map inside it (scaled to 0..1) · share of it that its part fills · √(its share of the map's area)

A bright and compact part speaks for a thing, a ragged one does not; without the root, the few brightest cells inside a
thing would always beat the thing. A flat map gives nothing.

Rows of parts of an image → rows of the image, with every place in pixels of the whole.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import cv2
import numpy as np
from numpy.typing import NDArray

from resight.types import Box, Descriptors, FloatArray, IntArray, Role

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


FINE = 112  # cells a side that coarse maps are drawn to first: a box should not snap to the cells of 7 × 7
SAME = 0.8  # overlap of two boxes above which they are the same part at two thresholds
FLAT = 1e-6  # of the largest value: a smaller range is rounding


def box_parts(
    values: NDArray[np.floating],
    covers: Sequence[float],
    thresholds: Sequence[float],
    least: float,
    most: int | None = None,
) -> Proposals:
    """`covers` is the box of the original under the map; parts below `least` of its area are left out."""
    heat = _scale(values)
    if heat is None:
        return make_proposals([], [])
    rows, columns = heat.shape
    sums = cv2.integral(heat)
    boxes, scores = [], []
    for threshold in thresholds:
        _, _, parts, _ = cv2.connectedComponentsWithStats((heat >= threshold).astype(np.uint8), connectivity=8)
        for x, y, width, height, area in parts[1:].tolist():
            if area < least * rows * columns:
                continue
            inside = sums[y + height, x + width] - sums[y, x + width] - sums[y + height, x] + sums[y, x]
            boxes.append((x / columns, y / rows, (x + width) / columns, (y + height) / rows))
            extent = width * height
            scores.append(inside / extent * area / extent * (extent / (rows * columns)) ** 0.5)
    shares = make_proposals(boxes, scores)
    return limit(Proposals(place(shares.boxes, "corners", covers), shares.scores), most, SAME)


def space_thresholds(count: int) -> tuple[float, ...]:
    """Evenly over 0..1, without the ends."""
    return tuple((number + 1) / (count + 1) for number in range(count))


def _scale(values: NDArray[np.floating]) -> FloatArray | None:
    """To 0..1, at least FINE cells a side; None where the map is flat."""
    heat = np.nan_to_num(np.asarray(values, np.float32), nan=0.0, posinf=0.0, neginf=0.0)
    low, high = float(heat.min()), float(heat.max())
    if high - low <= FLAT * max(abs(low), abs(high)):
        return None
    rows, columns = heat.shape
    fine = cv2.resize(heat, (max(columns, FINE), max(rows, FINE)), interpolation=cv2.INTER_LINEAR)
    return np.asarray((fine - low) / (high - low), np.float32)


ARRAYS = ("boxes", "weights", "points", "words", "seeds")


def shift(rows: Descriptors, x: float, y: float) -> Descriptors:
    """Rows of a part whose upper left corner lies at (x, y)."""
    point = np.array([x, y, 0, 0], np.float32)
    box = np.array([x, y, x, y], np.float32)
    return replace(
        rows,
        points=None if rows.points is None else rows.points + point,
        boxes=None if rows.boxes is None else rows.boxes + box,
        seeds=None if rows.seeds is None else rows.seeds + box,
    )


def join_regions(parts: Sequence[Descriptors], regions: Sequence[Box], role: Role) -> Descriptors:
    """The rows of all regions of one image. A row that stands for its region has that as its box.

    So have only images of the database: the rows of a query are asked for their place by nobody, and one with boxes is
    taken for tokens.
    """
    if role == "database":
        parts = [
            part if part.boxes is not None or part.points is not None else replace(part, boxes=_repeat(region, part))
            for part, region in zip(parts, regions, strict=True)
        ]
    return chain_rows(parts)


def chain_rows(parts: Sequence[Descriptors]) -> Descriptors:
    """The rows of all parts, one after the other, as those of one image."""
    vectors = np.concatenate([part.vectors for part in parts])
    optional: dict[str, Any] = {name: _concatenate([getattr(part, name) for part in parts]) for name in ARRAYS}
    return replace(parts[0], vectors=vectors, owners=np.zeros(len(vectors), np.int32), **optional)


def _repeat(region: Box, part: Descriptors) -> NDArray[np.float32]:
    return np.tile(np.array(region, np.float32), (len(part), 1))


def _concatenate(arrays: Sequence[NDArray[Any] | None]) -> NDArray[Any] | None:
    """None where one of them is."""
    known = [array for array in arrays if array is not None]
    return np.concatenate(known) if len(known) == len(arrays) else None
