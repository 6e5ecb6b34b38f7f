"""Do two pictures agree where one lies on the other? Thumbnails and a transform in, how much they share out.

One thumbnail is laid on the other. Where both are, their grey values are correlated in small windows, and `agreement`
is the share of windows that correlate: light and contrast do not matter to it, and letters over a picture spoil only
the windows that they lie in.
"""

from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from resight.search.plausibility import corners, map_points
from resight.types import Box

Matrix = NDArray[np.float64]
Grey = NDArray[np.uint8]
WINDOW = 11  # pixels of a thumbnail
CORRELATED = 0.6
FEWEST = 60  # windows: less of an overlap says nothing
SMOOTHED = 1.0  # pixels: a transform is off by a fraction of one
FLAT = 3.0  # grey levels of deviation below which a window shows nothing


@dataclass(frozen=True)
class Registration:
    agreement: float  # 0 to 1; 0 also where too little is shared
    share_a: float  # of the first picture's area, that the second shows
    share_b: float
    region_a: Box  # where in the first the second lies, as parts of its sides: 0, 0, 1, 1 is all of it
    region_b: Box


def register(a: Grey, b: Grey, onto: Matrix) -> Registration:
    """`onto` maps pixels of the first thumbnail [side, side] to the second's."""
    side = a.shape[0]
    back: Matrix = np.asarray(np.linalg.inv(onto), np.float64)
    edges = corners((-0.5, -0.5, side - 0.5, side - 0.5))
    regions = _bound(map_points(back, edges), side), _bound(map_points(onto, edges), side)
    there, here = _cover(back, side), _cover(onto, side)
    # Compared where the shared part has fewer pixels, since the finer one can be made as coarse, and not the reverse.
    if there.sum() <= here.sum():
        agreement = _agree(_smooth(a), _lay(b, back), there)
    else:
        agreement = _agree(_smooth(b), _lay(a, onto), here)
    return Registration(agreement, float(there.mean()), float(here.mean()), *regions)


def reduce_transform(transform: Matrix, outlines: tuple[Box, Box], side: int) -> Matrix:
    """A transform between pixels of two originals, for thumbnails that show the `outlines`."""
    return _stretch(outlines[1], side) @ transform @ np.linalg.inv(_stretch(outlines[0], side))


def turn_whole(quarters: int, side: int) -> Matrix:
    """A thumbnail onto another, turned about its middle."""
    turn = np.linalg.matrix_power(np.array([[0.0, -1.0], [1.0, 0.0]]), quarters)
    middle = np.full(2, (side - 1) / 2)
    return np.vstack([np.column_stack([turn, middle - turn @ middle]), [0, 0, 1]])


def _agree(first: NDArray[np.float32], second: NDArray[np.float32], shared: NDArray[np.bool_]) -> float:
    """The share of windows that correlate, of those inside the shared part that show something."""

    def average(values: NDArray[np.float32]) -> NDArray[np.float32]:
        return np.asarray(cv2.blur(values, (WINDOW, WINDOW)), np.float32)

    means = average(first), average(second)
    variances = average(first**2) - means[0] ** 2, average(second**2) - means[1] ** 2
    covariance = average(first * second) - means[0] * means[1]
    inside = cv2.erode(shared.astype(np.uint8), np.ones((WINDOW, WINDOW), np.uint8), borderValue=0) > 0
    shown = inside & ((variances[0] > FLAT**2) | (variances[1] > FLAT**2))
    if shown.sum() < FEWEST:
        return 0.0
    correlation = covariance / np.sqrt(np.maximum(variances[0] * variances[1], 1e-6))
    return float((correlation[shown] > CORRELATED).mean())


def _lay(picture: Grey, transform: Matrix) -> NDArray[np.float32]:
    """The picture through the transform, blurred first by as much as it is reduced."""
    scale = float(np.sqrt(abs(np.linalg.det(transform[:2, :2]))))
    blurred = cv2.GaussianBlur(picture, (0, 0), 0.5 / max(scale, 0.05)) if scale < 0.9 else picture
    return _smooth(cv2.warpPerspective(blurred, transform, picture.shape[::-1], flags=cv2.INTER_LINEAR))


def _cover(transform: Matrix, side: int) -> NDArray[np.bool_]:
    """Which pixels a whole thumbnail covers after the transform."""
    whole = np.full((side, side), 255, np.uint8)
    return np.asarray(cv2.warpPerspective(whole, transform, (side, side), borderMode=cv2.BORDER_CONSTANT) > 127)


def _smooth(picture: Grey) -> NDArray[np.float32]:
    return np.asarray(cv2.GaussianBlur(picture.astype(np.float32), (0, 0), SMOOTHED), np.float32)


def _stretch(outline: Box, side: int) -> Matrix:
    """Pixels of the original → of the thumbnail; whole numbers are the middles of pixels in both."""
    x0, y0, x1, y1 = outline
    across, down = side / (x1 - x0), side / (y1 - y0)
    left, top = across * (0.5 - x0) - 0.5, down * (0.5 - y0) - 0.5
    return np.array([[across, 0, left], [0, down, top], [0, 0, 1]], np.float64)


def _bound(points: Matrix, side: int) -> Box:
    x0, y0 = np.clip((points.min(axis=0) + 0.5) / side, 0, 1).tolist()
    x1, y1 = np.clip((points.max(axis=0) + 0.5) / side, 0, 1).tolist()
    return x0, y0, x1, y1
