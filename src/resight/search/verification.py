"""Geometric verification of one pair of images: local features in, a Match out, or None.

    match     pairs of key points (matchers/): by default those that are each other's nearest neighbours, and clearly
              nearer than the second
    fit       a similarity, a homography or a fundamental matrix (geometric_models.py)
    choose    the model that is least likely by chance (a_contrario.py)
    repeat    further instances of the query in the image, if the settings ask for them (instances.py)

Some model fits any two images: unrelated ones reach dozens of "inliers" by position alone. So a model must be one that
a camera makes, matches must agree with it in size and angle, too, where key points have them, and it must explain more
than chance would.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from resight.search.a_contrario import Extent
from resight.search.geometric_models import (
    FEWEST,
    Fit,
    choose,
    fit_fundamental,
    fit_homography,
    fit_similarity,
    number_cells,
)
from resight.search.matchers import LocalFeatures, Matcher
from resight.search.matchers.ratio import Ratio
from resight.types import Box, FloatArray, Match

Model = Literal["best", "similarity", "homography", "fundamental"]


@dataclass(frozen=True)
class Settings:
    model: Model = "homography"  # "best": the more significant of similarity and homography
    matcher: Matcher = field(default_factory=Ratio)
    tolerance: float = 6.0  # pixels, in the image
    iterations: int = 2000
    instances: int = 1  # of the query in one image, at most


def verify(query: LocalFeatures, image: LocalFeatures, outline: Box, settings: Settings) -> Match | None:
    extent = Extent(image.points)

    def fit(ends_q: FloatArray, ends_x: FloatArray) -> Match | None:
        found = choose(_fit(ends_q, ends_x, extent, outline, settings))
        return None if found is None else _describe(found, query.id, image.id, ends_q, ends_x)

    pairs = settings.matcher.match(query, image)
    first = fit(query.points[pairs[:, 0]], image.points[pairs[:, 1]])
    if settings.instances == 1:
        return first
    from resight.search.further_instances import find_instances  # most recipes ask for one instance

    # Copies share the query's key points, so that none is clearly the nearest: the image's look for theirs instead.
    backward = settings.matcher.match(image, query, mutual=False)
    ends = query.points[backward[:, 1]], image.points[backward[:, 0]]
    first = first or fit(*ends)
    return first and replace(first, others=find_instances(first, *ends, outline, settings.instances - 1, fit))


def _describe(fit: Fit, query: str, image: str, ends_q: FloatArray, ends_x: FloatArray) -> Match | None:
    points = np.column_stack([ends_q[fit.inliers, :2], ends_x[fit.inliers, :2]])
    distinct = count_distinct(points)
    if distinct < FEWEST[fit.model]:
        return None
    return Match(query, image, distinct, fit.transform, points, fit.model, len(ends_q), max(fit.significance, 0.0))


def _fit(
    query: FloatArray, image: FloatArray, extent: Extent, outline: Box, settings: Settings
) -> Iterator[Fit | None]:
    """The models that the settings ask for, the most promising first.

    A similarity is quick and loose: where it sees nothing, there is no homography to look for.
    """
    if settings.model in ("best", "similarity"):
        yield (similarity := fit_similarity(query, image, extent))
        if settings.model == "best" and (similarity is None or similarity.significance <= 0):
            return
    if settings.model in ("best", "homography"):
        yield fit_homography(query, image, outline, extent, settings.tolerance, settings.iterations)
    if settings.model == "fundamental":
        yield fit_fundamental(query, image, extent, settings.tolerance, settings.iterations)


def count_distinct(points: FloatArray, cell: float = 3.0) -> int:
    """How many matches [n, 4] differ by more than a few pixels at both ends: ten at one point count once."""
    if len(points) == 0:
        return 0
    return min(len(np.unique(number_cells(ends, cell))) for ends in (points[:, :2], points[:, 2:]))
