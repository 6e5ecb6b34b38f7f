"""Further instances of the query in an image where one has been found already.

In: matched key points of query and image, best first, and the match that was verified first. Out: one match per further
instance, the most significant first. A mutual match gives each key point of the query to one instance alone, so these
matches go the other way: each key point of the image has its partner in the query. One model after another is fitted to
what no model explains yet, and kept if chance hardly makes it and its outline covers other ground. A model over the
ground of an earlier one is another plane of the same instance, and is not reported.
J. Philbin et al., Object retrieval with large vocabularies and fast spatial matching, 2007.
"""

from collections.abc import Callable

import numpy as np

from resight.boxes import contains, iou
from resight.search.homography_checks import box_outline
from resight.types import Box, FloatArray, Match

SIGNIFICANT = 4.0  # -log10 of how many such models chance makes per image
OVERLAP = 0.3  # intersection over union of two boxes; above it, both are one instance
TRIES = 4  # models per wanted instance

Fit = Callable[[FloatArray, FloatArray], Match | None]


def find_instances(
    first: Match, query: FloatArray, image: FloatArray, outline: Box, most: int, fit: Fit
) -> tuple[Match, ...]:
    """Key points [n, 4] of matches, best first → up to `most` instances beside the first."""
    found: list[Match] = []
    boxes = [box_outline(first, outline)]
    left = np.flatnonzero(~contains(boxes[0], image[:, :2]))
    for _ in range(TRIES * most):
        match = fit(query[left], image[left]) if len(found) < most else None
        if match is None or match.significance < SIGNIFICANT:
            break
        box = box_outline(match, outline)
        explained = (image[left, None, :2] == match.points[None, :, 2:]).all(axis=2).any(axis=1)
        if iou(np.array(box), np.array(boxes)).max() <= OVERLAP:
            found.append(match)
            boxes.append(box)
            explained |= contains(box, image[left, :2])
        left = left[~explained]
    return tuple(sorted(found, key=lambda match: -match.significance))
