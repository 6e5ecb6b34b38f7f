"""The attention map → boxes of the things that it shows.

In: attention [h, w] in 0..1, the thresholds τ_i of the masks, and the box of the original image under the map. Out:
Proposals: the boxes of the connected parts of every mask M_i (with β = 0), in pixels of the original, the surest first.
The map is drawn finer before it is cut, so that a box need not end where a cell does; boxes that are nearly the same at
two thresholds are merged. A box's score is the share of all attention that it holds: of a thing and the brightest spot
of it, which a higher threshold leaves, the thing comes first.
"""

from collections.abc import Sequence

import numpy as np

from resight.encode.map_regions import box_parts
from resight.encode.region_boxes import Proposals
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
