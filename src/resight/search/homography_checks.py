"""Whether a camera could have made a homography, and whether key points change in size and angle as it does.

In: a transform [3, 3], the query's outline and key points [n, 4] (x, y, size, angle). RANSAC finds a homography between
any two images: unrelated ones agree with one that is mirrored, collapsed, needle-shaped or folded over the horizon.
"""

import numpy as np
from numpy.typing import NDArray

from resight.types import Box, FloatArray, Match

Matrix = NDArray[np.float64]
SMALLEST_SIDE = 6.0  # pixels in the image
LONGEST_TO_SHORTEST = 12.0  # sides of the mapped outline, in units of the outline's own proportions
LARGEST_SCALE = 20.0
MOST_PERSPECTIVE = 6.0  # how much larger the near side may appear than the far one


def is_plausible(transform: Matrix, outline: Box) -> bool:
    """Whether a camera can see the outline this way."""
    source = corners(outline)
    depth = np.column_stack([source, np.ones(4)]) @ transform[2]
    if not np.isfinite(transform).all() or depth.min() * depth.max() <= 0:
        return False
    if np.abs(depth).max() / np.abs(depth).min() > MOST_PERSPECTIVE:
        return False
    mapped = map_points(transform, source)
    edges = np.roll(mapped, -1, axis=0) - mapped
    turns = _cross(edges, np.roll(edges, -1, axis=0))
    if not (turns > 0).all():  # mirrored, folded or concave
        return False
    lengths = np.linalg.norm(edges, axis=1)
    scales = lengths / np.linalg.norm(np.roll(source, -1, axis=0) - source, axis=1)
    return bool(
        lengths.min() >= SMALLEST_SIDE
        and scales.max() <= LARGEST_SCALE
        and scales.max() / scales.min() <= LONGEST_TO_SHORTEST
    )


def agree_in_shape(
    transform: Matrix, query: FloatArray, image: FloatArray, largest_scale: float = 2.0, largest_angle: float = 35.0
) -> NDArray[np.bool_]:
    """Whether size and angle of key points [n, 4] change between query and image as the model does at that point.

    Unknown ones (NaN) agree with every model.
    """
    scale, turn = local_similarity(transform, query[:, :2])
    with np.errstate(divide="ignore", invalid="ignore"):
        size_error = np.abs(np.log(image[:, 2] / query[:, 2]) - np.log(scale))
    angle_error = np.abs((image[:, 3] - query[:, 3] - turn + 180) % 360 - 180)
    known = np.isfinite(query[:, 2:]).all(axis=1) & np.isfinite(image[:, 2:]).all(axis=1)
    return np.asarray(~known | ((size_error <= np.log(largest_scale)) & (angle_error <= largest_angle)))


def local_similarity(transform: Matrix, points: NDArray[np.floating]) -> tuple[Matrix, Matrix]:
    """Scale and rotation in degrees of a homography around each of points [n, 2], from its Jacobian there."""
    homogeneous = np.column_stack([points, np.ones(len(points))]) @ transform.T
    depth = homogeneous[:, 2:]
    mapped = homogeneous[:, :2] / depth
    # d(u/w)/dx = (h_u - (u/w) h_w) / w
    jacobian = (transform[None, :2, :2] - mapped[:, :, None] * transform[None, 2:, :2]) / depth[:, :, None]
    scale = np.sqrt(np.abs(np.linalg.det(jacobian)))
    turn = np.degrees(np.arctan2(jacobian[:, 1, 0] - jacobian[:, 0, 1], jacobian[:, 0, 0] + jacobian[:, 1, 1]))
    return scale, turn


def map_points(transform: Matrix, points: NDArray[np.floating]) -> Matrix:
    """[n, 2] through a homography; points on the horizon come out infinite."""
    homogeneous = np.column_stack([points, np.ones(len(points))]) @ transform.T
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(homogeneous[:, :2] / homogeneous[:, 2:])


def box_outline(match: Match, outline: Box) -> Box:
    """The box around the query's outline in the image, not clipped to it; around the points of a fundamental matrix."""
    points = match.points[:, 2:] if match.model == "fundamental" else map_points(match.transform, corners(outline))
    (x0, y0), (x1, y1) = points.min(axis=0).tolist(), points.max(axis=0).tolist()
    return x0, y0, x1, y1


def corners(box: Box) -> Matrix:
    x0, y0, x1, y1 = box
    return np.array([[x0, y0], [x1, y0], [x1, y1], [x0, y1]], dtype=np.float64)


def _cross(first: Matrix, second: Matrix) -> Matrix:
    return np.asarray(first[:, 0] * second[:, 1] - first[:, 1] * second[:, 0])
