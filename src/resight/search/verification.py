"""Geometric verification of one pair of images: local features in, a Match out, or None.

    match     pairs that are each other's nearest neighbours, and clearly nearer than the second (ratio of distances)
    fit       a homography or a fundamental matrix, by MAGSAC
    check     refuse a homography that no camera makes: mirrored, collapsed, needle-shaped, folded over the horizon
    filter    keep the inliers whose size and angle agree with the model, too, and fit again

RANSAC always finds *some* model: unrelated images reach dozens of "inliers" by position alone, which the last two steps
refuse. D. Barath et al., MAGSAC++, 2020.
"""

from dataclasses import dataclass
from typing import Literal

import cv2
import numpy as np
from numpy.typing import NDArray

from resight.types import Box, FloatArray, Match

Matrix = NDArray[np.float64]
Model = Literal["homography", "fundamental"]
FEWEST = {"homography": 5, "fundamental": 9}  # one more than the model needs
Found = tuple[NDArray[np.float64], NDArray[np.bool_]]
SMALLEST_SIDE = 6.0  # pixels in the image
LONGEST_TO_SHORTEST = 12.0  # sides of the mapped outline, in units of the outline's own proportions
LARGEST_SCALE = 20.0
MOST_PERSPECTIVE = 6.0  # how much larger the near side may appear than the far one


@dataclass(frozen=True)
class LocalFeatures:
    """The local features of one image."""

    id: str
    vectors: FloatArray  # [n, D] unit rows
    points: FloatArray  # [n, 4] x, y, size, angle


@dataclass(frozen=True)
class Settings:
    model: Model = "homography"  # for flat objects and far views; the fundamental matrix is for scenes with depth
    ratio: float = 0.9
    mutual: bool = True
    tolerance: float = 6.0  # pixels, in the image
    iterations: int = 2000


def verify(query: LocalFeatures, image: LocalFeatures, outline: Box, settings: Settings) -> Match | None:
    pairs = match(query.vectors, image.vectors, settings.ratio, settings.mutual)
    if len(pairs) < FEWEST[settings.model]:
        return None
    ends_q, ends_x = query.points[pairs[:, 0]], image.points[pairs[:, 1]]
    fit = _fit_homography if settings.model == "homography" else _fit_fundamental
    found = fit(ends_q, ends_x, outline, settings)
    if found is None:
        return None
    transform, inliers = found
    points = np.column_stack([ends_q[inliers, :2], ends_x[inliers, :2]])
    distinct = count_distinct(points)
    if distinct < FEWEST[settings.model]:
        return None
    return Match(query.id, image.id, distinct, transform, points, settings.model, len(pairs))


def match(query: FloatArray, image: FloatArray, ratio: float = 0.9, mutual: bool = True) -> NDArray[np.int64]:
    """Unit rows [n, D] and [m, D] → pairs [t, 2] of row numbers, best first; one matrix product serves both tests."""
    if len(query) < 2 or len(image) < 2:
        return np.zeros((0, 2), np.int64)
    similarity = query @ image.T
    rows = np.arange(len(query))
    nearest = similarity.argmax(axis=1)
    best = similarity[rows, nearest]
    similarity[rows, nearest] = -np.inf
    second = similarity.max(axis=1)
    similarity[rows, nearest] = best
    # ‖a - b‖² = 2 - 2⟨a, b⟩ for unit rows, so that the ratio of distances needs no distance.
    kept = np.flatnonzero((1 - best) < ratio**2 * (1 - second))
    if mutual:  # for the columns that are left: a pass down every column would cost as much as the product
        kept = kept[similarity[:, nearest[kept]].argmax(axis=0) == kept]
    kept = kept[np.argsort(-best[kept], kind="stable")]
    return np.stack([kept, nearest[kept]], axis=1)


def _fit_homography(query: FloatArray, image: FloatArray, outline: Box, settings: Settings) -> Found | None:
    transform, mask = cv2.findHomography(
        query[:, :2], image[:, :2], cv2.USAC_MAGSAC, settings.tolerance, None, settings.iterations, 0.999
    )
    if transform is None or not is_plausible(transform, outline):
        return None
    inliers = mask.ravel().astype(bool)
    inliers[inliers] = agree_in_shape(transform, query[inliers], image[inliers])
    if inliers.sum() < FEWEST["homography"]:
        return None
    refined, _ = cv2.findHomography(query[inliers, :2], image[inliers, :2], 0)
    if refined is not None and is_plausible(refined, outline):
        transform = refined
    return transform, inliers


def _fit_fundamental(query: FloatArray, image: FloatArray, outline: Box, settings: Settings) -> Found | None:  # noqa: ARG001
    # Twice the iterations of the homography: seven points are all inliers less often than four.
    transform, mask = cv2.findFundamentalMat(
        query[:, :2], image[:, :2], cv2.USAC_MAGSAC, settings.tolerance / 2, 0.999, 2 * settings.iterations
    )
    if transform is None or transform.shape != (3, 3) or mask is None:
        return None
    inliers = mask.ravel().astype(bool)
    # There is no Jacobian here: sizes and angles must agree with each other, around their median change.
    with np.errstate(divide="ignore", invalid="ignore"):
        growth = np.log(image[:, 2] / query[:, 2])
    turn = np.radians(image[:, 3] - query[:, 3])
    if inliers.any():
        usual = np.arctan2(np.sin(turn[inliers]).mean(), np.cos(turn[inliers]).mean())  # a mean on the circle
        inliers &= np.abs(growth - np.median(growth[inliers])) <= np.log(2.5)
        inliers &= np.cos(turn - usual) >= np.cos(np.radians(45))
    return (transform, inliers) if inliers.sum() >= FEWEST["fundamental"] else None


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
    """Whether size and angle of key points [n, 4] change between query and image as the model does at that point."""
    scale, turn = local_similarity(transform, query[:, :2])
    with np.errstate(divide="ignore", invalid="ignore"):
        size_error = np.abs(np.log(image[:, 2] / query[:, 2]) - np.log(scale))
    angle_error = np.abs((image[:, 3] - query[:, 3] - turn + 180) % 360 - 180)
    return np.asarray((size_error <= np.log(largest_scale)) & (angle_error <= largest_angle))


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


def count_distinct(points: FloatArray, cell: float = 3.0) -> int:
    """How many matches [n, 4] differ by more than a few pixels at both ends: ten at one point count once."""
    if len(points) == 0:
        return 0
    cells = np.round(points / cell).astype(np.int64)
    return min(len(np.unique(cells[:, :2], axis=0)), len(np.unique(cells[:, 2:], axis=0)))


def map_points(transform: Matrix, points: NDArray[np.floating]) -> Matrix:
    """[n, 2] through a homography; points on the horizon come out infinite."""
    homogeneous = np.column_stack([points, np.ones(len(points))]) @ transform.T
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(homogeneous[:, :2] / homogeneous[:, 2:])


def corners(box: Box) -> Matrix:
    x0, y0, x1, y1 = box
    return np.array([[x0, y0], [x1, y0], [x1, y1], [x0, y1]], dtype=np.float64)


def _cross(first: Matrix, second: Matrix) -> Matrix:
    return np.asarray(first[:, 0] * second[:, 1] - first[:, 1] * second[:, 0])
