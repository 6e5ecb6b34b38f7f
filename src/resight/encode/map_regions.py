"""A map of where something is → boxes around its connected parts.

In: a map [h, w] over a part of the image (attention, saliency, length of activations); only the order of its values
and their spacing matter, not their scale. Out: Proposals in pixels of the original.

At every threshold, spread evenly over the map's range, the cells above it fall into connected parts, each with a box.
What holds together at many thresholds gives nearly the same box again and again, which is merged. A box's score is

    mean of the map inside it (scaled to 0..1) · share of it that its part fills · √(its share of the map's area)

A bright and compact part speaks for a thing, a ragged one does not; without the root, the few brightest cells inside a
thing would always beat the thing. A flat map gives nothing.
"""

from collections.abc import Sequence

import cv2
import numpy as np
from numpy.typing import NDArray

from resight.encode.region_boxes import Proposals, limit, make_proposals, place
from resight.types import FloatArray

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
