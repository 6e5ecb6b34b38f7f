"""Geometric verification of one pair of images: local features in, a Match out, or None.

match → MAGSAC → refuse what no camera makes → keep the inliers that agree in size and angle → refit.
"""

from dataclasses import dataclass
from typing import Literal

import cv2
import numpy as np
from numpy.typing import NDArray

from resight.search import plausibility
from resight.search.matching import match
from resight.types import Box, FloatArray, Match

Model = Literal["homography", "fundamental"]
FEWEST = {"homography": 5, "fundamental": 9}  # one more than the model needs


@dataclass(frozen=True)
class LocalFeatures:
    """What verification needs of one image."""

    id: str
    vectors: FloatArray  # [n, D] unit rows
    points: FloatArray  # [n, 4] x, y, size, angle


@dataclass(frozen=True)
class Settings:
    model: Model = "homography"  # flat things and far views; the fundamental matrix for scenes with depth
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
    distinct = plausibility.count_distinct(points)
    if distinct < FEWEST[settings.model]:
        return None
    return Match(query.id, image.id, distinct, transform, points, settings.model, len(pairs))


Found = tuple[NDArray[np.float64], NDArray[np.bool_]]


def _fit_homography(query: FloatArray, image: FloatArray, outline: Box, settings: Settings) -> Found | None:
    transform, mask = cv2.findHomography(
        query[:, :2], image[:, :2], cv2.USAC_MAGSAC, settings.tolerance, None, settings.iterations, 0.999
    )
    if transform is None or not plausibility.is_plausible(transform, outline):
        return None
    inliers = mask.ravel().astype(bool)
    inliers[inliers] = plausibility.agree_in_shape(transform, query[inliers], image[inliers])
    if inliers.sum() < FEWEST["homography"]:
        return None
    refined, _ = cv2.findHomography(query[inliers, :2], image[inliers, :2], 0)
    if refined is not None and plausibility.is_plausible(refined, outline):
        transform = refined
    return transform, inliers


def _fit_fundamental(query: FloatArray, image: FloatArray, outline: Box, settings: Settings) -> Found | None:  # noqa: ARG001
    # One more iteration budget than the homography: seven points are all good less often than four.
    transform, mask = cv2.findFundamentalMat(
        query[:, :2], image[:, :2], cv2.USAC_MAGSAC, settings.tolerance / 2, 0.999, 2 * settings.iterations
    )
    if transform is None or transform.shape != (3, 3) or mask is None:
        return None
    inliers = mask.ravel().astype(bool)
    # No Jacobian here: sizes and angles must agree with each other, around their median change.
    with np.errstate(divide="ignore", invalid="ignore"):
        growth = np.log(image[:, 2] / query[:, 2])
    turn = np.radians(image[:, 3] - query[:, 3])
    if inliers.any():
        usual = np.arctan2(np.sin(turn[inliers]).mean(), np.cos(turn[inliers]).mean())  # a mean on the circle
        inliers &= np.abs(growth - np.median(growth[inliers])) <= np.log(2.5)
        inliers &= np.cos(turn - usual) >= np.cos(np.radians(45))
    return (transform, inliers) if inliers.sum() >= FEWEST["fundamental"] else None
