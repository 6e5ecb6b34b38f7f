"""Where the thing is: the query's outline through the verified transform, as a box clipped to the image.

With a fundamental matrix, which maps points to lines, it is the box around the matched points.
"""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from resight.search.plausibility import corners, map_points
from resight.types import Box, Match, Query, Ranking


def locate(query: Query, ranking: Ranking, sizes: Mapping[str, tuple[int, int]]) -> Ranking:
    boxes = {
        name: box
        for name, match in ranking.matches.items()
        if name in sizes and (box := find_box(match, query.outline, sizes[name])) is not None
    }
    return replace(ranking, boxes={**ranking.boxes, **boxes})


def find_box(match: Match, outline: Box, size: tuple[int, int]) -> Box | None:
    """The box in the image, or None when nothing of it lies inside."""
    points = map_points(match.transform, corners(outline)) if match.model == "homography" else match.points[:, 2:]
    low = np.clip(points.min(axis=0), 0, size)
    high = np.clip(points.max(axis=0), 0, size)
    if not (high > low).all():
        return None
    return float(low[0]), float(low[1]), float(high[0]), float(high[1])
