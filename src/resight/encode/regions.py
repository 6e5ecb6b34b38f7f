"""Regions of an image: which boxes are cropped, boxes from saliency maps, and rows of regions as rows of the image.

`choose_regions`: Proposals of a region source in pixels of the original, which may lie outside the image, have no area
or repeat each other → boxes [r, 4] float32 inside the image, in the order of the proposals, at least one. Boxes overlap
by their IoU(a, b) = |a ∩ b| / |a ∪ b|.

`box_saliency`: a map [h, w] over a part of the image (attention, saliency, length of activations) → Proposals around
its connected parts. Only the order and spacing of its values matter, not their scale. At every threshold, spaced evenly
over the map's range, the cells above it form connected parts, each with a box. A part that holds together at many
thresholds gives nearly the same box again, which is merged. A box scores

    mean of the map inside it (scaled to 0..1) · share of it that its part fills · √(its share of the map's area)

A bright and compact part suggests an object, a ragged one does not; without the root, the few brightest cells inside an
object would always beat the object. A flat map gives no box.

`join_regions`: Descriptors of the regions of an image → Descriptors of the image, all in pixels of the whole.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import cv2
import numpy as np
from numpy.typing import NDArray

from resight.boxes import iou
from resight.types import Box, Descriptors, FloatArray, IntArray, Role

OVERLAP = 0.9  # IoU above which two crops look the same to every encoder
SMALLEST = 8.0  # pixels per side below which nothing is left to recognise
USUAL_FINEST = 4.0  # sides of the image per side of a small proposal, as in a grid of level 3
FINE = 112  # cells per side to which coarse maps are enlarged: a box should not snap to the cells of 7 × 7
SAME = 0.8  # IoU above which two boxes are the same part at two thresholds
FLAT = 1e-6  # of the largest value: a smaller range is rounding
ARRAYS = ("boxes", "weights", "points", "words", "seeds")  # of Descriptors, one entry per row

Form = Literal["corners", "centre"]  # x0, y0, x1, y1, or x and y of the centre, width, height


@dataclass(frozen=True)
class Proposals:
    """The boxes that a region source proposes for one image."""

    boxes: FloatArray  # [r, 4] x0, y0, x1, y1 in pixels of the original; may reach beyond the image
    scores: FloatArray  # [r] higher is better; all 1 for grids


def choose_regions(
    proposals: Proposals,
    size: tuple[int, int],
    most: int | None = None,
    overlap: float = OVERLAP,
    smallest: float = SMALLEST,
) -> FloatArray:
    """The boxes to crop from an image of `size`; the whole image where no proposal is left.

    Boxes are clipped to the image. Those without finite numbers, outside the image or with a side below `smallest`
    pixels are dropped. Of two whose IoU exceeds `overlap` the one with the higher score stays, on a tie the first; the
    same order decides which `most` boxes stay.
    """
    boxes = clip_boxes(proposals.boxes, size)
    sides = boxes[:, 2:] - boxes[:, :2]
    useful = np.flatnonzero(_is_finite(proposals.boxes) & (sides >= smallest).all(axis=1))
    kept = useful[suppress_overlaps(boxes[useful], proposals.scores[useful], most, overlap)]
    return boxes[kept] if len(kept) else whole_image(size)


def keep_best(proposals: Proposals, most: int | None, overlap: float = OVERLAP) -> Proposals:
    """The `most` best of a source's finite proposals, near-duplicates merged, in their own order."""
    finite = np.flatnonzero(_is_finite(proposals.boxes) & np.isfinite(proposals.scores))
    kept = finite[suppress_overlaps(proposals.boxes[finite], proposals.scores[finite], most, overlap)]
    return Proposals(proposals.boxes[kept], proposals.scores[kept])


def suppress_overlaps(boxes: FloatArray, scores: FloatArray, most: int | None, overlap: float) -> IntArray:
    """Non-maximum suppression: the positions of the boxes that stay, increasing."""
    alive = np.ones(len(boxes), bool)
    kept: list[int] = []
    for position in np.argsort(-np.where(np.isnan(scores), -np.inf, scores), kind="stable").tolist():
        if most is not None and len(kept) == most:
            break
        if alive[position]:
            kept.append(position)
            alive &= iou(boxes[position], boxes).astype(np.float32) <= overlap
    return np.array(sorted(kept), np.int64)


def clip_boxes(boxes: FloatArray, size: tuple[int, int]) -> FloatArray:
    """Boxes cut at the border of the image; one that lies outside has no area left."""
    return np.clip(np.asarray(boxes, np.float32).reshape(-1, 4), 0, np.array([*size, *size], np.float32))


