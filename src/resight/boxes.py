"""Boxes (x0, y0, x1, y1) in pixels of the original image: crop a Picture, clip to an image, intersect, measure."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from resight.errors import BoxError
from resight.types import Box, Picture

MIN_CROP = 8  # pixels per side in the original; a smaller part shows nothing that could be recognised


def crop(picture: Picture, box: Box) -> Picture:
    """The part of `picture` inside `box` (pixels of the original), widened to whole pixels.

    The result's `size` is that of the part, and its `ref.box` is the box in the original.
    """
    width, height = picture.size
    left, top, right, bottom = map(int, whole := clip(box, picture.size, picture.ref.id))
    rows = _scale_span(top, bottom, picture.pixels.shape[0] / height)
    columns = _scale_span(left, right, picture.pixels.shape[1] / width)
    return replace(
        picture,
        ref=replace(picture.ref, box=whole),
        pixels=picture.pixels[rows, columns].copy(),
        size=(right - left, bottom - top),
    )


def clip(box: Box, size: tuple[int, int], name: str = "the image") -> Box:
    """The part of `box` inside an image of that size, widened to whole pixels; BoxError if there is none."""
    width, height = size
    x0, y0, x1, y1 = box
    if not all(math.isfinite(value) for value in box) or x0 >= x1 or y0 >= y1:
        raise _refuse_box("the box is not a box", box, size, name, "finite x0 < x1 and y0 < y1")
    if x1 <= 0 or y1 <= 0 or x0 >= width or y0 >= height:
        raise _refuse_box("the box lies outside the image", box, size, name, "a box that overlaps the image")
    left, top = math.floor(max(x0, 0)), math.floor(max(y0, 0))
    right, bottom = math.ceil(min(x1, width)), math.ceil(min(y1, height))
    if right - left < MIN_CROP or bottom - top < MIN_CROP:
        raise _refuse_box("the box is too small", box, size, name, f"at least {MIN_CROP} pixels per side in the image")
    return float(left), float(top), float(right), float(bottom)


def grow(box: Box, share: float) -> Box:
    """A box that is larger by a share of its sides on each side; it may reach beyond the image."""
    x0, y0, x1, y1 = box
    x, y = share * (x1 - x0), share * (y1 - y0)
    return x0 - x, y0 - y, x1 + x, y1 + y


def contains(box: Box, points: NDArray[np.floating]) -> NDArray[np.bool_]:
    """Which of points [n, 2] lie in the box or on its edge: [n]."""
    return np.asarray(((points >= box[:2]) & (points <= box[2:])).all(axis=1))


def intersect(one: Box, other: Box) -> Box:
    """The common part of two boxes; its area is 0 if they do not overlap."""
    return max(one[0], other[0]), max(one[1], other[1]), min(one[2], other[2]), min(one[3], other[3])


def area(box: Box) -> float:
    """0 if a side is negative, as after `intersect` of boxes that do not overlap."""
    return max(box[2] - box[0], 0.0) * max(box[3] - box[1], 0.0)


def iou(first: NDArray[Any], second: NDArray[Any]) -> NDArray[np.float64]:
    """Intersection over union of boxes [..., 4], which broadcast; a box without area overlaps nothing.

    Pairs: iou(a, b) with both [n, 4]. All with all: iou(a[:, None], b).
    """
    one, two = np.asarray(first, np.float64), np.asarray(second, np.float64)
    low, high = np.maximum(one[..., :2], two[..., :2]), np.minimum(one[..., 2:], two[..., 2:])
    shared = _area(low, high)
    union = _area(one[..., :2], one[..., 2:]) + _area(two[..., :2], two[..., 2:]) - shared
    shares = np.divide(shared, union, out=np.zeros_like(shared), where=union > 0)
    return np.asarray(np.minimum(shares, 1.0))  # rounding can lift two nearly equal boxes just above 1


def _area(low: NDArray[np.float64], high: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(np.prod(np.maximum(high - low, 0.0), axis=-1))


def _scale_span(start: int, stop: int, scale: float) -> slice:
    """A span of original pixels in pixels of a reduced image; never empty."""
    first = math.floor(start * scale + 1e-9)
    return slice(first, max(first + 1, math.ceil(stop * scale - 1e-9)))


def _refuse_box(problem: str, box: Box, size: tuple[int, int], name: str, expected: str) -> BoxError:
    width, height = size
    return BoxError(
        f"{problem} ({name} is {width} × {height} pixels)",
        expected=expected,
        actual=", ".join(f"{value:g}" for value in box),
        fix="give x0, y0, x1, y1 in pixels of the upright original",
    )
