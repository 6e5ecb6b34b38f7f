"""Outlines on an image.

In: pixels [H, W, 3] RGB uint8 and a box or four corners in pixels of that very array. Out: a new array.
Every line is light with a dark casing, so that it shows on any background.
"""

import cv2
import numpy as np
from numpy.typing import NDArray

from resight.errors import BoxError
from resight.types import Box

Pixels = NDArray[np.uint8]
Colour = tuple[int, int, int]

MINT: Colour = (94, 234, 212)
CASING: Colour = (8, 16, 20)
SHIFT = 4  # OpenCV takes fixed-point coordinates: 4 bits are a sixteenth of a pixel


def draw_box(pixels: Pixels, box: Box, colour: Colour = MINT) -> Pixels:
    """`pixels` with the outline of `box`; the parts of a box that lie outside are pulled onto the edge."""
    x0, y0, x1, y1 = box
    if not (x0 < x1 and y0 < y1):
        raise BoxError("cannot draw a box that is inside out", expected="x0 < x1 and y0 < y1", actual=str(box))
    height, width = pixels.shape[:2]
    edge = stroke(pixels)  # a box of the whole image would otherwise lose half its line
    x0, x1 = np.clip((x0, x1), edge, max(width - 1 - edge, edge))
    y0, y1 = np.clip((y0, y1), edge, max(height - 1 - edge, edge))
    return draw_quadrilateral(pixels, np.array([(x0, y0), (x1, y0), (x1, y1), (x0, y1)], np.float32), colour)


def draw_quadrilateral(pixels: Pixels, corners: NDArray[np.floating], colour: Colour = MINT) -> Pixels:
    """`pixels` with the closed outline through `corners` [4, 2]."""
    result = np.ascontiguousarray(pixels).copy()
    line = [fix(corners)]
    width = stroke(pixels)
    cv2.polylines(result, line, True, CASING, width * 2 + 1, cv2.LINE_AA, SHIFT)
    cv2.polylines(result, line, True, colour, width, cv2.LINE_AA, SHIFT)
    return result


def stroke(pixels: Pixels) -> int:
    """A line's thickness that looks the same on a thumbnail and on a full photograph."""
    return max(1, round(int(max(pixels.shape[:2])) / 250))


def fix(points: NDArray[np.floating]) -> NDArray[np.int32]:
    """Points in the fixed-point form that OpenCV draws with sub-pixel accuracy."""
    # Far outside any image and yet inside int32: a homography can send a corner almost to infinity.
    bounded = np.clip(points, -1e6, 1e6)
    return np.asarray(np.rint(bounded * (1 << SHIFT)), np.int32)
