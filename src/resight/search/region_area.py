"""The surroundings of the region that won, where rerankers look more closely."""

import numpy as np
from numpy.typing import NDArray

from resight.types import Box


def grow(region: Box, share: float) -> Box:
    """Larger by a share of its sides on each side; what lies outside the image is cut off by whoever crops."""
    x0, y0, x1, y1 = region
    x, y = share * (x1 - x0), share * (y1 - y0)
    return x0 - x, y0 - y, x1 + x, y1 + y


def lie_inside(points: NDArray[np.floating], box: Box) -> NDArray[np.bool_]:
    """Which of points [n, 2] lie in the box or on its edge: [n]."""
    return np.asarray(((points >= box[:2]) & (points <= box[2:])).all(axis=1))