def whole_image(size: tuple[int, int]) -> FloatArray:
    """The whole image as its only region."""
    return np.array([[0, 0, *size]], np.float32)


def to_pixels(shares: FloatArray, form: Form, covers: Sequence[float]) -> FloatArray:
    """Boxes in fractions 0..1 of the box `covers` → pixels of the original."""
    rows = np.asarray(shares, np.float32).reshape(-1, 4)
    if form == "centre":
        rows = np.concatenate([rows[:, :2] - rows[:, 2:] / 2, rows[:, :2] + rows[:, 2:] / 2], axis=1)
    x0, y0, x1, y1 = covers
    return np.asarray(rows * np.array([x1 - x0, y1 - y0] * 2) + np.array([x0, y0] * 2), np.float32)


def make_proposals(boxes: Sequence[Sequence[float]], scores: Sequence[float]) -> Proposals:
    """Proposals from plain numbers, possibly none."""
    return Proposals(np.array(boxes, np.float32).reshape(-1, 4), np.array(scores, np.float32))


def join_proposals(parts: Sequence[Proposals]) -> Proposals:
    """The proposals of several sources, one after another."""
    return Proposals(np.concatenate([part.boxes for part in parts]), np.concatenate([part.scores for part in parts]))


def _is_finite(boxes: FloatArray) -> NDArray[np.bool_]:
    return np.asarray(np.isfinite(boxes).all(axis=1))


def box_saliency(
    values: NDArray[np.floating],
    covers: Sequence[float],
    thresholds: Sequence[float],
    least: float,
    most: int | None = None,
) -> Proposals:
    """`covers` is the box of the original under the map; parts below the share `least` of its area are dropped."""
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
    return keep_best(Proposals(to_pixels(shares.boxes, "corners", covers), shares.scores), most, SAME)


def space_thresholds(count: int) -> tuple[float, ...]:
    """`count` thresholds spaced evenly inside 0..1."""
    return tuple((number + 1) / (count + 1) for number in range(count))


def _scale(values: NDArray[np.floating]) -> FloatArray | None:
    """The map scaled to 0..1, with at least FINE cells per side; None where it is flat."""
    heat = np.nan_to_num(np.asarray(values, np.float32), nan=0.0, posinf=0.0, neginf=0.0)
    low, high = float(heat.min()), float(heat.max())
    if high - low <= FLAT * max(abs(low), abs(high)):
        return None
    rows, columns = heat.shape
    fine = cv2.resize(heat, (max(columns, FINE), max(rows, FINE)), interpolation=cv2.INTER_LINEAR)
    return np.asarray((fine - low) / (high - low), np.float32)


def shift(rows: Descriptors, x: float, y: float) -> Descriptors:
    """The rows of a crop whose upper left corner lies at (x, y), in pixels of the whole."""
    point = np.array([x, y, 0, 0], np.float32)
    box = np.array([x, y, x, y], np.float32)
    return replace(
        rows,
        points=None if rows.points is None else rows.points + point,
        boxes=None if rows.boxes is None else rows.boxes + box,
        seeds=None if rows.seeds is None else rows.seeds + box,
    )


def join_regions(parts: Sequence[Descriptors], regions: Sequence[Box], role: Role) -> Descriptors:
    """The rows of all regions of one image. In the database, a row that stands for its region gets it as its box.

    Rows of a query get no boxes: nothing asks where they lie, and rows with boxes are taken for tokens.
    """
    if role == "database":
        parts = [
            part if part.boxes is not None or part.points is not None else replace(part, boxes=_repeat(region, part))
            for part, region in zip(parts, regions, strict=True)
        ]
    return chain_rows(parts)


def chain_rows(parts: Sequence[Descriptors]) -> Descriptors:
    """The rows of all parts, in order, as rows of one image."""
    vectors = np.concatenate([part.vectors for part in parts])
    optional: dict[str, Any] = {name: _concatenate([getattr(part, name) for part in parts]) for name in ARRAYS}
    return replace(parts[0], vectors=vectors, owners=np.zeros(len(vectors), np.int32), **optional)


def _repeat(region: Box, part: Descriptors) -> NDArray[np.float32]:
    return np.tile(np.array(region, np.float32), (len(part), 1))


def _concatenate(arrays: Sequence[NDArray[Any] | None]) -> NDArray[Any] | None:
    """All arrays as one; None where one of them is None."""
    known = [array for array in arrays if array is not None]
    return np.concatenate(known) if len(known) == len(arrays) else None
