"""A Picture and a box in pixels of the original in, the part inside it out, as a Picture of its own."""

import math
from dataclasses import replace

from resight.errors import BoxError
from resight.types import Box, Picture

MIN_CROP = 8  # pixels a side in the original; less than this shows nothing that could be recognised


def crop(picture: Picture, box: Box) -> Picture:
    """The part of `picture` inside `box` (pixels of the original), widened to whole pixels.

    The result's `size` is that of the part, and its `ref.box` says where in the original it lies.
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
    """The part of `box` inside an image of that size, widened to whole pixels; a BoxError when there is none."""
    width, height = size
    x0, y0, x1, y1 = box
    if not all(math.isfinite(value) for value in box) or x0 >= x1 or y0 >= y1:
        raise _refuse_box("the box is not a box", box, size, name, "finite x0 < x1 and y0 < y1")
    if x1 <= 0 or y1 <= 0 or x0 >= width or y0 >= height:
        raise _refuse_box("the box lies outside the image", box, size, name, "a box that overlaps the image")
    left, top = math.floor(max(x0, 0)), math.floor(max(y0, 0))
    right, bottom = math.ceil(min(x1, width)), math.ceil(min(y1, height))
    if right - left < MIN_CROP or bottom - top < MIN_CROP:
        raise _refuse_box("the box is too small", box, size, name, f"at least {MIN_CROP} pixels a side in the image")
    return float(left), float(top), float(right), float(bottom)


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
