"""When a probable match should not count before a person has looked: hits in, reasons by id out.

- Geometry was asked and found no believable model: the pictures are alike, which says little of what they show.
- Another class matches the same part of the evaluation image far better (WEAKER). There is one thing at one place: two
  versions of a motif share enough for a match, and the better one explains what the weaker has.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from resight.types import FloatArray, Hit, Match

WEAKER = 0.5  # of the matched key points of the better one
SHARED = 0.5  # of the smaller part
INLIERS = "inliers"


def find_doubts(hits: Sequence[Hit], matches: Mapping[str, Match], class_attribute: str) -> Mapping[str, str]:
    """Of the answers to one query, and the geometry that was found for them."""
    verified = any(INLIERS in hit.stages for hit in hits)
    doubts: dict[str, str] = {}
    for hit in hits:
        match = matches.get(hit.id)
        if match is None:
            if verified:
                doubts[hit.id] = "no believable geometry"
        elif (rival := _find_rival(hit, hits, matches, class_attribute)) is not None:
            doubts[hit.id] = f"{rival} matches the same part better"
    return doubts


def _find_rival(hit: Hit, hits: Sequence[Hit], matches: Mapping[str, Match], class_attribute: str) -> str | None:
    label, match = hit.attributes.get(class_attribute), matches[hit.id]
    for other in hits:
        better = matches.get(other.id)
        same_class = label is not None and other.attributes.get(class_attribute) == label
        if better is None or same_class or match.inliers >= WEAKER * better.inliers:
            continue
        if share_part(match.points[:, :2], better.points[:, :2]) > SHARED:
            return other.id
    return None


def share_part(one: FloatArray, two: FloatArray) -> float:
    """How much of the smaller of two boxes around points [n, 2] lies in the other."""
    low = np.maximum(one.min(axis=0), two.min(axis=0))
    high = np.minimum(one.max(axis=0), two.max(axis=0))
    areas = [float(np.prod(np.ptp(points, axis=0))) for points in (one, two)]
    return float(np.prod(np.maximum(high - low, 0.0))) / max(min(areas), 1e-9)
