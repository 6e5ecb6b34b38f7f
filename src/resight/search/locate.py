"""Where the thing is, as a box clipped to the image.

With a verified transform: the query's outline through it. With a fundamental matrix, which maps points to lines: the
box around the matched points. Without either, for an image that was compared by tokens: the area that they support
best. Where images are cut into regions, the one that won, or what a closer look made of it, stays without a transform.
`located_by` tells which it was: "homography", "points", "tokens" or "region".
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from resight.search.plausibility import corners, map_points
from resight.search.rerankers import Gallery
from resight.search.token_support import find_supported_box, find_token_branch, match_tokens, split
from resight.types import Box, Match, Query, Ranking

BY_TOKENS = 30
DECIMALS = 3  # of a pixel: the last bits of a fitted transform depend on where its points lie in memory

Sizes = Callable[[Sequence[str]], Mapping[str, tuple[int, int]]]  # ids → width, height of the originals


def locate(query: Query, ranking: Ranking, gallery: Gallery, sizes: Sizes, by_tokens: int = BY_TOKENS) -> Ranking:
    """`by_tokens` of the first answers get a box from their tokens, which have to be read for it."""
    branch = find_token_branch(query)
    matched = [name for name in ranking.ids if name in ranking.matches]
    rest = [name for name in ranking.ids[:by_tokens] if branch is not None and name not in ranking.boxes]
    known = sizes(list(dict.fromkeys([*matched, *rest])))
    boxes: dict[str, Box] = {}
    origins: dict[str, str] = {}
    for name in matched:
        if (box := find_box(ranking.matches[name], query.outline, known[name])) is not None:
            boxes[name] = box
            origins[name] = "homography" if ranking.matches[name].model == "homography" else "points"
    left = [name for name in rest if name not in boxes]
    if branch is not None and left:
        for image in split(gallery.descriptors(branch, left)):
            tokens = match_tokens(query.descriptors[branch], image)
            if tokens and (box := find_supported_box(tokens, known[tokens.image_id])) is not None:
                boxes[tokens.image_id] = box
                origins[tokens.image_id] = "tokens"
    return replace(ranking, boxes={**ranking.boxes, **boxes}, located_by={**ranking.located_by, **origins})


def find_box(match: Match, outline: Box, size: tuple[int, int]) -> Box | None:
    """The box in the image, or None when nothing of it lies inside."""
    points = map_points(match.transform, corners(outline)) if match.model == "homography" else match.points[:, 2:]
    low, high = (np.clip(np.round(side, DECIMALS), 0, size) for side in (points.min(axis=0), points.max(axis=0)))
    if not (high > low).all():
        return None
    return float(low[0]), float(low[1]), float(high[0]), float(high[1])
